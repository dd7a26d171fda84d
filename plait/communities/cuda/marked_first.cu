// Gives communities new numbers: marked ones come first, and both kinds keep their order.
// Labels in use are marked to make them dense; communities with edges, to forget the others.
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/one_each.cuh"
#include "plait/communities/cuda/on_stream.cuh"
#include "plait/communities/cuda/quotient.cuh"

namespace plait {
namespace {

__global__ void mark_labels(const std::uint32_t* labels, std::uint64_t count,
                            std::uint32_t* marks) {
  const std::uint64_t i = item_of_thread();
  if (i < count) marks[labels[i]] = 1;
}
__global__ void mark_rows(const EdgeOffset* offsets, std::uint32_t count, std::uint32_t* marks) {
  const std::uint64_t c = item_of_thread();
  if (c < count && offsets[c] < offsets[c + 1]) marks[c] = 1;
}
__global__ void renumber(std::uint32_t* labels, std::uint64_t count, const std::uint32_t* number) {
  const std::uint64_t i = item_of_thread();
  if (i < count) labels[i] = number[labels[i]];
}

// Marks by number, and how many marks come before each place.
struct Marks {
  DeviceArray<std::uint32_t> marks, before;  // one more than there are numbers
  std::uint32_t count = 0;                   // of the marks

  Marks(std::uint64_t size, cudaStream_t stream)
      : marks(zeros_of<std::uint32_t>(size + 1, stream)),
        before(array_of<std::uint32_t>(size + 1, stream)) {}
  // Finds `before` and `count`. Waits for the stream.
  void scan(cudaStream_t stream) {
    with_stream_scratch(stream, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(scratch, bytes, marks.data(), before.data(),
                                           marks.size(), stream);
    });
    count = read_back(before.data() + marks.size() - 1, stream);
  }
};

// Arrays of a quotient with one number per community.
struct Columns {
  EdgeOffset* offsets;
  std::uint64_t *degrees, *outer;

  explicit Columns(DeviceQuotient& graph)
      : offsets(graph.offsets.data()), degrees(graph.degrees.data()), outer(graph.outer.data()) {}
};

// Copies what a quotient has of marked communities. before: in, the marks before each community;
// out, its new number.
__global__ void put_marked_first(const std::uint32_t* marks, std::uint32_t* before,
                                 std::uint32_t count, std::uint32_t marked,
                                 const __grid_constant__ Columns from,
                                 const __grid_constant__ Columns to) {
  const std::uint64_t c = item_of_thread();
  if (c == count) to.offsets[marked] = from.offsets[count];
  if (c >= count) return;
  const std::uint32_t number = before[c];
  if (marks[c] == 0) {
    before[c] = marked + static_cast<std::uint32_t>(c) - number;
    return;
  }
  to.offsets[number] = from.offsets[c];
  to.degrees[number] = from.degrees[c];
  to.outer[number] = from.outer[c];
}

void mark_all(const DeviceArray<std::uint32_t>& labels, Marks& to, cudaStream_t stream) {
  if (labels.size() > 0)
    mark_labels<<<blocks_of_items(labels.size()), kThreadsOfItems, 0, stream>>>(
        labels.data(), labels.size(), to.marks.data());
  check_launch();
}
void renumber_all(DeviceArray<std::uint32_t>& labels, const Marks& by, cudaStream_t stream) {
  if (labels.size() > 0)
    renumber<<<blocks_of_items(labels.size()), kThreadsOfItems, 0, stream>>>(
        labels.data(), labels.size(), by.before.data());
  check_launch();
}

}  // namespace

std::uint32_t make_dense(DeviceArray<std::uint32_t>& labels, std::uint64_t bound,
                         cudaStream_t stream) {
  Marks used(bound, stream);
  mark_all(labels, used, stream);
  used.scan(stream);
  renumber_all(labels, used, stream);
  return used.count;
}

void put_joined_first(DeviceArray<std::uint32_t>& labels, DeviceQuotient& graph,
                      cudaStream_t stream) {
  const std::uint32_t communities = graph.communities;
  Marks joined(communities, stream);
  mark_rows<<<blocks_of_items(communities), kThreadsOfItems, 0, stream>>>(
      graph.offsets.data(), communities, joined.marks.data());
  mark_all(graph.neighbours, joined, stream);
  joined.scan(stream);
  DeviceQuotient first;
  first.offsets = array_of<EdgeOffset>(joined.count + std::uint64_t{1}, stream);
  first.degrees = array_of<std::uint64_t>(joined.count, stream);
  first.outer = array_of<std::uint64_t>(joined.count, stream);
  put_marked_first<<<blocks_of_items(communities + std::uint64_t{1}), kThreadsOfItems, 0, stream>>>(
      joined.marks.data(), joined.before.data(), communities, joined.count, Columns(graph),
      Columns(first));
  renumber_all(graph.neighbours, joined, stream);
  renumber_all(labels, joined, stream);
  graph.offsets = std::move(first.offsets);
  graph.degrees = std::move(first.degrees);
  graph.outer = std::move(first.outer);
  graph.communities = joined.count;
}

}  // namespace plait

// The gradient of a row is the sum of the gradients of all bags that name it: a sparse product with
// the transposed matrix of bags. Edges are sorted by row with a stable radix sort, 8 bytes per edge
// and pass of 8 bits; rows that many bags name are cut into the SpMM's neighbour groups.
//
// A step of few samples is bound by launches and by waits of the host. So one sort serves all
// tables, and the host waits once: for the numbers of rows and of neighbour groups, which come
// together (sum_by_row.cu).
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/error.h"
#include "plait/embedding/cuda/found_rows.cuh"
#include "plait/embedding/cuda/named_rows.cuh"
#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {
namespace {

constexpr const char* kWhat = "gradients by row";

__global__ void __launch_bounds__(kThreadsOfItems)
    number_kernel(Slot* numbers, std::uint64_t count) {
  const std::uint64_t i = item_of_thread();
  if (i < count) numbers[i] = static_cast<Slot>(i);
}

__global__ void __launch_bounds__(kThreadsOfItems)
    permute_kernel(const Slot* order, const __grid_constant__ DeviceEdges from,
                   const __grid_constant__ DeviceEdges to) {
  const std::uint64_t i = item_of_thread();
  if (i >= from.count) return;
  const Slot at = order[i];
  if (to.from != nullptr) to.from[i] = from.from[at];
  if (to.weights != nullptr) to.weights[i] = from.weights[at];
  if (to.counts != nullptr) to.counts[i] = from.counts[at];
  if (to.places != nullptr) to.places[i] = from.places[at];
}

OwnedEdges sorted(const DeviceEdges& edges, Slot rows, cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const auto count = static_cast<std::int64_t>(edges.count);
  // One bit more than rows have, if need be, so that kNoRow is behind all of them.
  const int bits = std::max(1, static_cast<int>(std::bit_width(rows)));
  const EdgeParts parts = edges.parts();
  OwnedEdges to(edges.count, parts, pool);
  const auto sort_with = [&](const Slot* values, Slot* sorted_values) {
    with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, edges.rows, to.rows, values,
                                             sorted_values, count, 0, bits, stream);
    });
  };
  if (!parts.weights && !parts.counts && !parts.places) {
    if (parts.from)
      sort_with(edges.from, to.from);
    else
      with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, edges.rows, to.rows, count, 0, bits,
                                              stream);
      });
    return to;
  }
  DeviceArrays memory;
  Slot *numbers = nullptr, *order = nullptr;
  memory.add(numbers, edges.count);
  memory.add(order, edges.count);
  memory.allocate(pool);
  number_kernel<<<blocks_of_items(edges.count), kThreadsOfItems, 0, stream>>>(numbers, edges.count);
  sort_with(numbers, order);
  permute_kernel<<<blocks_of_items(edges.count), kThreadsOfItems, 0, stream>>>(order, edges, to);
  check_cuda(cudaGetLastError(), kWhat);
  return to;
}

// Tells whether an edge is the first of its row.
struct IsFirst {
  const Slot* rows;
  __device__ bool operator()(std::uint64_t i) const {
    return rows[i] != kNoRow && (i == 0 || rows[i] != rows[i - 1]);
  }
};

struct FindArgs {
  const Slot* edges;  // the row of each, ascending
  std::uint64_t count;
  const Slot* bases;
  std::uint64_t tables;
  TableRanges ranges;
  EdgeOffset* starts;
  Slot* rows;
  FoundRows found;
};

// Writes the number of row k, and k as the number of rows before each table that begins with it.
// Completes the rows' first edges by the end of the last. Returns the number of edges.
__device__ EdgeOffset find_row(const FindArgs& a, std::uint64_t k, std::uint64_t count) {
  const EdgeOffset begin = a.starts[k];
  const Slot row = a.edges[begin];
  a.rows[k] = row;
  std::uint64_t t = begin == 0 ? 0 : table_behind(a.bases, a.tables, a.edges[begin - 1]);
  for (; t < a.tables && a.bases[t] <= row; ++t) a.found.before[t] = k;
  if (k + 1 < count) return a.starts[k + 1] - begin;
  const EdgeOffset end = lower_bound(a.edges, begin, a.count, kNoRow);
  a.starts[count] = end;
  for (; t <= a.tables; ++t) a.found.before[t] = count;
  return end - begin;
}

// A thread takes a row.
__global__ void __launch_bounds__(kThreadsOfItems) find_kernel(const __grid_constant__ FindArgs a) {
  const std::uint64_t k = item_of_thread(), count = *a.found.rows;
  if (blockIdx.x * std::uint64_t{kThreadsOfItems} >= count) return;  // of the whole block
  const bool there = k < count;
  const EdgeOffset edges = there ? find_row(a, k, count) : 0;
  const std::uint32_t range = there ? a.ranges.of(a.rows[k]) : a.ranges.count;
  const RowCut cut = cut_row(edges, kFixedGroup);
  for (std::uint32_t g = 0; g < a.ranges.count; ++g) {
    const bool whole = range == g && cut.groups == 1;
    const int few_edges = __syncthreads_count(whole && edges <= kFewEdges);
    const int many_edges = __syncthreads_count(whole && edges > kFewEdges);
    if (threadIdx.x > 0) continue;
    if (few_edges > 0) atomicAdd(&a.found.counts[g].short_groups, CountWord(few_edges));
    if (many_edges > 0) atomicAdd(&a.found.counts[g].long_groups, CountWord(many_edges));
  }
  if (cut.groups == 1 || range == a.ranges.count) return;
  GroupCounters& counts = a.found.counts[range];
  atomicAdd(&counts.long_groups, CountWord{cut.groups});
  atomicAdd(&counts.partial_sums, CountWord{cut.groups});
  atomicAdd(cut.groups > CutRow::kFew ? &counts.hubs : &counts.few, CountWord{1});
}

// The numbers that the host reads of found_.
std::uint64_t words_of_counts(const RowNumbers& numbers) {
  return 1 + numbers.bases.size() + kGroupCounters * numbers.groups.size();
}

}  // namespace

void Readback::reserve(const RowNumbers& of) { numbers.reserve(words_of_counts(of)); }

NamedRows::NamedRows(OwnedEdges edges, const RowNumbers& numbers, const Slot* bases,
                     Readback& counts, cudaStream_t stream)
    : numbers_(numbers),
      bases_(bases),
      counts_(counts),
      sorted_(0, {}, FromPool{stream, stream}),
      most_(std::min<std::uint64_t>(edges.count, numbers.bases.back())),
      before_(numbers.bases.size()),
      groups_(numbers.groups.size()) {
  require<DoesNotFitError>(edges.count < kNoRow, "{} ids in a batch are too many for one GPU",
                           edges.count);
  if (most_ == 0) return;
  sorted_ = sorted(edges, numbers.bases.back(), stream);
  find_rows(stream);
}

void NamedRows::find_rows(cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const std::uint64_t read = words_of_counts(numbers_);
  const std::uint64_t words = read + kGroupCounters * numbers_.groups.size();
  require(read <= counts_.numbers.size(), "{} numbers of rows have room for {}", read,
          counts_.numbers.size());
  memory_.add(rows_, most_);
  memory_.add(starts_, most_ + 1);
  memory_.add(found_, words);
  memory_.allocate(pool);
  check_cuda(cudaMemsetAsync(found_, 0, words * sizeof(*found_), stream), kWhat);
  const FoundRows found = found_at(found_, numbers_);
  const thrust::counting_iterator<EdgeOffset> numbers(0);
  const auto is_first = thrust::make_transform_iterator(numbers, IsFirst{sorted_.rows});
  with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, numbers, is_first, starts_, found.rows,
                                      static_cast<std::int64_t>(sorted_.count), stream);
  });
  find_kernel<<<blocks_of_items(most_), kThreadsOfItems, 0, stream>>>(
      {sorted_.rows, sorted_.count, bases_, numbers_.tables.size(), TableRanges(numbers_), starts_,
       rows_, found});
  check_cuda(cudaGetLastError(), kWhat);
  check_cuda(cudaMemcpyAsync(counts_.numbers.data(), found_, read * sizeof(std::uint64_t),
                             cudaMemcpyDeviceToHost, stream),
             kWhat);
  counts_.there.record(stream);
}

void NamedRows::wait() {
  if (most_ == 0) return;
  check_cuda(cudaEventSynchronize(counts_.there.get()), kWhat);
  const FoundRows found = found_at(counts_.numbers.data(), numbers_);
  before_.assign(found.before, found.before + before_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupCounters& c = found.counts[g];
    require<UsageError>(rows_of(numbers_.groups[g]) < RowGroup::kPartial,
                        "{} rows on one GPU are more than 2^31 - 1", rows_of(numbers_.groups[g]));
    const auto groups = static_cast<std::uint32_t>(c.long_groups + c.short_groups);
    groups_[g] = {.groups = groups,
                  .long_groups = static_cast<std::uint32_t>(c.long_groups),
                  .few = static_cast<std::uint32_t>(c.few),
                  .hubs = static_cast<std::uint32_t>(c.hubs),
                  .partial_sums = static_cast<std::uint32_t>(c.partial_sums),
                  .edges = sorted_.count};  // of all groups of tables: at most so many
  }
}

}  // namespace plait

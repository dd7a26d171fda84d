// One block sorts the reads of one sample in shared memory and counts where they change.
#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <limits>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/communities/cuda/clusters.cuh"
#include "plait/reorder/cuda/work_order.cuh"

namespace plait {
namespace {

constexpr int kThreads = 512;
constexpr int kEach = static_cast<int>(kReadBlock * kReadsOfRow) / kThreads;  // reads per thread
constexpr Slot kNone = std::numeric_limits<Slot>::max();

struct Graph {
  const EdgeOffset* begin;
  const EdgeOffset* end;
  const Slot* columns;
};

// A null order is that of ids.
__global__ void __launch_bounds__(kThreads)
    count_distinct(Graph graph, const std::uint32_t* order, std::uint64_t blocks,
                   unsigned long long* distinct) {
  using Sort = cub::BlockRadixSort<Slot, kThreads, kEach>;
  __shared__ union {
    typename Sort::TempStorage sort;
    Slot last[kThreads];  // of each thread's reads
  } shared;
  const std::uint64_t first = blockIdx.x * blocks / gridDim.x * kReadBlock;
  Slot reads[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const std::uint64_t read = i * kThreads + threadIdx.x;
    const std::uint64_t place = first + read / kReadsOfRow;
    const std::uint64_t row = order != nullptr ? order[place] : place;
    const EdgeOffset edge = graph.begin[row] + read % kReadsOfRow;
    reads[i] = edge < graph.end[row] ? graph.columns[edge] : kNone;
  }
  Sort(shared.sort).Sort(reads);
  __syncthreads();
  shared.last[threadIdx.x] = reads[kEach - 1];
  __syncthreads();
  Slot before = threadIdx.x > 0 ? shared.last[threadIdx.x - 1] : kNone;
  int changes = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const bool begins = (threadIdx.x == 0 && i == 0) || reads[i] != before;
    changes += begins && reads[i] != kNone ? 1 : 0;
    before = reads[i];
  }
  const int of_warp = __reduce_add_sync(kAll, changes);
  if (threadIdx.x % kWarp == 0) atomicAdd(distinct, static_cast<unsigned long long>(of_warp));
}

__global__ void make_keys(Graph graph, const std::uint32_t* labels, std::uint64_t rows,
                          std::uint64_t* keys, std::uint32_t* order) {
  const std::uint64_t row = item_of_thread();
  if (row >= rows) return;
  const auto edges = static_cast<std::uint32_t>(graph.end[row] - graph.begin[row]);
  keys[row] = std::uint64_t{labels[row]} << 32 | static_cast<std::uint32_t>(~edges);
  order[row] = static_cast<std::uint32_t>(row);
}

__global__ void label_blocks(std::uint32_t* labels, std::uint64_t rows) {
  const std::uint64_t row = item_of_thread();
  if (row < rows) labels[row] = static_cast<std::uint32_t>(row / kRowsTogether);
}

DeviceArray<std::uint32_t> sorted_rows(const Graph& graph, const std::uint32_t* labels,
                                       std::uint64_t rows, cudaStream_t stream) {
  DeviceArray<std::uint64_t> keys(rows), sorted_keys(rows);
  DeviceArray<std::uint32_t> unsorted(rows), order(rows);
  make_keys<<<blocks_of_items(rows), kThreadsOfItems, 0, stream>>>(graph, labels, rows, keys.data(),
                                                                   unsorted.data());
  with_scratch("the order of work", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted_keys.data(),
                                           unsorted.data(), order.data(), rows, 0, 64, stream);
  });
  check_cuda(cudaStreamSynchronize(stream), "the order of work");
  return order;
}

}  // namespace

DeviceArray<std::uint32_t> order_of_work(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows,
                                         cudaStream_t stream) {
  DeviceArray<std::uint32_t> labels =
      find_clusters(begin, end, columns, rows, kClusterRounds, stream);
  const std::uint64_t blocks = rows / kReadBlock;
  if (blocks == 0) return labels;
  const Graph graph{begin, end, columns};
  const auto samples = static_cast<unsigned>(std::min(blocks, kReadBlocks));
  DeviceArray<unsigned long long> counts{std::vector<unsigned long long>(2)};
  {
    const DeviceArray<std::uint32_t> order = sorted_rows(graph, labels.data(), rows, stream);
    count_distinct<<<samples, kThreads, 0, stream>>>(graph, nullptr, blocks, counts.data());
    count_distinct<<<samples, kThreads, 0, stream>>>(graph, order.data(), blocks,
                                                     counts.data() + 1);
    check_cuda(cudaStreamSynchronize(stream), "the order of work");
  }
  const std::vector<unsigned long long> found = counts.to_host();
  if (static_cast<double>(found[0]) < kFewerReads * static_cast<double>(found[1]))
    label_blocks<<<blocks_of_items(rows), kThreadsOfItems, 0, stream>>>(labels.data(), rows);
  check_cuda(cudaGetLastError(), "the order of work");
  check_cuda(cudaStreamSynchronize(stream), "the order of work");
  return labels;
}

}  // namespace plait

// A warp has a target at a time, and reads its row as the drawing of the hop has done before. Per
// edge 4 bytes of weights or 8 of times are read, most of them from the L2 cache.
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/sample/cuda/eligible_edges.h"
#include "plait/sample/seen_row.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kMostBlocks = 16384;

struct Args {
  const EdgeOffset* graph_offsets;
  ValuesView values;
  const std::int64_t* times;      // by tree, or null
  const std::uint64_t* vertices;  // of the targets
  const std::uint32_t* trees;     // of the targets, or null
  const std::uint32_t* offsets;   // of the hop
  std::uint64_t targets;
  bool again;
  EligibleArrays to;
};

template <VertexId V>
__global__ void __launch_bounds__(kThreads) eligible_kernel(const Args a, const V* neighbours) {
  const unsigned lane = threadIdx.x % kWarp;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kWarp);
  for (std::uint64_t t = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp;
       t < a.targets; t += step) {
    const std::uint64_t v = a.vertices[t];
    const EdgeOffset first = a.graph_offsets[v], degree = a.graph_offsets[v + 1] - first;
    const std::int64_t now = a.times != nullptr ? a.times[a.trees[t]] : 0;
    const SeenRow<V> row{a.values, neighbours, first, now};
    unsigned long long count = 0;
    double sum = 0;
    for (std::uint64_t p = lane; p < degree; p += kWarp)
      if (row.is_eligible(p)) {
        ++count;
        if (a.values.weights != nullptr) sum += double{row.weight(p)};
      }
    count = sum_of_warp(count);
    sum = sum_of_warp(sum);
    if (lane != 0) continue;
    a.to.counts[t] = count;
    if (a.to.mean_weights != nullptr)
      a.to.mean_weights[t] =
          eligible::mean_weight(sum, count, a.offsets[t + 1] - a.offsets[t], a.again);
  }
}

}  // namespace

void gpu_eligible_edges(const GpuCsr& graph, const GpuSampleValues& values,
                        const GpuHopByValues& drawn, const EligibleArrays& to, void* stream) {
  const auto& [sample, hop, again] = drawn;
  if (hop.targets == 0) return;
  const Args args{.graph_offsets = graph.offsets,
                  .values = {values.weights, values.edge_times, values.vertex_times},
                  .times = sample.times,
                  .vertices = sample.vertices + hop.first_target,
                  .trees = sample.trees != nullptr ? sample.trees + hop.first_target : nullptr,
                  .offsets = hop.offsets,
                  .targets = hop.targets,
                  .again = again,
                  .to = to};
  const std::uint64_t warps = kThreads / kWarp, blocks = (hop.targets + warps - 1) / warps;
  const auto grid = static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
  auto* const on = static_cast<cudaStream_t>(stream);
  if (graph.wide)
    eligible_kernel<<<grid, kThreads, 0, on>>>(args,
                                               static_cast<const std::uint64_t*>(graph.neighbours));
  else
    eligible_kernel<<<grid, kThreads, 0, on>>>(args,
                                               static_cast<const std::uint32_t*>(graph.neighbours));
  check_cuda(cudaGetLastError(), "counting edges by values");
}

}  // namespace plait

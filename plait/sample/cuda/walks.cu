// A thread has a walk. Its steps wait for each other, three accesses to memory at random each; many
// walks side by side hide that. A walk's vertices are written 8 bytes at a time, in a sector that
// stays in the L2 cache until the next four steps have filled it.
#include <algorithm>
#include <utility>

#include "plait/base/cuda/cuda.cuh"
#include "plait/sample/cuda/walks.h"
#include "plait/sample/walk_step.h"

namespace plait {

struct GpuRandomWalks::State {
  GpuCsr graph;
  DeviceArray<double> own_sums;  // or empty, if `sums` are others'
  const double* sums;
  bool sorted;
};

namespace {

constexpr int kThreads = 128;

// Arrays are in memory of the GPU.
struct WalkArgs {
  WalkRule rule;
  Philox philox;
  std::uint64_t length, count, first;
  const std::uint64_t* starts;
  std::uint64_t* walks;
};

template <VertexId V>
__global__ void __launch_bounds__(kThreads)
    walk_kernel(const WalkGraph<V> graph, const WalkArgs a) {
  const std::uint64_t all = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; i < a.count;
       i += all) {
    std::uint64_t* const to = a.walks + i * (a.length + 1);
    Walk walk{a.starts[i], a.starts[i]};
    to[0] = walk.start;
    for (std::uint64_t s = 0; s < a.length; ++s) {
      step(graph, a.rule, WalkDraws(a.philox, a.first + i, s), walk);
      to[s + 1] = walk.at;
    }
  }
}

}  // namespace

GpuRandomWalks::GpuRandomWalks(const GpuCsr& graph, const RandomWalks& walks) {
  DeviceArray<double> sums(walks.sums());
  const double* const data = sums.data();
  state_ = std::make_unique<const State>(State{graph, std::move(sums), data, walks.sorted()});
}
GpuRandomWalks::GpuRandomWalks(const GpuCsr& graph, const RandomWalks& walks, const double* sums)
    : state_(std::make_unique<const State>(State{graph, {}, sums, walks.sorted()})) {}
GpuRandomWalks::~GpuRandomWalks() = default;

void GpuRandomWalks::enqueue(const WalkSettings& settings, const std::uint64_t* starts,
                             std::uint64_t count, std::uint64_t key, std::uint64_t* walks,
                             void* stream) const {
  constexpr std::uint64_t kMostBlocks = 1 << 20;
  check_walks(settings, state_->graph.vertices, {});
  if (count == 0) return;
  const WalkArgs args{WalkRule::of(settings.p, settings.q, settings.restart),
                      walk_philox(key),
                      settings.length,
                      count,
                      settings.first,
                      starts,
                      walks};
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
  const auto run = [&]<VertexId V>(V) {
    const WalkGraph<V> graph{state_->graph.offsets, static_cast<const V*>(state_->graph.neighbours),
                             state_->sums, state_->sorted};
    walk_kernel<V><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(graph, args);
  };
  state_->graph.wide ? run(std::uint64_t{0}) : run(std::uint32_t{0});
  check_cuda(cudaGetLastError(), "random walks");
}

RawVector<std::uint64_t> GpuRandomWalks::walk(const WalkSettings& settings,
                                              std::span<const std::uint64_t> starts,
                                              std::uint64_t key) const {
  const std::uint64_t size = starts.size() * (settings.length + 1);
  const DeviceArray<std::uint64_t> from(starts);
  DeviceArray<std::uint64_t> found(size);
  enqueue(settings, from.data(), starts.size(), key, found.data(), nullptr);
  RawVector<std::uint64_t> walks(size);
  if (size > 0) copy_to_host(walks.data(), found.data(), size * sizeof(std::uint64_t));
  return walks;
}

}  // namespace plait

#include <algorithm>

#include "plait/base/cuda/warp.cuh"
#include "plait/sample/cuda/append_unique.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;
constexpr unsigned kMostBlocks = 4096;

unsigned blocks_of(std::uint64_t work) {
  constexpr std::uint64_t kBlock = std::uint64_t{kThreads} * kInFlight;
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>((work + kBlock - 1) / kBlock, 1, kMostBlocks));
}

// The edges of a thread: first, and kInFlight - 1 more at distances of a warp; then all of them
// again, `step` further. A warp has consecutive edges, from a multiple of 32.
struct Sweep {
  std::uint64_t first, step;

  __device__ Sweep()
      : first((blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp * kWarp * kInFlight +
              threadIdx.x % kWarp),
        step(std::uint64_t{gridDim.x} * kThreads * kInFlight) {}
};

template <class Places>
__global__ void __launch_bounds__(kThreads) mark_kernel(const AppendUnique<Places> a) {
  const HopCounts counts = *a.counts;
  const std::uint64_t edges = a.offsets[counts.targets];
  const unsigned lane = threadIdx.x % kWarp;
  const Sweep sweep;
  // Whole warps go on together.
  for (std::uint64_t first = sweep.first; first - lane < edges; first += sweep.step) {
    typename Places::Slot slot[kInFlight];
    std::uint32_t place[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * kWarp < edges) slot[k] = a.slots[first + k * kWarp];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * kWarp < edges) place[k] = __ldcg(a.places.place + slot[k]);
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t e = first + k * kWarp;
      const bool there = e < edges;
      const unsigned word = __ballot_sync(kAll, there && place[k] == counts.vertices + e);
      if (there) a.neighbours[e] = place[k];
      if (there && lane == 0) a.bits[e / kWarp] = word;
    }
  }
}

// The number of the source of an edge, and whether the edge is the first that reaches it.
struct Numbered {
  std::uint32_t number;
  bool first;
};

template <class Places>
__device__ Numbered number_of(const AppendUnique<Places>& a, const HopCounts& counts,
                              std::uint64_t e, std::uint32_t place) {
  if (place < counts.vertices) return {place, false};
  const std::uint32_t first = place - counts.vertices, word = first / kWarp;
  const unsigned lower = a.bits[word] & ((1u << first % kWarp) - 1);
  return {counts.vertices + a.before[word] + static_cast<std::uint32_t>(__popc(lower)), first == e};
}

template <class Places>
__global__ void __launch_bounds__(kThreads)
    number_kernel(const AppendUnique<Places> a, std::uint64_t words) {
  const HopCounts counts = *a.counts;
  const std::uint64_t edges = a.offsets[counts.targets];
  const Sweep sweep;
  for (std::uint64_t first = sweep.first; first < edges; first += sweep.step) {
    std::uint32_t place[kInFlight];
    Numbered found[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * kWarp < edges) place[k] = a.neighbours[first + k * kWarp];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * kWarp < edges) found[k] = number_of(a, counts, first + k * kWarp, place[k]);
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t e = first + k * kWarp;
      if (e >= edges) continue;
      const std::uint32_t number = found[k].number;
      a.neighbours[e] = number;
      if (!found[k].first) continue;
      const auto slot = a.slots[e];
      a.vertices[number] = a.places.vertex(slot);
      if (a.trees != nullptr) a.trees[number] = a.places.tree(slot);
      if (!a.last) a.places.place[slot] = number;
    }
  }
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  const std::uint32_t vertices = counts.vertices + a.before[words];
  a.edges_of[0].edges = static_cast<std::uint32_t>(edges);
  a.edges_of[1] = a.all_targets
                      ? HopCounts{0, vertices, vertices, 0}
                      : HopCounts{counts.vertices, vertices - counts.vertices, vertices, 0};
}

// A seed that repeats has the place of the first, by the minimum.
template <class Places>
__global__ void enter_kernel(const Places places, const std::uint64_t* vertices,
                             const std::uint32_t* trees, const HopCounts* counts) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; i < counts->vertices;
       i += step)
    lower_place(places, places.claim(trees != nullptr ? trees[i] : 0, vertices[i]),
                static_cast<std::uint32_t>(i));
}

template <VertexId V>
__global__ void forget_kernel(const DirectPlaces<V> places, const std::uint64_t* vertices,
                              const HopCounts* counts) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; i < counts->vertices;
       i += step)
    places.place[vertices[i]] = kNoPlace;
}

__global__ void begin_kernel(HopCounts* counts, std::uint32_t seeds, std::uint32_t* trees) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i == 0) *counts = {0, seeds, seeds, 0};
  if (trees != nullptr && i < seeds) trees[i] = i;
}

}  // namespace

template <class Places>
void mark_first_edges(const AppendUnique<Places>& a, std::uint64_t edge_bound,
                      cudaStream_t stream) {
  mark_kernel<<<blocks_of(edge_bound), kThreads, 0, stream>>>(a);
  check_cuda(cudaGetLastError(), "marking first edges");
}

template <class Places>
void write_numbers(const AppendUnique<Places>& a, std::uint64_t edge_bound, cudaStream_t stream) {
  number_kernel<<<blocks_of(edge_bound), kThreads, 0, stream>>>(a, words_of(edge_bound));
  check_cuda(cudaGetLastError(), "numbering vertices");
}

template <class Places>
void enter_vertices(const Places& places, const std::uint64_t* vertices, const std::uint32_t* trees,
                    const HopCounts* counts, std::uint64_t most, cudaStream_t stream) {
  enter_kernel<<<blocks_of(most), kThreads, 0, stream>>>(places, vertices, trees, counts);
  check_cuda(cudaGetLastError(), "entering vertices");
}

template <VertexId V>
void forget_vertices(const DirectPlaces<V>& places, const std::uint64_t* vertices,
                     const HopCounts* counts, std::uint64_t most, cudaStream_t stream) {
  forget_kernel<<<blocks_of(most), kThreads, 0, stream>>>(places, vertices, counts);
  check_cuda(cudaGetLastError(), "forgetting vertices");
}

namespace {

__global__ void __launch_bounds__(kThreads)
    take_kernel(const std::uint64_t* seeds, std::uint64_t count, std::uint64_t vertices,
                std::uint64_t* to, unsigned long long* bad) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (i >= count) return;
  const bool right = seeds[i] < vertices;
  to[i] = right ? seeds[i] : 0;
  if (!right) atomicMin(bad, static_cast<unsigned long long>(i));
}

}  // namespace

void checked_seeds(const std::uint64_t* seeds, std::uint64_t count, std::uint64_t vertices,
                   std::uint64_t* to, unsigned long long* bad, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  take_kernel<<<blocks, kThreads, 0, stream>>>(seeds, count, vertices, to, bad);
  check_cuda(cudaGetLastError(), "the seeds of a sample");
}

void begin_counts(HopCounts* counts, std::uint32_t seeds, std::uint32_t* trees,
                  cudaStream_t stream) {
  const std::uint32_t work = trees != nullptr ? seeds : 1;
  const unsigned blocks = std::max(1u, (work + kThreads - 1) / kThreads);
  begin_kernel<<<blocks, kThreads, 0, stream>>>(counts, seeds, trees);
  check_cuda(cudaGetLastError(), "the seeds of a sample");
}

template void mark_first_edges(const AppendUnique<DirectPlaces<std::uint32_t>>&, std::uint64_t,
                               cudaStream_t);
template void write_numbers(const AppendUnique<DirectPlaces<std::uint32_t>>&, std::uint64_t,
                            cudaStream_t);
template void enter_vertices(const DirectPlaces<std::uint32_t>&, const std::uint64_t*,
                             const std::uint32_t*, const HopCounts*, std::uint64_t, cudaStream_t);
template void mark_first_edges(const AppendUnique<DirectPlaces<std::uint64_t>>&, std::uint64_t,
                               cudaStream_t);
template void write_numbers(const AppendUnique<DirectPlaces<std::uint64_t>>&, std::uint64_t,
                            cudaStream_t);
template void enter_vertices(const DirectPlaces<std::uint64_t>&, const std::uint64_t*,
                             const std::uint32_t*, const HopCounts*, std::uint64_t, cudaStream_t);
template void mark_first_edges(const AppendUnique<HashPlaces>&, std::uint64_t, cudaStream_t);
template void write_numbers(const AppendUnique<HashPlaces>&, std::uint64_t, cudaStream_t);
template void enter_vertices(const HashPlaces&, const std::uint64_t*, const std::uint32_t*,
                             const HopCounts*, std::uint64_t, cudaStream_t);
template void forget_vertices(const DirectPlaces<std::uint32_t>&, const std::uint64_t*,
                              const HopCounts*, std::uint64_t, cudaStream_t);
template void forget_vertices(const DirectPlaces<std::uint64_t>&, const std::uint64_t*,
                              const HopCounts*, std::uint64_t, cudaStream_t);

}  // namespace plait

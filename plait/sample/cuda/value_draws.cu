// A block of threads has a target at a time. It lists the edges that may be drawn, in their order,
// and gives each a key if the least keys are drawn: weighted_rank(), or the time, upside down. Rows
// of up to kShortRow edges are drawn by blocks of one warp, in shared memory; longer ones by blocks
// of eight warps, whose lists are in global memory and, for most rows, in the L2 cache.
#include <algorithm>

#include "plait/sample/cuda/distinct.cuh"
#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/cuda/row_select.cuh"
#include "plait/sample/cuda/value_draws.cuh"
#include "plait/sample/seen_row.h"

namespace plait {
namespace {

constexpr std::uint64_t kShortRow = 256;  // edges
constexpr int kShortThreads = 32, kLongThreads = 256;
constexpr unsigned kMostBlocks = 16384;

// Tells whether blocks of so many threads draw from a row.
template <int kThreads>
__device__ bool draws_from(std::uint64_t degree) {
  return (degree > kShortRow) == (kThreads == kLongThreads);
}

template <VertexId V>
__device__ SeenRow<V> seen_row(const HopArgs& hop, const GraphView<V>& graph, EdgeOffset first,
                               std::uint32_t tree) {
  const HopValues& v = hop.values;
  return {{v.weights, v.edge_times, v.vertex_times},
          graph.neighbours,
          first,
          v.timed() ? v.now[tree] : 0};
}

template <int kThreads, VertexId V>
__global__ void __launch_bounds__(kThreads)
    count_kernel(const HopArgs hop, const GraphView<V> graph) {
  const HopCounts counts = *hop.counts;
  for (std::uint64_t at = blockIdx.x; at < counts.targets; at += gridDim.x) {
    const auto number = static_cast<std::uint32_t>(counts.first_target + at);
    const std::uint64_t v = hop.vertices[number];
    const EdgeOffset begin = graph.offsets[v], degree = graph.offsets[v + 1] - begin;
    if (!draws_from<kThreads>(degree)) continue;
    const SeenRow<V> row = seen_row(hop, graph, begin, hop.tree_of(number));
    const std::uint64_t enough = hop.enough();
    std::uint64_t found = 0;
    for (std::uint64_t first = 0; first < degree && found < enough; first += kThreads) {
      const std::uint64_t p = first + threadIdx.x;
      found += static_cast<unsigned>(__syncthreads_count(p < degree && row.is_eligible(p)));
    }
    if (threadIdx.x == 0) hop.values.eligible[at] = found < enough ? found : enough;
  }
}

// Draws `count` of the `size` edges that are listed, count > 0. `more`: memory for as many keys,
// sums or words of a table as value_words() says. put(i, j): number i is the edge at list[j].
template <int kThreads, VertexId V, class Put>
__device__ void draw_listed(const HopArgs& hop, const SeenRow<V>& row, const VertexDraws& draws,
                            const std::uint64_t* list, std::uint64_t size, std::uint64_t count,
                            std::uint64_t* more, RowMemory<kThreads>& memory, Put put) {
  const bool again = hop.draws_again(), weighted = hop.values.weights != nullptr;
  if (!again && count == size) {
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads) put(i, i);
  } else if (hop.values.last || (!again && weighted)) {
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    for (std::uint64_t j = threadIdx.x; j < size; j += kThreads) {
      const std::uint64_t p = list[j];
      if (hop.values.last)
        more[j] = ~(static_cast<std::uint64_t>(row.time(p)) ^ kSign);
      else  // ranks are positive, so their bits are in the same order
        more[j] =
            __builtin_bit_cast(std::uint64_t, weighted_rank(draws.inner_share(p), row.weight(p)));
    }
    __syncthreads();
    take_least(more, size, least_keys(more, size, count, memory), memory, put);
  } else if (!again) {
    FirstDraws firsts{reinterpret_cast<FirstDraws::Word*>(more), 0};
    firsts.clear(count);
    firsts.enter_all(draws, size, count);
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads)
      put(i, settled(draws, firsts, size, count, i));
  } else if (weighted) {
    auto* const sums = reinterpret_cast<double*>(more);
    write_sums(size, sums, memory, [&](std::uint64_t j) { return double{row.weight(list[j])}; });
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads)
      put(i, drawn_by_sums(sums, size, draws.share(i)));
  } else {
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads)
      put(i, draws.below(size, i, size));
  }
}

// `list` has room for as many edges as the longest row has, `more` as draw_listed() needs.
template <int kThreads, class S>
__device__ void draw_targets(const S& sink, std::uint64_t* list, std::uint64_t* more,
                             RowMemory<kThreads>& memory) {
  const HopCounts counts = *sink.hop.counts;
  for (std::uint64_t at = blockIdx.x; at < counts.targets; at += gridDim.x) {
    const Target t = target_of(sink, counts, at);
    if (t.count == 0 || !draws_from<kThreads>(t.degree)) continue;
    const auto row = seen_row(sink.hop, sink.graph, t.row, t.tree);
    const std::uint64_t size = keep_in_order(
        t.degree, memory, [&](std::uint64_t p) { return row.is_eligible(p); },
        [&](std::uint64_t i, std::uint64_t p) { list[i] = p; });
    const std::uint64_t begin = sink.hop.offsets[at];
    draw_listed(sink.hop, row, draws_of(sink.hop, t), list, size, t.count, more, memory,
                [&](std::uint64_t i, std::uint64_t j) {
                  sink.put(begin + i, t.row + list[j], t.tree, counts.vertices);
                });
    __syncthreads();  // before the list is written again
  }
}

template <class S>
__global__ void __launch_bounds__(kShortThreads) draw_from_short_rows(const S sink) {
  __shared__ RowMemory<kShortThreads> memory;
  // A table has at least twice as many words as numbers are drawn, which are fewer than edges.
  __shared__ std::uint64_t list[kShortRow], more[2 * kShortRow];
  draw_targets(sink, list, more, memory);
}

// `scratch`: `list_words` and `more_words` for each block.
template <class S>
__global__ void __launch_bounds__(kLongThreads)
    draw_from_long_rows(const S sink, std::uint64_t* scratch, std::uint64_t list_words,
                        std::uint64_t more_words) {
  __shared__ RowMemory<kLongThreads> memory;
  std::uint64_t* const list = scratch + blockIdx.x * (list_words + more_words);
  draw_targets(sink, list, list + list_words, memory);
}

// Returns the words that draw_listed() needs besides the list.
std::uint64_t more_words(const HopArgs& hop, std::uint64_t max_degree) {
  if (!hop.draws_again() && hop.fanout >= max_degree) return 0;  // all edges are taken
  const bool table = !hop.draws_again() && !hop.values.last && hop.values.weights == nullptr;
  return table ? distinct_slots(std::min(hop.fanout, max_degree)) : max_degree;
}

// Blocks with lists in global memory: two per multiprocessor, if memory allows.
unsigned long_blocks(std::uint64_t words) {
  constexpr std::uint64_t kMost = GpuNeighbourSampler::kMostValueScratch / sizeof(std::uint64_t);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(kMost / words, 1, 264));
}

unsigned blocks_of(std::uint64_t targets) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(targets, 1, kMostBlocks));
}

}  // namespace

template <VertexId V>
void count_eligible(const HopArgs& hop, std::uint64_t targets, const GraphView<V>& graph,
                    std::uint64_t max_degree, cudaStream_t stream) {
  count_kernel<kShortThreads, V><<<blocks_of(targets), kShortThreads, 0, stream>>>(hop, graph);
  if (max_degree > kShortRow)
    count_kernel<kLongThreads, V><<<blocks_of(targets), kLongThreads, 0, stream>>>(hop, graph);
  check_cuda(cudaGetLastError(), "counting edges by values");
}

std::uint64_t value_scratch(const HopArgs& hop, std::uint64_t max_degree) {
  if (max_degree <= kShortRow) return 0;
  const std::uint64_t words = max_degree + more_words(hop, max_degree);
  return words * long_blocks(words);
}

template <class S>
void draw_by_values(const S& sink, std::uint64_t targets, std::uint64_t max_degree,
                    std::uint64_t* scratch, cudaStream_t stream) {
  draw_from_short_rows<S><<<blocks_of(targets), kShortThreads, 0, stream>>>(sink);
  if (max_degree <= kShortRow) return;
  const std::uint64_t more = more_words(sink.hop, max_degree);
  const unsigned blocks = std::min(blocks_of(targets), long_blocks(max_degree + more));
  draw_from_long_rows<S><<<blocks, kLongThreads, 0, stream>>>(sink, scratch, max_degree, more);
}

template void count_eligible(const HopArgs&, std::uint64_t, const GraphView<std::uint32_t>&,
                             std::uint64_t, cudaStream_t);
template void count_eligible(const HopArgs&, std::uint64_t, const GraphView<std::uint64_t>&,
                             std::uint64_t, cudaStream_t);
template void draw_by_values(const Sink<std::uint32_t, DirectPlaces<std::uint32_t>>&, std::uint64_t,
                             std::uint64_t, std::uint64_t*, cudaStream_t);
template void draw_by_values(const Sink<std::uint32_t, HashPlaces>&, std::uint64_t, std::uint64_t,
                             std::uint64_t*, cudaStream_t);
template void draw_by_values(const Sink<std::uint64_t, DirectPlaces<std::uint64_t>>&, std::uint64_t,
                             std::uint64_t, std::uint64_t*, cudaStream_t);
template void draw_by_values(const Sink<std::uint64_t, HashPlaces>&, std::uint64_t, std::uint64_t,
                             std::uint64_t*, cudaStream_t);

}  // namespace plait

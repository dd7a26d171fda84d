// Four ways to draw, by the kind of the hop:
//
//   in groups   without replacement, fan-outs up to 32: 8, 16 or 32 lanes of a warp per target, one
//     number per lane. All numbers are drawn at once, then settled as Floyd's algorithm would, one
//     after the other (draw.h). Number i gives way to `base` + i (base: degree - count) if an
//     earlier lane drew the same number, for then the number was chosen before, by that lane or by
//     a still earlier one; or if it is `base` + j of an earlier lane j that gave way. The first is
//     a match among lanes; the second is settled by ballots until nothing changes, which takes as
//     many as the longest chain of lanes, nearly always one or two.
//   in blocks   without replacement, greater fan-outs: a block per target (distinct.cuh).
//   by edge     all edges, or with replacement: a thread per edge, which searches its target. So a
//     vertex with a million edges is shared by the whole GPU. Draws by weight search the sums of
//     the row.
//   by values   all other draws by weights or times (value_draws.cuh).
#include <algorithm>
#include <bit>

#include "plait/base/cuda/warp.cuh"
#include "plait/sample/cuda/distinct.cuh"
#include "plait/sample/cuda/draw.cuh"
#include "plait/sample/cuda/sink.cuh"
#include "plait/sample/cuda/value_draws.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMostBlocks = 8192;

// Called by whole warps. Each `lanes` consecutive lanes share a target; lane i of these lanes draws
// number i. Returns its position among the target's edges, if it `draws`; else i.
__device__ std::uint64_t settle_in_warp(const HopArgs& hop, const Target& t, bool draws, unsigned i,
                                        unsigned lane) {
  const std::uint64_t base = t.degree - t.count;
  // A lane without a number comes after those of its group, which therefore do not ask for it.
  const std::uint64_t number = draws ? draws_of(hop, t).below(base + i + 1, i, t.degree) : i;
  const unsigned same = __any_sync(kAll, number >> 32 != 0)
                            ? __match_any_sync(kAll, static_cast<unsigned long long>(number))
                            : __match_any_sync(kAll, static_cast<unsigned>(number));
  const unsigned first = lane - i, before = ((1u << i) - 1) << first;
  bool gives_way = draws && (same & before) != 0;
  const bool linked = draws && !gives_way && number >= base && number - base < i;
  const unsigned link = linked ? first + static_cast<unsigned>(number - base) : 0;
  unsigned all = __ballot_sync(kAll, gives_way);
  for (unsigned last = ~all; all != last;) {
    last = all;
    gives_way = gives_way || (linked && (all >> link & 1) != 0);
    all = __ballot_sync(kAll, gives_way);
  }
  return draws ? (gives_way ? base + i : number) : i;
}

template <int kLanes, class S>
__global__ void __launch_bounds__(kThreads) draw_in_groups(const S sink) {
  constexpr unsigned kTargets = kWarp / kLanes;  // of a warp
  const HopCounts counts = *sink.hop.counts;
  const unsigned lane = threadIdx.x % kWarp, i = lane % kLanes;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kLanes);
  std::uint64_t first = (blockIdx.x * std::uint64_t{kThreads} + threadIdx.x) / kWarp * kTargets;
  for (; first < counts.targets; first += step) {
    const std::uint64_t at = first + lane / kLanes;
    Target t;
    std::uint64_t begin = 0;
    if (at < counts.targets) {
      t = target_of(sink, counts, at);
      begin = sink.hop.offsets[at];
    }
    const bool mine = i < t.count, draws = mine && t.degree > t.count;
    std::uint64_t position = i;
    if (__any_sync(kAll, draws)) position = settle_in_warp(sink.hop, t, draws, i, lane);
    if (mine) sink.put(begin + i, t.row + position, t.tree, counts.vertices);
  }
}

constexpr std::uint64_t kSharedSlots = 4096;  // 32 KB

// `tables`: one of `slots` words per block, or null if shared memory has the room.
template <class S>
__global__ void draw_in_blocks(const S sink, unsigned long long* tables, std::uint64_t slots) {
  extern __shared__ unsigned long long shared_table[];
  const HopCounts counts = *sink.hop.counts;
  FirstDraws firsts{tables != nullptr ? tables + blockIdx.x * slots : shared_table, 0};
  for (std::uint64_t at = blockIdx.x; at < counts.targets; at += gridDim.x) {
    const Target t = target_of(sink, counts, at);
    const std::uint64_t begin = sink.hop.offsets[at];
    const bool draws = t.degree > t.count;
    const VertexDraws numbers = draws_of(sink.hop, t);
    if (draws) {
      firsts.clear(t.count);
      firsts.enter_all(numbers, t.degree, t.count);
    }
    for (std::uint64_t i = threadIdx.x; i < t.count; i += blockDim.x)
      sink.put(begin + i, t.row + (draws ? settled(numbers, firsts, t.degree, t.count, i) : i),
               t.tree, counts.vertices);
    __syncthreads();  // before the table is emptied
  }
}

// Returns the target of edge e, which is in first .. last: the last that begins at e or before.
__device__ std::uint32_t target_at(const std::uint32_t* offsets, std::uint32_t first,
                                   std::uint32_t last, std::uint64_t e) {
  while (first < last) {
    const std::uint32_t middle = last - (last - first) / 2;
    if (offsets[middle] <= e)
      first = middle;
    else
      last = middle - 1;
  }
  return first;
}

// A block draws kThreads consecutive edges at a time. Two threads search the targets of the first
// and the last; all others search between these.
template <class S>
__global__ void __launch_bounds__(kThreads) draw_by_edge(const S sink) {
  __shared__ std::uint32_t ends[2];
  const HopCounts counts = *sink.hop.counts;
  const std::uint32_t* const offsets = sink.hop.offsets;
  const std::uint64_t edges = offsets[counts.targets];
  const bool all = !sink.hop.draws_again();
  for (std::uint64_t first = blockIdx.x * std::uint64_t{kThreads}; first < edges;
       first += std::uint64_t{gridDim.x} * kThreads) {
    if (threadIdx.x < 2)
      ends[threadIdx.x] = target_at(offsets, 0, counts.targets - 1,
                                    min(first + threadIdx.x * (kThreads - 1), edges - 1));
    __syncthreads();
    const std::uint64_t e = first + threadIdx.x;
    if (e < edges) {
      const std::uint32_t at = target_at(offsets, ends[0], ends[1], e);
      const Target t = target_of(sink, counts, at);
      const std::uint64_t i = e - offsets[at];
      std::uint64_t position = i;
      if (!all) {
        const VertexDraws draws = draws_of(sink.hop, t);
        const double* const sums = sink.hop.values.sums;
        position = sums != nullptr ? drawn_by_sums(sums + t.row, t.degree, draws.share(i))
                                   : draws.below(t.degree, i, t.degree);
      }
      sink.put(e, t.row + position, t.tree, counts.vertices);
    }
    __syncthreads();  // before `ends` is written again
  }
}

enum class Way { in_groups, in_blocks, by_edge, by_values };

Way way_of(const HopArgs& hop, std::uint64_t max_degree) {
  if (hop.values.any())
    return hop.draws_again() && hop.values.sums != nullptr ? Way::by_edge : Way::by_values;
  if (hop.replace || hop.fanout >= max_degree) return Way::by_edge;
  return hop.fanout <= kWarp ? Way::in_groups : Way::in_blocks;
}

unsigned blocks_of(std::uint64_t work, std::uint64_t of_block) {
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>((work + of_block - 1) / of_block, 1, kMostBlocks));
}

// Blocks with tables in global memory: at most 1 GB of them, and two per multiprocessor.
unsigned table_blocks(std::uint64_t slots) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>((std::uint64_t{1} << 27) / slots, 1, 264));
}

template <class S>
void launch_blocks(const S& sink, std::uint64_t targets, std::uint64_t* scratch,
                   cudaStream_t stream) {
  const std::uint64_t fanout = sink.hop.fanout, slots = distinct_slots(fanout);
  const bool shared = slots <= kSharedSlots;
  const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(std::bit_ceil(fanout), 512));
  const unsigned blocks =
      std::min(blocks_of(targets, 1), shared ? kMostBlocks : table_blocks(slots));
  auto* const tables = shared ? nullptr : reinterpret_cast<unsigned long long*>(scratch);
  draw_in_blocks<<<blocks, threads, shared ? slots * sizeof(std::uint64_t) : 0, stream>>>(
      sink, tables, slots);
}

}  // namespace

std::uint64_t draw_scratch(const HopArgs& hop, std::uint64_t max_degree) {
  const Way way = way_of(hop, max_degree);
  if (way == Way::by_values) return value_scratch(hop, max_degree);
  if (way != Way::in_blocks) return 0;
  const std::uint64_t slots = distinct_slots(hop.fanout);
  return slots <= kSharedSlots ? 0 : slots * table_blocks(slots);
}

template <VertexId V, class Places>
void draw_edges(const HopArgs& hop, const HopBounds& bounds, const GraphView<V>& graph,
                std::uint64_t max_degree, const Places& places, typename Places::Slot* slots,
                std::uint64_t* scratch, cudaStream_t stream) {
  if (bounds.edges == 0) return;
  using S = Sink<V, Places>;
  const S sink{hop, graph, places, slots};
  switch (way_of(hop, max_degree)) {
    case Way::in_groups:
      for_lanes<8>(hop.fanout, [&](auto lanes) {
        constexpr int kLanes = decltype(lanes)::value;
        draw_in_groups<kLanes, S>
            <<<blocks_of(bounds.targets, kThreads / kLanes), kThreads, 0, stream>>>(sink);
      });
      break;
    case Way::in_blocks:
      launch_blocks(sink, bounds.targets, scratch, stream);
      break;
    case Way::by_edge:
      draw_by_edge<S><<<blocks_of(bounds.edges, kThreads), kThreads, 0, stream>>>(sink);
      break;
    case Way::by_values:
      draw_by_values(sink, bounds.targets, max_degree, scratch, stream);
  }
  check_cuda(cudaGetLastError(), "drawing edges");
}

template void draw_edges(const HopArgs&, const HopBounds&, const GraphView<std::uint32_t>&,
                         std::uint64_t, const DirectPlaces<std::uint32_t>&, std::uint32_t*,
                         std::uint64_t*, cudaStream_t);
template void draw_edges(const HopArgs&, const HopBounds&, const GraphView<std::uint32_t>&,
                         std::uint64_t, const HashPlaces&, std::uint32_t*, std::uint64_t*,
                         cudaStream_t);
template void draw_edges(const HopArgs&, const HopBounds&, const GraphView<std::uint64_t>&,
                         std::uint64_t, const DirectPlaces<std::uint64_t>&, std::uint64_t*,
                         std::uint64_t*, cudaStream_t);
template void draw_edges(const HopArgs&, const HopBounds&, const GraphView<std::uint64_t>&,
                         std::uint64_t, const HashPlaces&, std::uint32_t*, std::uint64_t*,
                         cudaStream_t);

}  // namespace plait

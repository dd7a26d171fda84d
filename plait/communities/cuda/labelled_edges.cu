// A thread takes several edges, whose labels it asks for at the same time. The rows of a block's
// edges are found once by a search in all offsets, so that each edge searches few.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/lower_bound.h"
#include "plait/communities/cuda/labelled_edges.cuh"
#include "plait/communities/cuda/warp_vote.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256, kEdgesPerThread = 8;
constexpr EdgeOffset kChunk = EdgeOffset{kThreads} * kEdgesPerThread;
static_assert(kChunk < EdgeOffset{1} << 16);

unsigned chunks_of(EdgeOffset edges) {
  return static_cast<unsigned>((edges + kChunk - 1) / kChunk);
}

// Returns the row in which an edge lies, which is one of first .. last.
__device__ std::uint64_t row_of(const EdgeOffset* offsets, std::uint64_t first, std::uint64_t last,
                                EdgeOffset edge) {
  return lower_bound(offsets, first + 1, last + 1, edge + 1) - 1;
}

// The labels at both ends of a thread's edges, which stand kThreads apart; equal ones at places
// after the last edge. All threads of a block make it.
struct LabelledEnds {
  std::uint32_t a[kEdgesPerThread], b[kEdgesPerThread];
  bool any[kEdgesPerThread];

  // Marks in `read`, if it is not null, the vertices that rows list.
  __device__ LabelledEnds(const LabelledEdges& in, std::uint8_t* read) {
    __shared__ std::uint64_t bounds[2];
    const EdgeOffset begin = blockIdx.x * kChunk, end = min(begin + kChunk, in.edges);
    if (threadIdx.x % kWarp == 0 && threadIdx.x < 2 * kWarp)
      bounds[threadIdx.x / kWarp] =
          row_of(in.offsets, 0, in.rows - 1, threadIdx.x == 0 ? begin : end - 1);
    __syncthreads();
    std::uint32_t to[kEdgesPerThread];
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k) {
      const EdgeOffset e = begin + k * EdgeOffset{kThreads} + threadIdx.x;
      any[k] = e < end && (in.weights == nullptr || in.weights[e] != 0);
      to[k] = any[k] ? in.neighbours[e] : 0;
      a[k] = any[k] ? in.label_of_row(row_of(in.offsets, bounds[0], bounds[1], e)) : 0;
    }
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k) {
      b[k] = any[k] ? in.labels[to[k]] : 0;
      // Most have been marked before, and reading is cheaper.
      if (read != nullptr && any[k] && read[to[k]] == 0) read[to[k]] = 1;
    }
  }
  __device__ static EdgeOffset edge(int k) {
    return blockIdx.x * kChunk + k * EdgeOffset{kThreads} + threadIdx.x;
  }
  __device__ bool inside(int k) const { return any[k] && a[k] == b[k]; }
};

// Counts the edges between communities, and, by community, the edges inside it.
__global__ void __launch_bounds__(kThreads)
    count(const __grid_constant__ LabelledEdges in, Count* between, Count* inside,
          std::uint8_t* read) {
  using Sum = cub::BlockReduce<unsigned, kThreads>;
  __shared__ typename Sum::TempStorage scratch;
  __shared__ std::uint32_t common;
  const LabelledEnds ends(in, read);
  // In most blocks one community has most edges inside. The guess is the community of any of them.
  if (threadIdx.x < kWarp) {
    std::uint32_t any = kNoLabel;
#pragma unroll
    for (int k = 0; k < kEdgesPerThread; ++k)
      if (ends.inside(k)) any = ends.a[k];
    const unsigned found = __ballot_sync(kAll, any != kNoLabel);
    any = __shfl_sync(kAll, any, found == 0 ? 0 : __ffs(found) - 1);
    if (threadIdx.x == 0) common = any;
  }
  __syncthreads();
  const std::uint32_t guess = common;
  unsigned of_guess = 0, mine = 0;  // mine: edges between communities
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    const bool inner = ends.inside(k);
    mine += ends.any[k] && !inner;
    of_guess += inner && ends.a[k] == guess;
    const bool other = inner && ends.a[k] != guess;
    if (!__any_sync(kAll, other)) continue;
    const unsigned same = __match_any_sync(kAll, other ? ends.a[k] : kNoLabel);
    // lanes_before() would take eight registers more.
    if (other && (same & ((1u << threadIdx.x % kWarp) - 1)) == 0)
      atomicAdd(inside + ends.a[k], static_cast<Count>(__popc(same)));
  }
  // Both sums at once: a block has fewer than 2^16 edges.
  const unsigned all = Sum(scratch).Sum(mine << 16 | of_guess);
  if (threadIdx.x != 0) return;
  if (all >> 16 > 0) atomicAdd(between, static_cast<Count>(all >> 16));
  if ((all & 0xffff) > 0) atomicAdd(inside + guess, static_cast<Count>(all & 0xffff));
}

template <class Key>
__device__ Key key_of(std::uint32_t a, std::uint32_t b, int bits) {
  return static_cast<Key>(std::uint64_t{a} << bits | b);
}

// Writes the keys of edges between different labels.
template <bool kWeighted, class Key>
__global__ void __launch_bounds__(kThreads)
    write(const __grid_constant__ LabelledEdges in, const __grid_constant__ KeysOut<Key> out) {
  using Scan = cub::BlockScan<unsigned, kThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ Count begin;
  const bool both = !kWeighted && in.both;
  const LabelledEnds ends(in, nullptr);
  unsigned mine = 0, before = 0, all = 0;
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) mine += ends.a[k] != ends.b[k];
  Scan(scratch).ExclusiveSum(mine, before, all);
  if (threadIdx.x == 0) begin = atomicAdd(out.written, static_cast<Count>(all << both));
  __syncthreads();
  std::uint64_t at = begin + (before << both);
#pragma unroll
  for (int k = 0; k < kEdgesPerThread; ++k) {
    if (ends.a[k] == ends.b[k]) continue;
    if constexpr (kWeighted) out.weights[at] = in.weights[LabelledEnds::edge(k)];
    out.keys[at++] = key_of<Key>(ends.a[k], ends.b[k], in.bits);
    if (both) out.keys[at++] = key_of<Key>(ends.b[k], ends.a[k], in.bits);
  }
}

}  // namespace

void count_edges(const LabelledEdges& edges, Count* between, Count* inside, std::uint8_t* read,
                 cudaStream_t stream) {
  if (edges.edges > 0)
    count<<<chunks_of(edges.edges), kThreads, 0, stream>>>(edges, between, inside, read);
  check_launch();
}

template <class Key>
void write_keys(const LabelledEdges& edges, const KeysOut<Key>& out, cudaStream_t stream) {
  const unsigned blocks = chunks_of(edges.edges);
  if (blocks > 0 && out.weights != nullptr)
    write<true><<<blocks, kThreads, 0, stream>>>(edges, out);
  else if (blocks > 0)
    write<false><<<blocks, kThreads, 0, stream>>>(edges, out);
  check_launch();
}
template void write_keys(const LabelledEdges&, const KeysOut<std::uint32_t>&, cudaStream_t);
template void write_keys(const LabelledEdges&, const KeysOut<std::uint64_t>&, cudaStream_t);

}  // namespace plait

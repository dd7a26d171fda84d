// The kernels of sum_edges() on GPUs (operators.cuh). A group of kSumLanes threads adds the values
// of a row, or of a piece of a long row, in the order of ../edge_sums.h: it reads as many columns
// at once as a sector of memory has.
#pragma once

#include "plait/base/cuda/warp.cuh"
#include "plait/frontier/cuda/kernels.cuh"
#include "plait/frontier/edge_sums.h"

namespace plait::frontier {

template <class T, class F, class G>
struct EdgeSums {
  SlotEdges edges;
  std::uint64_t own;
  F f;
  G g;
  Pieces pieces;  // of long rows, those of a row in order
  T* of_pieces;   // their sums
  TwoSums* sums;

  // Returns the sum of `count` values, in the first lane. All lanes of a warp call it.
  template <class At>
  __device__ static T sum(std::uint64_t count, const At& at) {
    T value{};
#pragma unroll 4
    for (std::uint64_t k = threadIdx.x % kSumLanes; k < count; k += kSumLanes) value += at(k);
    for (int half = kSumLanes / 2; half > 0; half /= 2)
      value += __shfl_xor_sync(kAll, value, half, kSumLanes);
    return value;
  }
  __device__ T sum_of_edges(std::uint64_t row, EdgeOffset begin, EdgeOffset end) const {
    return sum(end - begin,
               [&](std::uint64_t k) { return f(row, edges.slots[begin + k], begin + k); });
  }
  // Adds the sums of this thread to those of all.
  __device__ void add(const TwoSums& mine) const {
    const auto first = sum_of_warp(static_cast<unsigned long long>(mine.first));
    const auto second = sum_of_warp(static_cast<unsigned long long>(mine.second));
    if (threadIdx.x % kWarp != 0) return;
    if (first != 0) take_sum(&sums->first, std::uint64_t{first});
    if (second != 0) take_sum(&sums->second, std::uint64_t{second});
  }
};

// Calls work(i, begins) for all i below `count`, a group each; `begins` tells the group's first
// thread. All lanes of a warp take part in the last rounds, with numbers that are too high.
template <class Work>
__device__ void for_groups(std::uint64_t count, const Work& work) {
  constexpr std::uint64_t kGroups = kWarp / kSumLanes;
  const std::uint64_t end = (count + kGroups - 1) / kGroups * kWarp;
  for (std::uint64_t i = thread(); i < end; i += threads()) work(i / kSumLanes, i % kSumLanes == 0);
}

template <class Sums>
__global__ void __launch_bounds__(kThreads) sum_rows_of_edges(const Sums s) {
  TwoSums mine;
  for_groups(s.own, [&](std::uint64_t row, bool first) {
    EdgeOffset begin = 0, end = 0;
    if (row < s.own) begin = s.edges.begin[row], end = s.edges.end[row];
    const bool is_long = end - begin > kSumPiece;
    if (is_long && first) s.pieces.add(static_cast<std::uint32_t>(row), end - begin, kSumPiece);
    const auto sum = s.sum_of_edges(row, begin, is_long ? begin : end);
    if (first && !is_long && row < s.own) mine.add(s.g(row, sum));
  });
  s.add(mine);
}

template <class Sums>
__global__ void __launch_bounds__(kThreads) sum_pieces(const Sums s) {
  const std::uint64_t count = *s.pieces.count;
  for_groups(count, [&](std::uint64_t i, bool first) {
    const std::uint64_t piece = i < count ? s.pieces.of[i] : 0;
    const auto row = static_cast<std::uint32_t>(piece);
    const EdgeOffset begin = s.edges.begin[row] + (piece >> 32) * kSumPiece;
    const auto sum =
        s.sum_of_edges(row, begin, i < count ? min(s.edges.end[row], begin + kSumPiece) : begin);
    if (first && i < count) s.of_pieces[i] = sum;
  });
}

// A group has the pieces of a row whose first is at i.
template <class Sums>
__global__ void __launch_bounds__(kThreads) sum_long_rows(const Sums s) {
  TwoSums mine;
  const std::uint64_t count = *s.pieces.count;
  for_groups(count, [&](std::uint64_t i, bool first) {
    const bool begins = i < count && s.pieces.of[i] >> 32 == 0;
    const std::uint64_t row = begins ? s.pieces.of[i] : 0;
    const std::uint64_t pieces = begins ? (s.edges.degree(row) + kSumPiece - 1) / kSumPiece : 0;
    const auto sum = s.sum(pieces, [&](std::uint64_t k) { return s.of_pieces[i + k]; });
    if (first && begins) mine.add(s.g(row, sum));
  });
  s.add(mine);
}

}  // namespace plait::frontier

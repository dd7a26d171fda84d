// How one warp sums edges of a row, several neighbours at once. Internal to this room.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plait/kernels/cuda/spmm_rows.cuh"

namespace plait {

inline constexpr int kInFlight = 4;  // loads of x per lane

// Adds the sums of lanes that work on different neighbours of the same group.
template <int kLanes, int kShare, int kVec>
__device__ void add_over_lanes(float (&sum)[kVec]) {
#pragma unroll
  for (int distance = kLanes; distance < kShare; distance *= 2)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] += __shfl_xor_sync(kAll, sum[i], distance);
}

// Adds `edges` edges from edge `begin` on to `sum`, which all lanes of the same columns then have.
// The lanes of the warp are split over several neighbours, whose sums are added at the end. The
// whole warp calls this.
template <class X, int kVec, int kLanes, bool kWeighted>
__device__ __forceinline__ void sum_edges(const SpmmView& a, EdgeOffset begin, std::uint32_t edges,
                                          float (&sum)[kVec]) {
  using Load = Piece<X, kVec>;
  constexpr int kNeighbours = kWarp / kLanes;  // that the warp reads at once
  constexpr int kSteps = kLanes;               // for one load of columns
  constexpr int kBatch = kSteps < kInFlight ? kSteps : kInFlight;
  // Measured on an H200: with these, 5% faster in wide slices of fp32, 10% slower elsewhere.
  constexpr bool kOrdered = std::is_same_v<X, float> && kVec > 1 && kLanes >= 8;
  using Stride = std::conditional_t<kOrdered, std::uint32_t, std::uint64_t>;

  const int lane = threadIdx.x % kWarp, neighbour = lane / kLanes;
  const X* const x = first_element<X, kVec, kLanes>(a);
  const Slot* const columns = a.columns + begin;
  const float* const weights = kWeighted ? a.weights + begin : nullptr;

  Slot next = lane < edges ? __ldcs(columns + lane) : 0;
  float next_weight = kWeighted && lane < edges ? __ldcs(weights + lane) : 0;
  for (std::uint32_t done = 0; done < edges; done += kWarp) {
    const Slot here = next;
    const float weight = next_weight;
    const std::uint32_t ahead = done + kWarp + lane;
    next = ahead < edges ? __ldcs(columns + ahead) : 0;
    if constexpr (kWeighted) next_weight = ahead < edges ? __ldcs(weights + ahead) : 0;

    const std::uint32_t left = edges - done;
    const auto batch = [&](int step, auto readable) {
      typename Load::Raw loaded[kBatch];
      [[maybe_unused]] float factor[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int edge = (step + k) * kNeighbours + neighbour;
        const Slot slot = __shfl_sync(kAll, here, edge);
        if constexpr (kWeighted) factor[k] = __shfl_sync(kAll, weight, edge);
        loaded[k] = typename Load::Raw{};
        if (readable(edge))
          loaded[k] = Load::template load<kOrdered>(x + std::uint64_t{slot} *
                                                            static_cast<Stride>(a.x_stride));
      }
      add_batch<kWeighted, Load>(sum, loaded, factor);
    };
    if (left >= kWarp) {
#pragma unroll
      for (int step = 0; step < kSteps; step += kBatch) batch(step, [](int) { return true; });
    } else {
      for (int step = 0; step * kNeighbours < left && step < kSteps; step += kBatch)
        batch(step, [&](int edge) { return edge < left; });
    }
  }
  add_over_lanes<kLanes, kWarp>(sum);
}

}  // namespace plait

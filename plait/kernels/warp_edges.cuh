// A warp's way through the edges of its neighbour group: what kernels share that read a row of x an
// edge in fp32 and do more with it than to add it. As in spmm.cu, the lanes of a warp are split
// over several edges where a slice of a row is narrower than the warp, kLanes for each, and every
// lane has kInFlight rows under way before it uses the first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "plait/kernels/row_groups_cuda.h"

namespace plait {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;  // a block
inline constexpr int kInFlight = 4;
inline constexpr unsigned kAll = 0xffffffffu;

// Edges whose rows a lane reads at once.
struct EdgeBatch {
  Slot slot[kInFlight];
  std::uint32_t mark[kInFlight];
  bool there[kInFlight];  // else behind the group's last edge
};

struct NoMark {
  __device__ std::uint32_t operator()(Slot) const { return 0; }
};

// mark(slot) is asked once for an edge, by one lane, and known to all that work on it. The whole
// warp calls this.
template <int kLanes, class Mark, class Work>
__device__ __forceinline__ void for_edges(const RowGroup& group, const Slot* columns, Mark&& mark,
                                          Work&& work) {
  static_assert(kLanes >= kInFlight && kLanes <= kWarp);
  constexpr int kNeighbours = kWarp / kLanes;  // that the warp reads at once
  const int lane = threadIdx.x % kWarp, neighbour = lane / kLanes;
  columns += group.begin;
  Slot next = lane < group.edges ? __ldcs(columns + lane) : 0;
  for (std::uint32_t done = 0; done < group.edges; done += kWarp) {
    const std::uint32_t left = group.edges - done, ahead = done + kWarp + lane;
    const Slot here = next;
    const std::uint32_t mark_here = lane < left ? mark(here) : 0;
    next = ahead < group.edges ? __ldcs(columns + ahead) : 0;
    for (int step = 0; step < kLanes && step * kNeighbours < left; step += kInFlight) {
      EdgeBatch batch{};
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        const int edge = (step + k) * kNeighbours + neighbour;
        batch.slot[k] = __shfl_sync(kAll, here, edge);
        if constexpr (!std::is_same_v<std::decay_t<Mark>, NoMark>)
          batch.mark[k] = __shfl_sync(kAll, mark_here, edge);
        batch.there[k] = edge < left;
      }
      work(batch);
    }
  }
}

// kVec neighbouring floats, loaded at once; four stand at a multiple of 16 bytes.
template <int kVec>
struct Floats {
  static_assert(kVec == 1 || kVec == 4);
  float value[kVec];

  static __device__ Floats load(const float* from) {
    if constexpr (kVec == 4) {
      const float4 four = __ldg(reinterpret_cast<const float4*>(from));
      return {four.x, four.y, four.z, four.w};
    } else {
      return {__ldg(from)};
    }
  }
};

// Whether rows can be read four floats at a time.
inline bool on_16_bytes(const float* x, std::uint64_t stride) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && stride % 4 == 0;
}

// Where a kernel works: a warp a group, and a row of blocks for each slice of kLanes x kVec
// columns.
template <int kVec, int kLanes>
dim3 grid_of(std::uint32_t groups, std::uint64_t width) {
  constexpr unsigned kWarps = kThreads / kWarp, kSlice = kLanes * kVec;
  return dim3((groups + kWarps - 1) / kWarps, static_cast<unsigned>((width + kSlice - 1) / kSlice));
}

// Calls launch with constants: the floats that a lane reads at once, and the lanes of an edge, as
// many as a row of `width` needs.
template <class Launch>
void with_lanes(bool vectors, std::uint64_t width, Launch&& launch) {
  const auto choose = [&](auto vec) {
    const std::uint64_t pieces = (width + vec() - 1) / vec();
    switch (std::bit_ceil(std::clamp<std::uint64_t>(pieces, kInFlight, kWarp))) {
      case 4:
        return launch(vec, std::integral_constant<int, 4>{});
      case 8:
        return launch(vec, std::integral_constant<int, 8>{});
      case 16:
        return launch(vec, std::integral_constant<int, 16>{});
      default:
        return launch(vec, std::integral_constant<int, 32>{});
    }
  };
  vectors ? choose(std::integral_constant<int, 4>{}) : choose(std::integral_constant<int, 1>{});
}

}  // namespace plait

// A warp's way through the edges of its neighbour group, shared by kernels that read a row of x per
// edge in fp32 and do more with it than to add it. As in spmm.cu, the lanes of a warp are split
// over several edges if a slice of a row is narrower than the warp, kLanes for each, and every lane
// has kInFlight rows under way before it uses the first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plait/base/cuda/warp.cuh"
#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {

inline constexpr int kThreads = 256;  // per block
inline constexpr int kInFlight = 4;

// Edges whose rows a lane reads at once.
struct EdgeBatch {
  Slot slot[kInFlight];
  std::uint32_t mark[kInFlight];
  bool there[kInFlight];  // false: behind the group's last edge
};

// The mark of kernels that need none.
struct NoMark {
  __device__ std::uint32_t operator()(Slot, EdgeOffset) const { return 0; }
};

// Calls work(batch) for all edges of a group. mark(slot, number of the edge) is called once per
// edge, by one lane, and its result is known to all lanes that work on the edge. The whole warp
// calls this.
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
    const std::uint32_t mark_here = lane < left ? mark(here, group.begin + done + lane) : 0;
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

// kVec neighbouring floats, loaded at once through the read-only cache; four stand at a multiple of
// 16 bytes.
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

// Returns the grid of a kernel: one warp per group in x, and one row of blocks in y for each slice
// of kLanes x kVec columns.
template <int kVec, int kLanes>
dim3 grid_of(std::uint32_t groups, std::uint64_t width) {
  constexpr unsigned kWarps = kThreads / kWarp, kSlice = kLanes * kVec;
  return dim3((groups + kWarps - 1) / kWarps, static_cast<unsigned>((width + kSlice - 1) / kSlice));
}

// Calls launch with two constants: the floats that a lane reads at once (4 if `vectors`, else 1),
// and the lanes of an edge, as many as a row of `width` needs.
template <class Launch>
void with_lanes(bool vectors, std::uint64_t width, Launch&& launch) {
  const auto choose = [&](auto vec) {
    for_lanes<kInFlight>((width + vec() - 1) / vec(), [&](auto lanes) { launch(vec, lanes); });
  };
  vectors ? choose(std::integral_constant<int, 4>{}) : choose(std::integral_constant<int, 1>{});
}

}  // namespace plait

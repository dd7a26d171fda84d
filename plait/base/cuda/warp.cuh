// Constants of a warp, sums over its lanes, and the choice of how many of them work on one row.
#pragma once

#include <cstdint>
#include <type_traits>

namespace plait {

inline constexpr int kWarp = 32;               // lanes
inline constexpr unsigned kAll = 0xffffffffu;  // the mask of all lanes

// Returns the mask of the lanes before this one.
__device__ inline unsigned lanes_before() { return (1u << threadIdx.x % kWarp) - 1; }

// Returns the sum of a whole number of each lane. All lanes call it and receive the sum.
template <class Number>
__device__ Number sum_of_warp(Number value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kAll, value, distance);
  return value;
}

// Calls launch(std::integral_constant<int, lanes>) with the least power of two from kLeast to kWarp
// that is at least `pieces`, or with kWarp.
template <int kLeast, class Launch>
void for_lanes(std::uint64_t pieces, Launch&& launch) {
  if constexpr (kLeast < kWarp) {
    if (pieces > kLeast) return for_lanes<2 * kLeast>(pieces, launch);
  }
  launch(std::integral_constant<int, kLeast>{});
}

// Tells whether rows that begin `stride` floats after each other can be read four floats at a time.
inline bool on_16_bytes(const float* x, std::uint64_t stride = 4) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && stride % 4 == 0;
}

}  // namespace plait

// Constants of a warp, and the choice of how many of its lanes work on one row.
#pragma once

#include <cstdint>
#include <type_traits>

namespace plait {

inline constexpr int kWarp = 32;               // lanes
inline constexpr unsigned kAll = 0xffffffffu;  // the mask of all lanes

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

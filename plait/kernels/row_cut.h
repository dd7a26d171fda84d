// How a row is cut into neighbour groups, the pieces of work of one warp each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

// Edges that a warp loads at once; groups but the last of a row are multiples of it.
inline constexpr std::uint32_t kGroupStep = 32;
// Edges a row, on average, up to which several groups share a warp (spmm.cu).
inline constexpr std::uint32_t kShortGroup = 32;

// Warps that a GPU runs at once, about (an H200).
inline constexpr std::uint32_t kWarpsAtOnce = 5000;

// Edges a group, at most, for rows of `edges` in all: about four times those of a mean row, 64 to
// 2,048, and an eighth of what one warp has to do if all work on the sum at once. A warp that works
// through a hub's long group when all others have ended holds up the whole sum, and the less there
// is to sum, the more that is; groups that cut most rows cost a second pass over their sums
// (measured on an H200; docs/performance.md).
constexpr std::uint32_t group_size(EdgeOffset edges, std::uint64_t rows) {
  constexpr EdgeOffset kLeast = 64, kMost = 2048;
  const EdgeOffset of_rows =
      std::bit_ceil(std::max<EdgeOffset>(4 * edges / std::max<std::uint64_t>(rows, 1), 1));
  const EdgeOffset of_warps = (edges / kWarpsAtOnce / 8 + kGroupStep - 1) / kGroupStep * kGroupStep;
  return static_cast<std::uint32_t>(std::clamp(std::min(of_rows, of_warps), kLeast, kMost));
}

// The same where sums must not depend on which other rows there are.
inline constexpr std::uint32_t kFixedGroup = 512;

struct RowCut {
  std::uint32_t groups;      // at least 1: a row without edges has a group too, which writes zeros
  std::uint32_t group_size;  // edges in each group but the last
};

// A row of at most `most` edges is one group, a longer one is cut into groups of equal size, so
// that no warp works on a hub alone (GNNAdvisor, section 5.1, cuts all rows; a whole row needs no
// second pass over its sum).
PLAIT_HOST_DEVICE constexpr RowCut cut_row(EdgeOffset degree, std::uint32_t most) {
  if (degree <= most) return {1, most};
  const EdgeOffset wanted = (degree + most - 1) / most;
  const EdgeOffset even = (degree + wanted - 1) / wanted;
  const auto size = static_cast<std::uint32_t>((even + kGroupStep - 1) / kGroupStep * kGroupStep);
  return {static_cast<std::uint32_t>((degree + size - 1) / size), size};
}

}  // namespace plait

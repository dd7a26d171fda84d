// The rule that cuts a row into neighbour groups, the pieces of work of one warp each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/machine/machine.h"

namespace plait {

// Edges that a warp loads at once. All groups of a row but the last hold a multiple of it.
inline constexpr std::uint32_t kGroupStep = 32;
// Returns the most edges of a group, for `rows` rows with `edges` edges in all: about four times
// the edges of a mean row, but no more than an eighth of the work of one warp if all warps work on
// the sum at once; 64 to 2,048. A warp that works through a hub's long group when all others have
// ended holds up the whole sum, and the shorter the sum, the more this costs. Groups that cut most
// rows cost a second pass over their sums (measured on an H200; docs/performance.md).
inline std::uint32_t group_size(EdgeOffset edges, std::uint64_t rows) {
  constexpr EdgeOffset kLeast = 64, kMost = 2048;
  const EdgeOffset of_rows =
      std::bit_ceil(std::max<EdgeOffset>(4 * edges / std::max<std::uint64_t>(rows, 1), 1));
  const EdgeOffset of_warps =
      (edges / machine().warps_at_once / 8 + kGroupStep - 1) / kGroupStep * kGroupStep;
  return static_cast<std::uint32_t>(std::clamp(std::min(of_rows, of_warps), kLeast, kMost));
}

// The most edges of a short group. Several short groups share a warp where groups are short on
// average. A large graph is bound by how much is under way at once, a small one by the time of its
// longest group, for which a whole warp is better (measured on an H200).
inline constexpr std::uint32_t kShortInSmall = 8, kShortInLarge = 32;
inline std::uint32_t short_group(EdgeOffset edges) {
  return edges <= 256 * EdgeOffset{machine().warps_at_once} ? kShortInSmall : kShortInLarge;
}

// The most edges of a row that is not cut in a small matrix (RowGroups::whole()): eight for each
// lane of a warp.
inline constexpr std::uint32_t kWholeRow = 256;

// The most edges of a group if sums must not depend on which other rows there are.
inline constexpr std::uint32_t kFixedGroup = 512;

// A row that was cut: its partial sums are number first .. first + count - 1. Above kFew it is a
// hub.
struct CutRow {
  static constexpr std::uint32_t kFew = 16;

  std::uint32_t row, first, count;
};

// The groups of one row.
struct RowCut {
  std::uint32_t groups;      // at least 1: a row without edges has a group too, which writes zeros
  std::uint32_t group_size;  // edges in each group but the last
};

// The numbers of the groups of a matrix and of the rows that were cut, on which launches of kernels
// depend.
struct GroupCounts {
  std::uint32_t groups = 0, long_groups = 0;  // the short ones (short_group()) are the last
  std::uint32_t few = 0, hubs = 0;            // rows that were cut, into few groups and into many
  std::uint32_t partial_sums = 0;
  EdgeOffset edges = 0;  // or an upper bound (RowGroups::most_edges())
};

// The most groups of one row, beyond which they take longer to add than a larger group takes.
inline constexpr EdgeOffset kMostGroups = 4096;

// Cuts a row of `degree` edges. A row of at most `most` edges is one group; a longer one is cut
// into groups of equal size, so that no warp works on a hub alone. (GNNAdvisor, section 5.1, cuts
// all rows; a whole row needs no second pass over its sum.)
PLAIT_HOST_DEVICE constexpr RowCut cut_row(EdgeOffset degree, std::uint32_t most) {
  if (degree <= most) return {1, most};
  const EdgeOffset wanted =
      (degree + most - 1) / most < kMostGroups ? (degree + most - 1) / most : kMostGroups;
  const EdgeOffset even = (degree + wanted - 1) / wanted;
  const auto size = static_cast<std::uint32_t>((even + kGroupStep - 1) / kGroupStep * kGroupStep);
  return {static_cast<std::uint32_t>((degree + size - 1) / size), size};
}

}  // namespace plait

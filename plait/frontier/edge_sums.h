// The order in which the values of a row's edges are added (sum_edges() of operators.h). It depends
// on nothing but their number, so that sums of floating-point numbers have the same bits on any
// number of ranks and threads, and on either device.
//
// Values are dealt out to kSumLanes lanes in turn, each lane adds its own in their order, and the
// lanes are added in pairs. A row of more than kSumPiece edges is cut into pieces of so many. Each
// is added so, and then the sums of the pieces in the same way.
#pragma once

#include <cstdint>

namespace plait {

inline constexpr std::uint64_t kSumLanes = 8, kSumPiece = 512;

// Returns the sum of at(i) for all i below `count`, by one thread for all lanes.
template <class T, class At>
T sum_of_lanes(std::uint64_t count, const At& at) {
  T lanes[kSumLanes] = {};
  std::uint64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes)
    for (std::uint64_t lane = 0; lane < kSumLanes; ++lane) lanes[lane] += at(i + lane);
  for (std::uint64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += at(i);
  for (std::uint64_t half = kSumLanes / 2; half > 0; half /= 2)
    for (std::uint64_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace plait

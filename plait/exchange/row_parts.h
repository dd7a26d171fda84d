// Rows that ranks send each other, other ones each time: those of cooperative batches
// (sample/cooperative.h).
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

namespace plait {

// Rows in one memory, a part for each rank, in the order of ranks without gaps.
template <class Float>
struct RowParts {
  Float* rows = nullptr;
  std::span<const std::uint64_t> counts;  // by rank: numbers of rows

  std::uint64_t count() const {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
};

}  // namespace plait

// Rows of cooperative batches (sample/cooperative.h) that ranks send each other. Each exchange has
// other rows.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

namespace plait {

// Rows in one memory: one part per rank, in the order of ranks, without gaps.
template <class Float>
struct RowParts {
  Float* rows = nullptr;
  std::span<const std::uint64_t> counts;  // the number of rows of each rank

  std::uint64_t count() const {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
};

}  // namespace plait

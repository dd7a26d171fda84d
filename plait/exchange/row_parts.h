// Rows of cooperative batches (sample/cooperative.h) that ranks send each other. Each exchange has
// other rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace plait {

// Rows of any plain type in one memory: one part per rank, in the order of ranks, without gaps.
// Byte: std::byte, or const std::byte for rows that are sent.
template <class Byte>
struct RowParts {
  Byte* rows = nullptr;
  std::span<const std::uint64_t> counts;  // the number of rows of each rank
  std::uint64_t row_bytes = 0;

  std::uint64_t bytes() const {
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) * row_bytes;
  }
  // Returns the rows of each rank.
  std::vector<std::span<Byte>> parts() const {
    std::vector<std::span<Byte>> parts;
    Byte* from = rows;
    for (const std::uint64_t count : counts) {
      parts.emplace_back(from, count * row_bytes);
      from += parts.back().size();
    }
    return parts;
  }
};
using SentRows = RowParts<const std::byte>;
using ReceivedRows = RowParts<std::byte>;

}  // namespace plait

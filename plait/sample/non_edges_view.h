// The arrays of NonEdges, and what a draw finds in them: one function for the CPU and the GPU.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/base/random.h"

namespace plait {

// A pair of numbers: of vertices of at most 2^32 rows and columns each.
struct VertexPair {
  std::uint64_t row, column;
  friend bool operator==(const VertexPair&, const VertexPair&) = default;
};

// Nothing is owned.
struct NonEdgesView {
  std::uint64_t rows = 0, columns = 0;
  bool ascending = false;
  const std::uint64_t* before = nullptr;    // pairs in the rows before each, rows + 1
  const EdgeOffset* offsets = nullptr;      // of `excluded`, rows + 1
  const std::uint32_t* excluded = nullptr;  // columns of each row that are in no pair, ascending

  PLAIT_HOST_DEVICE std::uint64_t count() const { return before[rows]; }
  PLAIT_HOST_DEVICE std::uint64_t count(std::uint64_t row) const {
    return before[row + 1] - before[row];
  }

  // Returns pair `i` of all.
  PLAIT_HOST_DEVICE VertexPair pair(std::uint64_t i) const {
    std::uint64_t first = 0, last = rows;  // the row is first .. last - 1
    while (last - first > 1) {
      const std::uint64_t middle = first + (last - first) / 2;
      if (before[middle] <= i)
        first = middle;
      else
        last = middle;
    }
    return {first, column(first, i - before[first])};
  }

  // Returns the neighbour in pair `i` of a row. The excluded column at place j has `column - least
  // - j` columns of pairs before it.
  PLAIT_HOST_DEVICE std::uint64_t column(std::uint64_t row, std::uint64_t i) const {
    const std::uint64_t least = ascending ? row + 1 : 0, begin = offsets[row];
    std::uint64_t first = begin, last = offsets[row + 1];
    while (first < last) {
      const std::uint64_t middle = first + (last - first) / 2;
      if (excluded[middle] - least - (middle - begin) > i)
        last = middle;
      else
        first = middle + 1;
    }
    return least + i + (first - begin);
  }
};

// Returns random number `i` of a draw of pairs, below `bound`.
PLAIT_HOST_DEVICE inline std::uint64_t non_edge_number(const Philox& philox, std::uint64_t i,
                                                       std::uint64_t bound) {
  constexpr std::uint64_t kUse = 0x4E6F6E65646765u;  // apart from other uses of the key
  const Philox::Block words = philox(i, kUse);
  return uniform_below(bound, words[0], words[1]);
}

}  // namespace plait

// Rows of several ranks in the memory of one process, for tests of gathers.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "plait/store/gather_rows.h"

namespace plait::test {

struct RowsCase {
  int ranks = 1;
  std::uint64_t rows = 100;  // of all ranks
  std::uint64_t stride = 0;  // bytes
  std::uint64_t before = 0;  // bytes before each rank's first row
  bool scattered = false;    // owner and row of each id instead of ranges
};

// Each rank has its bytes in `memory`. Ranges have all sizes, and one of three ranks or more is
// empty.
struct RankedRows {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::uint32_t> owner, row;
  StoredRows view;  // of `memory`

  explicit RankedRows(const RowsCase& c, unsigned seed = 1) {
    std::mt19937 random(seed);
    view.stride = c.stride, view.rows = c.rows, view.ranks = c.ranks;
    std::vector<std::uint64_t> sizes(static_cast<std::size_t>(c.ranks));
    for (std::uint64_t id = 0; id < c.rows; ++id) {
      const std::uint64_t r = random() % static_cast<unsigned>(c.ranks);
      const std::uint64_t to = c.ranks > 2 && r == 1 ? 2 : r;
      owner.push_back(static_cast<std::uint32_t>(to));
      row.push_back(static_cast<std::uint32_t>(sizes[to]++));
    }
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      view.starts[r + 1] = view.starts[r] + sizes[r];
      auto& bytes = memory.emplace_back(c.before + sizes[r] * c.stride);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      view.base[r] = bytes.data() + c.before;
    }
    if (c.scattered) view.owner = owner.data(), view.row = row.data();
  }

  // Replaces the bytes by numbers of `elements` per row whose sums are exact.
  void fill_floats(std::uint64_t before) {
    unsigned at = 0;
    for (auto& bytes : memory)
      for (std::size_t k = before; k + sizeof(float) <= bytes.size(); k += sizeof(float)) {
        const float value = static_cast<float>(at++ % 33) / 8 - 2;
        std::memcpy(bytes.data() + k, &value, sizeof(value));
      }
  }
};

inline std::vector<std::uint64_t> random_ids(std::uint64_t rows, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint64_t> ids(rows == 0 ? 0 : count);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = i % 5 == 4 ? ids[random() % i] : random() % rows;
  return ids;
}

}  // namespace plait::test

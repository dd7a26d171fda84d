// Rows of several ranks in the memory of one process, for tests of gathers.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "plait/table/gather_rows.h"

namespace plait::test {

// Returns all types of rows, and the types that are gathered as numbers.
inline std::vector<DType> row_types() {
  std::vector<DType> types;
  for (std::size_t value = 0; value < std::size(kDTypes); ++value)
    types.push_back(static_cast<DType>(value));
  return types;
}
inline std::vector<DType> number_types() {
  std::vector<DType> types = row_types();
  std::erase(types, DType::raw);
  return types;
}

struct RowsCase {
  int ranks = 1;
  std::uint64_t rows = 100;  // of all ranks
  std::uint64_t stride = 0;  // bytes
  std::uint64_t before = 0;  // bytes before each rank's first row
  bool scattered = false;    // owner and row of each id instead of ranges
  bool dealt = false;        // ids dealt out to two ranks or more, instead of ranges
  bool hot = false;          // a third of the rows have copies, whose bytes are others
};

// Each rank has its bytes in `memory`, and so have the copies of hot rows, behind them. Ranges have
// all sizes, and one of three ranks or more is empty.
struct RankedRows {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::uint32_t> owner, row;
  std::vector<HotIds> hot;
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
    if (c.dealt && c.ranks > 1) {
      const auto ranks = static_cast<std::uint64_t>(c.ranks);
      view.dealt = ~std::uint64_t{0} / ranks + 1;
      sizes.assign(ranks, (c.rows + ranks - 1) / ranks);
    }
    if (c.hot) sizes.push_back(choose_hot(c.rows, random));
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      if (r < static_cast<std::size_t>(c.ranks)) view.starts[r + 1] = view.starts[r] + sizes[r];
      auto& bytes = memory.emplace_back(c.before + sizes[r] * c.stride);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      view.base[r] = bytes.data() + c.before;
    }
    if (c.scattered) view.owner = owner.data(), view.row = row.data();
    if (c.hot) view.hot = hot.data();
  }

  // Returns the number of hot rows.
  std::uint64_t choose_hot(std::uint64_t rows, std::mt19937& random) {
    std::uint64_t count = 0;
    for (std::uint64_t id = 0; id < rows; ++id) {
      if (id % 64 == 0) hot.push_back({0, count});
      if (random() % 3 != 0) continue;
      hot.back().bits |= std::uint64_t{1} << id % 64;
      ++count;
    }
    return count;
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

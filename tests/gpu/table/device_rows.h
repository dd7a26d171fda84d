// Rows of several ranks in the memory of one GPU, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "tests/support/stored_rows.h"

namespace plait::test {

// The same rows in memory of the GPU.
struct DeviceRows {
  std::vector<DeviceArray<std::byte>> memory;
  DeviceArray<std::uint32_t> owner, row;
  DeviceArray<HotIds> hot;
  StoredRows view;

  DeviceRows(const RankedRows& rows, const RowsCase& c)
      : owner(std::span(rows.owner)),
        row(std::span(rows.row)),
        hot(std::span(rows.hot)),
        view(rows.view) {
    for (std::size_t r = 0; r < rows.memory.size(); ++r) {
      memory.emplace_back(std::span(rows.memory[r]));
      view.base[r] = memory[r].data() + c.before;
    }
    if (c.hot) view.hot = hot.data();
    if (c.scattered) view.owner = owner.data(), view.row = row.data();
  }
};

// Floats have the same bits from `first` on, or are no numbers, whose bits are the GPU's own.
inline void expect_same_floats(const std::vector<std::byte>& found,
                               const std::vector<std::byte>& expected, std::size_t first = 0) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = first; k + sizeof(float) <= found.size(); k += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, found.data() + k, sizeof(a));
    std::memcpy(&b, expected.data() + k, sizeof(b));
    ASSERT_TRUE(std::memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b)))
        << k << ": " << a << ", not " << b;
  }
}

}  // namespace plait::test

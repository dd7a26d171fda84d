// Checks that a generated graph is simple and symmetric.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plait/graph/csr.h"

namespace plait::test {

// Rows ascend without repeats, no row holds itself, every edge has its reverse.
inline void expect_simple_and_symmetric(const Csr32& graph) {
  for (std::uint64_t v = 0; v < graph.vertices(); ++v) {
    const auto row = graph.row(v);
    ASSERT_TRUE(std::ranges::adjacent_find(row, std::greater_equal<>{}) == row.end());
    for (const std::uint32_t u : row) {
      ASSERT_LT(u, graph.vertices());
      ASSERT_NE(u, v);
      ASSERT_TRUE(std::ranges::binary_search(graph.row(u), static_cast<std::uint32_t>(v)));
    }
  }
}

}  // namespace plait::test

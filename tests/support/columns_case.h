// The columns of a sample, from their definition.
#pragma once

#include "plait/sample/columns.h"

namespace plait::test {

// The arrays of SampleColumns.
struct Columns {
  std::vector<std::int64_t> row, col, edge, node, tree;

  SampleColumns view() {
    return {row.data(), col.data(), edge.data(), node.data(), tree.empty() ? nullptr : tree.data()};
  }
  friend bool operator==(const Columns&, const Columns&) = default;
};

inline Columns columns_of(const Sample& sample) {
  Columns columns;
  for (const Sample::Hop& hop : sample.hops)
    for (std::uint64_t t = 0; t < hop.targets(); ++t)
      for (std::uint32_t e = hop.offsets[t]; e < hop.offsets[t + 1]; ++e) {
        columns.row.push_back(hop.neighbours[e]);
        columns.col.push_back(static_cast<std::int64_t>(hop.first_target + t));
        columns.edge.push_back(static_cast<std::int64_t>(hop.edges[e]));
      }
  columns.node.assign(sample.vertices.begin(), sample.vertices.end());
  columns.tree.assign(sample.trees.begin(), sample.trees.end());
  return columns;
}

// Returns arrays of the same sizes, of other numbers.
inline Columns unwritten(const Columns& wanted) {
  const auto blank = [](const std::vector<std::int64_t>& values) {
    return std::vector<std::int64_t>(values.size(), -7);
  };
  return {blank(wanted.row), blank(wanted.col), blank(wanted.edge), blank(wanted.node),
          blank(wanted.tree)};
}

}  // namespace plait::test

// The names of an edge list's columns: what they say about the order of sources and targets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plait {

// `swapped`: the first column is the target, the second the source. `not_edges`: the columns are
// not the two ends of an edge and perhaps its weight.
enum class ColumnOrder : std::uint8_t { usual, swapped, not_edges };

struct ColumnNames {
  ColumnOrder order = ColumnOrder::usual;
  bool ends_alone = false;  // they name a source and a target, and no other column
};

// `names`: in lower case, in the order of the columns. Those that are not known say nothing:
// columns are a source, a target and perhaps a weight.
ColumnNames read_column_names(const std::vector<std::string>& names);

}  // namespace plait

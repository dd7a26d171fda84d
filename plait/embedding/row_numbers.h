// Numbers the rows of several embedding tables on one rank. Edges from bags to rows are sorted by
// these numbers. One table stands behind the other, and tables with equally many columns stand side
// by side, so that their rows are one range of the sorted rows.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/ids.h"
#include "plait/embedding/embedding_layout.h"

namespace plait {

// Tables whose gradients are one product: RowNumbers::tables[first .. end - 1].
struct TableGroup {
  std::size_t first = 0, end = 0;
  std::uint64_t columns = 0;
  bool replicated = false;  // over several ranks: a rank sums the gradients of its own bags
};

struct RowNumbers {
  std::vector<std::size_t> tables;  // in the order of their rows
  std::vector<Slot> bases;         // by place in `tables`, and the end: the number of the first row
  std::vector<TableGroup> groups;  // at most kMostTableGroups
};
// All tables have rows of one width: a rank has whole rows of replicated tables, whole rows of
// others, and equal pieces of the rows of tables that are divided by columns.
inline constexpr std::size_t kMostTableGroups = 3;

// Numbers the rows of a rank's pieces of these tables. There are no groups. Throws UsageError if
// there are `most` rows or more.
RowNumbers number_rows(const EmbeddingLayout& layout, int rank, std::vector<std::size_t> tables,
                       std::uint64_t most);

// Numbers the rows of all tables that the rank has columns of. Replicated tables come first, and
// have the same numbers on all ranks; then tables with fewer columns, and in a group tables in
// their order. In this order of groups, a numbering takes as many as have fewer than `most` rows.
// Throws UsageError if a group has too many rows.
std::vector<RowNumbers> number_rows(const EmbeddingLayout& layout, int rank, std::uint64_t most);

}  // namespace plait

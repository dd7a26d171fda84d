// The counts with which named_rows.cu and sum_by_row.cu find the rows that edges name, and place
// the neighbour groups of these rows. Internal to this room.
#pragma once

#include "plait/base/lower_bound.h"
#include "plait/embedding/row_numbers.h"
#include "plait/kernels/row_cut.h"

namespace plait {

using CountWord = unsigned long long;  // for atomicAdd()
static_assert(sizeof(CountWord) == sizeof(std::uint64_t));

// For each group of tables, the numbers of neighbour groups with many edges and with few edges, of
// partial sums, and of rows that are cut into few groups and into many groups.
struct GroupCounters {
  CountWord long_groups, short_groups, partial_sums, few, hubs;
};
inline constexpr std::uint64_t kGroupCounters = sizeof(GroupCounters) / sizeof(CountWord);
inline constexpr EdgeOffset kFewEdges = kShortInLarge;  // the most edges of a group with few

// The layout of NamedRows::found_: the number of rows; for each table, and for the end, the number
// of rows before it; for each group of tables its counts, and how many of them are placed.
struct FoundRows {
  std::uint64_t* rows;
  std::uint64_t* before;
  GroupCounters *counts, *placed;
};
inline FoundRows found_at(std::uint64_t* at, const RowNumbers& numbers) {
  auto* const counts = reinterpret_cast<GroupCounters*>(at + 1 + numbers.bases.size());
  return {at, at + 1, counts, counts + numbers.groups.size()};
}

// The groups of tables: `ends[g]` is one past the number of the last row.
struct TableRanges {
  Slot ends[kMostTableGroups] = {};
  std::uint32_t count = 0;

  explicit TableRanges(const RowNumbers& numbers) {
    for (const TableGroup& group : numbers.groups) ends[count++] = numbers.bases[group.end];
  }
  __device__ std::uint32_t of(Slot row) const {
    std::uint32_t group = 0;
    while (group + 1 < count && row >= ends[group]) ++group;
    return group;
  }
};

// Returns the place of the first table that begins behind the row.
__device__ inline std::uint64_t table_behind(const Slot* bases, std::uint64_t tables, Slot row) {
  return lower_bound(bases, 0, tables, std::uint64_t{row} + 1);
}

}  // namespace plait

// Bags as edges between bags and rows of a table: a sum over a bag's rows is a product with a
// sparse matrix (kernels/spmm.h), and the gradient of the rows a product with its transpose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/raw_vector.h"
#include "plait/embedding/bags.h"
#include "plait/kernels/edge_rows.h"
#include "plait/table/stored_rows.h"

namespace plait {

// Returns the offsets from `first` (0 or 1) on, one per bag or row: their begins or their ends.
inline std::span<const EdgeOffset> offsets_from(const std::vector<EdgeOffset>& offsets,
                                                std::size_t first) {
  return std::span(offsets).subspan(first, offsets.size() - 1);
}

// The bags of a table that have rows of one rank, ascending, and their edges to these rows.
struct OwnedBags {
  std::vector<Slot> bags;           // numbers of bags of this table
  std::vector<EdgeOffset> offsets;  // one per bag and one more
  RawVector<Slot> rows;             // local rows, in the order of ids
  RawVector<Slot> places;           // of ids in their bags
  RawVector<float> weights;         // one per edge; empty: all 1
  std::vector<float> scale;         // one per bag: 1 / the ids of the whole bag; or empty
};
// Returns the bags of table t that read rows of `rank`, by all threads. `mean`: with `scale`.
OwnedBags owned_bags(const Bags& bags, std::size_t t, const StoredRows& places, int rank,
                     bool mean);

// Returns for each rank the bags of table t that read rows of it, ascending.
std::vector<std::vector<Slot>> bags_by_owner(const Bags& bags, std::size_t t,
                                             const StoredRows& places);

// Edges that add a row of gradients, `from`, to a row of a table, in the order in which they are
// added.
struct GradientEdges {
  RawVector<Slot> rows;
  RawVector<Slot> from;
  RawVector<float> weights;  // one per edge, if `weighted`; else all are 1
  RawVector<Slot> counts;    // of ids that each edge stands for; empty: all 1
  RawVector<Slot> places;    // of ids in their bags, if `placed`
  bool weighted = false;     // must be set before edges are added that are to weigh
  bool placed = false;       // likewise

  // Adds the edges of all bags of table t. The first bag reads row first_from of gradients.
  // `mean`: an edge weighs 1 / the ids of its bag.
  void add(const Bags& bags, std::size_t t, Slot first_from, bool mean);
  // Adds the edges of a part of the bags.
  void add(const OwnedBags& bags, Slot first_from);
};

// The same, by row of the table.
struct EdgesByRow {
  std::vector<Slot> rows;           // each row that has an edge, ascending
  std::vector<EdgeOffset> offsets;  // one per such row and one more
  RawVector<Slot> from;
  RawVector<float> weights;
  RawVector<Slot> counts, places;

  // Returns the number of ids that name each row.
  std::vector<Slot> ids_by_row() const;
};
// Sorts the edges by row, by all threads; edges of a row keep their order. `rows`: of the table.
EdgesByRow by_row(GradientEdges edges, std::uint64_t rows);

}  // namespace plait

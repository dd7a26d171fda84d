// Pairs of vertices that are no edges, for losses that compare edges with them. They are numbered,
// row by row, so that a pair is drawn by its number: every pair is equally likely, however few
// there are, and none is drawn in vain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "plait/base/array.h"
#include "plait/base/raw_vector.h"
#include "plait/graph/csr.h"
#include "plait/sample/non_edges_view.h"

namespace plait {

// The pairs (row, neighbour) that are asked for.
enum class PairKind : std::uint8_t {
  all,
  no_loops,   // of two different vertices
  ascending,  // row < neighbour
};

// The pairs with a row below `rows` and a neighbour below `columns` that are no edges. A pair costs
// the search of a row and of a place in it. Takes 16 bytes per row and 4 per edge.
class NonEdges {
 public:
  using Pair = VertexPair;

  // The graph's rows are sorted; it is not needed any more afterwards. Throws UsageError unless it
  // has at least `rows` vertices and its edges are such pairs, rows are sorted and, but for
  // PairKind::all, rows are as many as columns; DoesNotFitError for 2^32 - 1 columns or more.
  NonEdges(const AnyCsr& graph, std::uint64_t rows, std::uint64_t columns, PairKind kind);

  // Returns the number of pairs, of all and of a row.
  std::uint64_t count() const { return view().count(); }
  std::uint64_t count(std::uint64_t row) const { return view().count(row); }
  // Returns pair `i` of all, and the neighbour in pair `i` of a row. They are in ascending order.
  Pair pair(std::uint64_t i) const { return view().pair(i); }
  std::uint64_t column(std::uint64_t row, std::uint64_t i) const { return view().column(row, i); }

  // Draws so many pairs: different ones, at most count(), in no order; or, with replacement, any.
  // They depend on the key and, with replacement, on their place, else on `wanted`.
  RawVector<Pair> draw(std::uint64_t wanted, bool replace, std::uint64_t key) const;
  // Draws, for each of these rows, a neighbour to which it has no edge. Throws UsageError for a row
  // that is out of range, or that has edges to all.
  RawVector<std::uint64_t> draw_columns(std::span<const std::uint64_t> rows,
                                        std::uint64_t key) const;

  // Returns the number of pairs that draw() gives.
  std::uint64_t drawn(std::uint64_t wanted, bool replace) const {
    return replace && count() > 0 ? wanted : std::min(wanted, count());
  }
  // Returns the arrays, which belong to this object.
  NonEdgesView view() const {
    return {rows_, columns_, ascending_, before_.data(), offsets_.data(), excluded_.data()};
  }
  std::uint64_t excluded_count() const { return excluded_.size(); }

 private:
  std::uint64_t rows_, columns_;
  bool ascending_;
  Buffer<std::uint64_t> before_;    // pairs in the rows before each, rows + 1
  Buffer<EdgeOffset> offsets_;      // of `excluded_`, rows + 1
  Buffer<std::uint32_t> excluded_;  // columns of each row that are in no pair, ascending, once each
};

// Throws the UsageError of a row from which there is nothing to draw.
[[noreturn]] void throw_full_row(std::uint64_t row, std::uint64_t columns);

}  // namespace plait

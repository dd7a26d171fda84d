// Checks of data from outside, and questions about a graph as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plait/graph/dataset.h"

namespace plait {

// Throws an InputError that names `file`, the array, the place and the value, unless
//   - offsets start at 0, do not decrease and end at the number of neighbours;
//   - every neighbour is below the number of vertices, and the neighbours of a row ascend;
//   - weights and features are finite; sparse feature columns are below the width;
//   - arrays have one entry per vertex, edge or example;
//   - labels are in -1 .. classes - 1, entries of label sets 0 or 1, splits in 0 .. 3;
//   - graph ids are below the number of graphs, which is at most the number of vertices;
//   - numbers before renumbering are a permutation of the vertices.
void validate(const Dataset& dataset, const std::string& file);

// Tells whether the neighbours of every row ascend. Offsets must belong to the neighbours.
template <VertexId V>
bool rows_are_sorted(const Csr<V>& graph);

// An entry of a row.
struct RowEntry {
  std::uint64_t row;
  std::uint64_t neighbour;
};

// Tells whether every edge has its reverse with the same weight: the k-th of parallel edges (i, j)
// has the weight of the k-th of (j, i). Rows must be sorted by neighbour; for others the answer
// means nothing, but asking is safe. One pass over the edges, by all threads. A symmetric graph is
// always found to be one; another is mistaken for one with a probability of at most edges / 2^61,
// whatever the graph, because the numbers that decide are drawn anew each time.
bool is_symmetric(const AnyCsr& graph);

// Returns the first edge, by rows, that has no such reverse; nothing if the graph is symmetric.
std::optional<RowEntry> find_one_way_edge(const AnyCsr& graph);

}  // namespace plait

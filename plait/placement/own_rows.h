// The part of a graph that a rank works on, cut out of the whole, with neighbours as global ids.
#pragma once

#include <span>
#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"

namespace plait {

// Returns a rank's rows: row r lists the vertices that vertex partition.vertex(rank, r) aggregates
// from, in the graph's order. A rank that owns all vertices shares the graph's arrays.
template <VertexId V>
Csr<V> own_rows(const Csr<V>& graph, const Partition& partition, int rank);

// Returns the rows of these vertices, in their order and in the graph's.
template <VertexId V>
Csr<V> rows_of(const Csr<V>& graph, std::span<const std::uint64_t> vertices);

// Returns a rank's rows of the transposed graph, without transposing all of it: row r lists the
// vertices that aggregate from vertex partition.vertex(rank, r), ascending. Takes two passes over
// all edges, by one thread.
template <VertexId V>
Csr<V> own_columns(const Csr<V>& graph, const Partition& partition, int rank);

// Returns rows whose edges ascend by the number of the vertex that they read (Partition::number),
// parallel edges in their order. Rows that are in order already share their arrays.
template <VertexId V>
Csr<V> sorted_by_number(const Csr<V>& rows, const Partition& partition);

// Returns rows that have the edges of row r of `first`, and behind them those of row r of `second`.
// Both have as many rows, and weights or none.
template <VertexId V>
Csr<V> rows_joined(const Csr<V>& first, const Csr<V>& second);

// Gives every own vertex exactly one loop, as PyG's add_remaining_self_loops does. The loop has the
// weight of the last loop that the vertex had, or else `loop_weight`. Rows without weights stay
// without: all their edges weigh 1. `rows` are the result of own_rows or own_columns. The loop
// takes its place in the ascending order of neighbours.
template <VertexId V>
Csr<V> with_one_loop_each(const Csr<V>& rows, const Partition& partition, int rank,
                          float loop_weight = 1);

// Returns the sum of the weights of each row's edges (their number, if they have none). Sums are
// taken in double precision, so that they hardly depend on the edges' order.
template <VertexId V>
std::vector<float> row_sums(const Csr<V>& rows);

// Places number the vertices of rank 0, then of rank 1, and so on, each rank's by its rows. Returns
// parts + 1 starts: the places of rank p are starts[p] .. starts[p + 1] - 1.
std::vector<std::uint64_t> place_starts(const Partition& partition);

// Returns the same rows with neighbours by place: ascending in a row, or, if not `sorted`, in their
// order. In a contiguous partition places are ids, and rows that are in order already are returned
// as they are.
template <VertexId V>
Csr<V> by_place(const Csr<V>& rows, const Partition& partition, bool sorted = true);

}  // namespace plait

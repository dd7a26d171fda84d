// The part of a graph that a rank works on, cut out of the whole, with neighbours as global ids.
#pragma once

#include <vector>

#include "plait/graph/csr.h"
#include "plait/partition/partition.h"

namespace plait {

// Row r of the result is the row of vertex partition.vertex(rank, r): what it aggregates from.
template <VertexId V>
Csr<V> own_rows(const Csr<V>& graph, const Partition& partition, int rank);

// The same of the transposed graph, without transposing all of it: row r lists the vertices that
// aggregate from vertex partition.vertex(rank, r), ascending. One pass over all edges.
template <VertexId V>
Csr<V> own_columns(const Csr<V>& graph, const Partition& partition, int rank);

// Gives every own vertex exactly one loop, as PyG's add_remaining_self_loops does: of the weight of
// the last loop that it had, else of `loop_weight`. Rows without weights stay without: all their
// edges weigh 1. `rows` is what own_rows or own_columns returned. The loop takes its place in the
// ascending order of neighbours.
template <VertexId V>
Csr<V> with_one_loop_each(const Csr<V>& rows, const Partition& partition, int rank,
                          float loop_weight = 1);

// The sum of the weights of each row's edges (their number, if they have none), taken in double
// precision, so that it does not depend on their order.
template <VertexId V>
std::vector<float> row_sums(const Csr<V>& rows);

// Places are numbers of the vertices of rank 0, then of rank 1, and so on, each rank's by its rows:
// those of rank p are starts[p] .. starts[p + 1] - 1.
std::vector<std::uint64_t> place_starts(const Partition& partition);

// The same rows with neighbours by place: ascending in a row, or, if not `sorted`, in their order.
// Of a contiguous partition places are ids, and rows that are in order already are returned as they
// are.
template <VertexId V>
Csr<V> by_place(const Csr<V>& rows, const Partition& partition, bool sorted = true);

}  // namespace plait

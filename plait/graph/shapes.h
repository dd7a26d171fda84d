// Graphs of regular shapes, made by rule: the same edges on every machine and for every number of
// threads. They show where a kernel or a schedule that was tuned on social networks does badly.
//
// Every edge is there in both directions. All functions throw UsageError if there would be no
// vertex or too many, DoesNotFitError before memory is taken.
#pragma once

#include <cstdint>

#include "plait/graph/edge_list.h"

namespace plait {

AnyEdgeList generate_grid(std::uint64_t rows, std::uint64_t columns);  // 4 neighbours
AnyEdgeList generate_star(std::uint64_t vertices);                     // vertex 0 is the hub
// Returns a ring: each vertex has an edge to the next and to the one before.
AnyEdgeList generate_ring(std::uint64_t vertices);
AnyEdgeList generate_path(std::uint64_t vertices);  // vertex v is joined to v + 1
// Vertex v > 0 is joined to its parent (v - 1) / children; vertex 0 is the root.
AnyEdgeList generate_tree(std::uint64_t vertices, std::uint64_t children);
// Cliques of `size` consecutive vertices; the last clique may be smaller. The last vertex of each
// is joined to the first vertex of the next. One clique if `size` is at least their number.
AnyEdgeList generate_cliques(std::uint64_t vertices, std::uint64_t size);

}  // namespace plait

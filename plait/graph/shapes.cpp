#include "plait/graph/shapes.h"

#include <algorithm>

#include "plait/graph/made_edges.h"

namespace plait {

AnyEdgeList generate_grid(std::uint64_t rows, std::uint64_t columns) {
  require_count("rows", rows, 1);
  require_count("columns", columns, 1);
  require<UsageError>(rows <= kMostGenerated / columns, "{} x {} vertices are more than {}", rows,
                      columns, kMostGenerated);
  const std::uint64_t along = 2 * (columns - 1), down = 2 * columns;  // edges of a row
  return make_list(rows * columns, rows * along + (rows - 1) * down, [&](auto& list) {
    for_each_index(rows * columns, [&](std::uint64_t vertex) {
      const std::uint64_t row = vertex / columns, column = vertex % columns;
      const std::uint64_t first = row * (along + down);
      if (column + 1 < columns) put_both_ways(list, first + 2 * column, vertex, vertex + 1);
      if (row + 1 < rows) put_both_ways(list, first + along + 2 * column, vertex, vertex + columns);
    });
  });
}

AnyEdgeList generate_star(std::uint64_t vertices) {
  require_count("vertices", vertices, 1);
  return make_list(vertices, 2 * (vertices - 1), [&](auto& list) {
    for_each_index(vertices - 1,
                   [&](std::uint64_t leaf) { put_both_ways(list, 2 * leaf, 0, leaf + 1); });
  });
}

AnyEdgeList generate_ring(std::uint64_t vertices) {
  require_count("vertices", vertices, 1);
  // Two vertices have one edge between them, not two, and one vertex has no loop.
  const std::uint64_t pairs = vertices > 2 ? vertices : vertices - 1;
  return make_list(vertices, 2 * pairs, [&](auto& list) {
    for_each_index(pairs,
                   [&](std::uint64_t v) { put_both_ways(list, 2 * v, v, (v + 1) % vertices); });
  });
}

AnyEdgeList generate_path(std::uint64_t vertices) {
  require_count("vertices", vertices, 1);
  return make_list(vertices, 2 * (vertices - 1), [&](auto& list) {
    for_each_index(vertices - 1, [&](std::uint64_t v) { put_both_ways(list, 2 * v, v, v + 1); });
  });
}

AnyEdgeList generate_tree(std::uint64_t vertices, std::uint64_t children) {
  require_count("vertices", vertices, 1);
  require_count("children", children, 1);
  return make_list(vertices, 2 * (vertices - 1), [&](auto& list) {
    for_each_index(vertices - 1,
                   [&](std::uint64_t v) { put_both_ways(list, 2 * v, v / children, v + 1); });
  });
}

AnyEdgeList generate_cliques(std::uint64_t vertices, std::uint64_t size) {
  require_count("vertices", vertices, 1);
  require_count("vertices of a clique", size, 1);
  size = std::min(size, vertices);
  require<UsageError>(size <= kMostGenerated / vertices,
                      "{} vertices in cliques of {} have too many edges", vertices, size);
  const std::uint64_t full = vertices / size, rest = vertices % size;
  const std::uint64_t inner = size * (size - 1);  // edges of a full clique
  const std::uint64_t joints = full + (rest > 0) - 1;
  const std::uint64_t edges = full * inner + (rest > 0 ? rest * (rest - 1) : 0) + 2 * joints;
  return make_list(vertices, edges, [&](auto& list) {
    for_each_index(vertices, [&](std::uint64_t v) {
      const std::uint64_t clique = v / size, first = clique * size;
      const std::uint64_t members = std::min(size, vertices - first);
      std::uint64_t edge = clique * (inner + 2) + (v - first) * (members - 1);
      for (std::uint64_t u = first; u < first + members; ++u)
        if (u != v) put(list, edge++, u, v);
      if (v + 1 == first + members && v + 1 < vertices) put_both_ways(list, edge, v, v + 1);
    });
  });
}

}  // namespace plait

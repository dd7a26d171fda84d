// Small random graphs for tests, and the slow, readable versions that results are compared with.
#pragma once

#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "plait/graph/build.h"
#include "plait/kernels/spmm.h"

namespace plait::test {

struct Edge {
  std::uint64_t source, target;
  float weight;
};

template <VertexId V>
EdgeList<V> edge_list(std::uint64_t vertices, const std::vector<Edge>& edges, bool weighted) {
  EdgeList<V> list;
  list.vertices = vertices;
  list.source = Buffer<V>(edges.size());
  list.target = Buffer<V>(edges.size());
  if (weighted) list.weight = Buffer<float>(edges.size());
  for (std::size_t e = 0; e < edges.size(); ++e) {
    list.source[e] = static_cast<V>(edges[e].source);
    list.target[e] = static_cast<V>(edges[e].target);
    if (weighted) list.weight[e] = edges[e].weight;
  }
  return list;
}

// Loops and parallel edges come up; weights are small integers, so that sums are exact.
inline std::vector<Edge> random_edges(std::uint64_t vertices, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Edge> edges(vertices == 0 ? 0 : count);
  for (Edge& e : edges)
    e = {random() % vertices, random() % vertices, static_cast<float>(1 + random() % 5)};
  return edges;
}

template <VertexId V>
Csr<V> random_csr(std::uint64_t vertices, std::size_t edges, unsigned seed, bool weighted = false) {
  return build_csr(edge_list<V>(vertices, random_edges(vertices, edges, seed), weighted));
}

// A graph and its transpose, for operations and their gradients.
struct BothWays {
  Csr<std::uint32_t> graph, transposed;

  BothWays(std::uint64_t vertices, std::vector<Edge> edges)
      : graph(build_csr(edge_list<std::uint32_t>(vertices, edges, false))) {
    for (Edge& e : edges) std::swap(e.source, e.target);
    transposed = build_csr(edge_list<std::uint32_t>(vertices, edges, false));
  }
};

inline BothWays random_both_ways(std::uint64_t vertices, std::size_t edges, unsigned seed) {
  return {vertices, random_edges(vertices, edges, seed)};
}

// Makes a graph in which vertex 0 has an edge from (or to) all others, and one from itself.
inline BothWays star_both_ways(std::uint64_t vertices, bool inwards) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 0; v < vertices; ++v) edges.push_back({v, 0, 1});
  if (!inwards)
    for (Edge& e : edges) std::swap(e.source, e.target);
  return {vertices, edges};
}

inline EdgeRows edge_rows(const Csr<std::uint32_t>& graph, const RowSource& x) {
  return {graph.offsets.span().first(graph.vertices()), graph.offsets.span().subspan(1),
          graph.neighbours.data(), x};
}

}  // namespace plait::test

// A graph as compressed sparse rows: row i lists the vertices that i aggregates *from*.
//
// As a matrix A, entry (i, j) is an edge from j to i, and y = A x sums at i the values of its
// neighbours. Parallel edges and loops are allowed and counted.
#pragma once

#include <span>
#include <variant>

#include "plait/base/array.h"
#include "plait/base/ids.h"

namespace plait {

// A graph whose vertices are 0 .. vertices() - 1. Copies share the arrays.
template <VertexId V>
struct Csr {
  using Vertex = V;

  Array<EdgeOffset> offsets;  // vertices + 1 numbers, not decreasing, the first 0
  Array<V> neighbours;        // offsets.back() numbers below vertices()
  Array<float> weights;       // one per edge, or empty: every edge weighs 1

  // Numbers of vertices and edges, and the number of edges and the neighbours of row i. Indices are
  // not checked.
  std::uint64_t vertices() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  EdgeOffset edges() const { return neighbours.size(); }
  bool weighted() const { return !weights.empty(); }
  EdgeOffset degree(std::uint64_t i) const { return offsets[i + 1] - offsets[i]; }
  std::span<const V> row(std::uint64_t i) const {
    return neighbours.span().subspan(offsets[i], degree(i));
  }
  // Returns the weight of edge e, 1 if the graph has none.
  float weight(EdgeOffset e) const { return weighted() ? weights[e] : 1.0f; }
};

using Csr32 = Csr<std::uint32_t>;
using Csr64 = Csr<std::uint64_t>;

// A graph with ids of either width, which is chosen when it is loaded. Code that works on both
// takes a lambda: std::visit([](const auto& csr) { ... }, graph).
using AnyCsr = std::variant<Csr32, Csr64>;

// Call the members of these names for ids of either width.
inline std::uint64_t vertex_count(const AnyCsr& graph) {
  return std::visit([](const auto& csr) { return csr.vertices(); }, graph);
}
inline EdgeOffset edge_count(const AnyCsr& graph) {
  return std::visit([](const auto& csr) { return csr.edges(); }, graph);
}
inline bool is_weighted(const AnyCsr& graph) {
  return std::visit([](const auto& csr) { return csr.weighted(); }, graph);
}

}  // namespace plait

// A graph as compressed sparse rows: row i lists the vertices that i aggregates *from*.
//
// As a matrix A, entry (i, j) is an edge from j to i, and y = A x sums at i what its neighbours
// hold. Parallel edges and loops are allowed and counted.
#pragma once

#include <span>
#include <variant>

#include "plait/base/array.h"
#include "plait/base/ids.h"

namespace plait {

template <VertexId V>
struct Csr {
  using Vertex = V;

  Array<EdgeOffset> offsets;  // vertices + 1 numbers, not decreasing, the first 0
  Array<V> neighbours;        // offsets.back() numbers below vertices()
  Array<float> weights;       // one an edge, or empty: every edge weighs 1

  std::uint64_t vertices() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  EdgeOffset edges() const { return neighbours.size(); }
  bool weighted() const { return !weights.empty(); }
  EdgeOffset degree(std::uint64_t i) const { return offsets[i + 1] - offsets[i]; }
  std::span<const V> row(std::uint64_t i) const {
    return neighbours.span().subspan(offsets[i], degree(i));
  }
  float weight(EdgeOffset e) const { return weighted() ? weights[e] : 1.0f; }
};

using Csr32 = Csr<std::uint32_t>;
using Csr64 = Csr<std::uint64_t>;

// The width of the ids is chosen when a graph is loaded; code that works on either takes a lambda:
// std::visit([](const auto& csr) { ... }, graph).
using AnyCsr = std::variant<Csr32, Csr64>;

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

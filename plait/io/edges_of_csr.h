// Turns a CSR back into an edge list, for graphs that come as a CSR but must be sorted or changed,
// and for formats that list edges.
#pragma once

#include <algorithm>

#include "plait/base/parallel.h"
#include "plait/graph/csr.h"
#include "plait/graph/edge_list.h"

namespace plait {

// Writes the row of every entry to rows[0 .. edges).
template <VertexId V>
void fill_rows(const Csr<V>& graph, V* rows) {
  constexpr std::size_t kGrain = std::size_t{1} << 14;
  parallel_blocks(graph.vertices(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row)
      std::fill(rows + graph.offsets[row], rows + graph.offsets[row + 1], static_cast<V>(row));
  });
}

// Returns the edges row by row: targets are rows, sources their neighbours.
template <VertexId V>
EdgeList<V> edges_of(const Csr<V>& graph) {
  EdgeList<V> edges{graph.vertices(), Buffer<V>(graph.edges()), Buffer<V>(graph.edges()),
                    Buffer<float>(graph.weights.size())};
  std::copy(graph.neighbours.begin(), graph.neighbours.end(), edges.source.begin());
  std::copy(graph.weights.begin(), graph.weights.end(), edges.weight.begin());
  fill_rows(graph, edges.target.data());
  return edges;
}

}  // namespace plait

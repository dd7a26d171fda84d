// Edges as a file or a generator yields them, before they are a graph.
#pragma once

#include <variant>

#include "plait/base/array.h"
#include "plait/base/ids.h"

namespace plait {

// Edge e carries a message from source[e] to target[e]: it becomes an entry of row target[e].
template <VertexId V>
struct EdgeList {
  using Vertex = V;

  std::uint64_t vertices = 0;
  Buffer<V> source;
  Buffer<V> target;
  Buffer<float> weight;  // one per edge, or empty

  std::uint64_t edges() const { return source.size(); }
};

using AnyEdgeList = std::variant<EdgeList<std::uint32_t>, EdgeList<std::uint64_t>>;

}  // namespace plait

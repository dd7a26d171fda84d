// Functions that all generators of edge lists use. Internal to this room.
#pragma once

#include <utility>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/graph/edge_list.h"

namespace plait {

inline constexpr std::uint64_t kMostGenerated = std::uint64_t{1} << 48;  // vertices, edges

// Throws UsageError unless `count` is between `least` and the most.
inline void require_count(const char* what, std::uint64_t count, std::uint64_t least) {
  require<UsageError>(count >= least && count <= kMostGenerated, "{} {} are outside {}..{}", count,
                      what, least, kMostGenerated);
}

// Makes a list of `edges` edges and calls fill(list). Throws DoesNotFitError if the list, and
// beside it the neighbours of the graph that is built of it, need more memory than is free.
template <class Fill>
AnyEdgeList make_list(std::uint64_t vertices, std::uint64_t edges, Fill fill) {
  const auto make = [&]<VertexId V>(V) -> AnyEdgeList {
    require_memory(3 * sizeof(V) * edges, fmt::format("a list of {} edges and its graph", edges));
    EdgeList<V> list{vertices, Buffer<V>(edges), Buffer<V>(edges), {}};
    fill(list);
    return list;
  };
  if (vertices <= kMaxVertices32) return make(std::uint32_t{});
  return make(std::uint64_t{});
}

template <VertexId V>
void put(EdgeList<V>& list, std::uint64_t edge, std::uint64_t source, std::uint64_t target) {
  list.source[edge] = static_cast<V>(source);
  list.target[edge] = static_cast<V>(target);
}

template <VertexId V>
void put_both_ways(EdgeList<V>& list, std::uint64_t edge, std::uint64_t u, std::uint64_t v) {
  put(list, edge, u, v);
  put(list, edge + 1, v, u);
}

// Calls body(i) for every i below count, in parallel.
template <class Body>
void for_each_index(std::uint64_t count, Body body) {
  parallel_blocks(count, (std::size_t{1} << 14), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(std::uint64_t{i});
  });
}

}  // namespace plait

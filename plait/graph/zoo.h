// A zoo of graphs: small and large, flat and with hubs, with and without communities. Kernels and
// schedules are measured on it, so that none is tuned to a few graphs alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plait/graph/edge_list.h"

namespace plait {

// One graph of the zoo.
struct ZooGraph {
  std::string_view name;   // a word
  std::string_view shape;  // a short text
  std::uint64_t vertices;  // at scale 1
  AnyEdgeList (*make)(std::uint64_t vertices);
};

// Returns all graphs.
std::span<const ZooGraph> zoo();
// Returns the graph of this name. Throws a UsageError that lists all names.
const ZooGraph& zoo_graph(std::string_view name);
// Makes a graph with `scale` times its vertices. Small graphs (below 2^17 vertices) are always made
// in full. Throws UsageError unless 0 < scale <= 1, DoesNotFitError before memory is taken.
AnyEdgeList make(const ZooGraph& graph, double scale);

}  // namespace plait

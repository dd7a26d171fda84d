// How strongly a graph falls into communities.
#pragma once

#include <cstdint>
#include <span>

#include "plait/graph/csr.h"

namespace plait {

struct CommunityStatistics {
  std::uint64_t communities = 0;  // labels that at least two vertices have
  std::uint64_t largest = 0;      // vertices of the largest of these
  double inner_edges = 0;         // the part of the edges whose two ends have the same label
  // Newman's modularity of the labels: the part of the edges that are inner, less the part that
  // would be if edges joined vertices at random with the same numbers of edges in and out (Leicht
  // and Newman, Physical Review Letters 100, 2008, equation 3). 0 if all vertices have one label.
  double modularity = 0;
};

// Describes the communities that the labels, one number below vertices() per vertex, give a graph.
// Looks at every edge, by all threads; the result does not depend on their number.
CommunityStatistics community_statistics(const AnyCsr& graph,
                                         std::span<const std::uint32_t> labels);

// As above, of the communities that `plait reorder --method communities` orders vertices by.
// `symmetric`: every edge has its reverse. Throws Error if there are 2^32 - 1 vertices or more,
// DoesNotFitError.
CommunityStatistics community_statistics(const AnyCsr& graph, bool symmetric);

}  // namespace plait

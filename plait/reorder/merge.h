// The local moves of the Louvain method. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/reorder/quotient.h"

namespace plait {

// Returns a label per community of a quotient: communities that get the same one are to be merged.
// One after the other joins the neighbour that raises modularity the most, in rounds, until few
// move. Of a large quotient, about a quarter of the communities, chosen by a hash, look for the
// best neighbour at once, so that all threads work and their number does not matter. `resolution`
// is the factor of the edges by chance in modularity; 1 is Newman's, and a lower one merges
// further. A quotient is large from `large` entries on: all threads are then worth that moves at
// the same time are worse. Throws DoesNotFitError.
std::vector<std::uint32_t> merge(const Quotient& graph, double resolution,
                                 EdgeOffset large = EdgeOffset{1} << 22);

// Returns Newman's modularity of the communities.
double modularity_of(const Quotient& graph);

}  // namespace plait

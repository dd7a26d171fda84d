// The local moves of the Louvain method. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/reorder/quotient.h"

namespace plait {

// Returns a label per community of a quotient: communities that get the same one are to be merged.
// In each round, about half of the communities, chosen by a hash, join the neighbour that raises
// modularity the most, with the merges of the rounds before but not of this one, so that the result
// is the same for any number of threads. `resolution` is the factor of the edges by chance in
// modularity; 1 is Newman's, and a lower one merges further.
std::vector<std::uint32_t> merge(const Quotient& graph, double resolution);

}  // namespace plait

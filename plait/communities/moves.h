// The local moves of the Louvain method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/communities/quotient.h"

namespace plait {

// A quotient is large from this number of entries on: a GPU is then worth that moves at the same
// time are a little worse. Threads are worth their meetings in quotients that are larger still.
inline constexpr EdgeOffset kLargeQuotient = EdgeOffset{1} << 15;

// Returns a label per community of a quotient: communities with the same label are to be merged.
// One after the other joins the neighbour that raises modularity the most, in rounds, until few
// move. Of a large quotient, about a quarter of the communities, chosen by a hash, look for the
// best neighbour at once, so that all threads work and their number does not matter. `resolution`
// is the factor of the edges by chance in modularity; 1 is Newman's, and a lower one merges
// further. A quotient is large from `large` entries on. Throws DoesNotFitError.
std::vector<std::uint32_t> merge(const Quotient& graph, double resolution,
                                 EdgeOffset large = kLargeQuotient);

// Returns Newman's modularity of the communities.
double modularity_of(const Quotient& graph);
// Does so from each community's edge ends, its ends of edges to other communities, and all ends.
double modularity_of(std::span<const std::uint64_t> degrees, std::span<const std::uint64_t> outer,
                     std::uint64_t ends);

}  // namespace plait

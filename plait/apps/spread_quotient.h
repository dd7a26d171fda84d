// Graphs of communities whose rows are spread over ranks, so that no rank has all of a large one.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/communities/quotient.h"
#include "plait/world/world.h"

namespace plait {

// The rows that one rank has of a quotient.
struct SpreadQuotient {
  Quotient rows;            // row i is that of community first + i; degrees are those of all
  std::uint32_t first = 0;  // community
  EdgeOffset entries = 0;   // of all ranks
};

// Collective. Adds the parts that ranks have of a quotient (quotient_of()), and cuts the sum into
// rows with about equally many entries for each rank. A rank sends each entry of its part to the
// rank that has its row: 12 bytes. It holds its part and what it receives, or that and two copies
// of its rows.
SpreadQuotient spread(World& world, Quotient part);
// Collective. Returns all rows, on every rank.
Quotient whole_of(World& world, SpreadQuotient spread);

// Collective. Given a forest of vertices by each rank, as parents with lesser numbers, returns one
// of all of them: vertices of one tree of any rank are in one tree.
std::vector<std::uint32_t> joined_forest(World& world, const std::vector<std::uint32_t>& parents);

}  // namespace plait

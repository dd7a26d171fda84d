// Whether all ranks were given the same: of their settings, files and data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/world/world.h"

namespace plait {

// (what it is, value), of which neither holds a zero byte.
using Facts = std::vector<std::pair<std::string, std::string>>;

// Collective. The first fact that is not the same on all ranks, the same text on each: "KEY is 3 on
// rank 0, but 4 on ranks 2-5, 7"; empty if there is none.
std::string first_difference(World& world, const Facts& mine);

// Collective. Throws E on every rank unless all give the same facts. `what` begins the line: "ranks
// read different graphs".
template <class E = Error>
void require_equal(World& world, const std::string& what, const Facts& mine) {
  const std::string found = first_difference(world, mine);
  require<E>(found.empty(), "{}: {}; give every rank the same", what, found);
}

}  // namespace plait

// An order of vertices that all ranks of a run work in.
#pragma once

#include "plait/reorder/reorder.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns the order that rank 0 finds and sends; empty: the order of ids. Throws as
// find_order(), on all ranks.
Buffer<std::uint64_t> shared_order(World& world, ReorderMethod method, const ReorderInput& input);

}  // namespace plait

// An order of vertices that all ranks of a run work in.
#pragma once

#include <optional>

#include "plait/graph/dataset.h"
#include "plait/reorder/reorder.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns the order that rank 0 finds and sends; empty: the order of ids. Throws as
// find_order(), on all ranks.
Buffer<std::uint64_t> shared_order(World& world, ReorderMethod method, const ReorderInput& input);

// Collective. Returns the graph renumbered by the method, the same on all ranks; nothing if its
// vertices keep their order. `gpu`: rank 0 finds it on its GPU, if it can. Throws Error as
// find_order(), and DoesNotFitError, on all ranks.
std::optional<Dataset> shared_renumbering(World& world, const Dataset& dataset,
                                          ReorderMethod method, std::uint64_t seed, bool gpu);

}  // namespace plait

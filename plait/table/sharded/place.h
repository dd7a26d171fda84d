// The choice of a table's place by ranks together, from the memory that is free where they run.
#pragma once

#include "plait/table/store_memory.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns choose_place() of the least memory that is free on any rank's host and on
// the GPU of each, which ranks that share a GPU divide. `question` has the number of ranks and is
// the same on all. `mappable`: as in FreeMemory. `reserve`: bytes that each rank will need besides,
// on its GPU if it has one, else on the host. Throws DoesNotFitError on all ranks.
TablePlace choose_place(World& world, const StoreQuestion& question, bool mappable,
                        std::uint64_t reserve = 0);

}  // namespace plait

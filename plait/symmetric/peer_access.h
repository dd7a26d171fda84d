// Which GPUs reach each other's memory, looked at before anything is read or allocated. No header
// of CUDA is needed here.
#pragma once

#include <functional>
#include <string>

#include "plait/world/world.h"

namespace plait {

// Collective; each rank on its current GPU. Names two ranks of which the GPU of one cannot read and
// write the memory of the other's, in the same words on all ranks; empty if there are none.
std::string unreached_peer(World& world);
// The same with an answer of its own: reaches(peer), of this rank.
std::string unreached_peer(World& world, const std::function<bool(int peer)>& reaches);

// Collective. Throws UsageError on all ranks that says so and what to do.
void require_peer_access(World& world);

}  // namespace plait

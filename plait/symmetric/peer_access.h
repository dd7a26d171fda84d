// Finds out which GPUs reach each other's memory, before anything is read or allocated. This header
// needs no header of CUDA.
#pragma once

#include <functional>
#include <string>

#include "plait/world/world.h"

namespace plait {

// Collective, on each rank's current GPU. Names two ranks if the GPU of one cannot read and write
// the memory of the other's GPU, in the same words on all ranks; empty if there are no such ranks.
std::string unreached_peer(World& world);
// Does so by answers of the caller: reaches(peer) tells whether this rank's GPU reaches the peer's.
std::string unreached_peer(World& world, const std::function<bool(int peer)>& reaches);

// Collective. Throws on all ranks a UsageError that names such a pair and says what to do.
void require_peer_access(World& world);

}  // namespace plait

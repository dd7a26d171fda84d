// Joining a world whose address only its store tells: rank 0 opens the store at a free port and
// tells the others by other means, as through a process group of torch.distributed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "plait/world/rendezvous.h"
#include "plait/world/world.h"

namespace plait {

// As World::join(). `served`: on rank 0 the store of this world, which it keeps from now on; on the
// others null.
std::unique_ptr<World> join_at(const WorldConfig& config, std::unique_ptr<Rendezvous> served);

// Sets the times, the addresses of this rank and the secret, which variables of the environment
// name whoever has started the ranks (environment.cpp). Throws UsageError that names the variable
// if its value makes no sense.
void take_settings(WorldConfig& config);
// Reads the digits that to_text() writes. Throws UsageError that names the source.
Secret parse_secret(std::string_view text, const std::string& source);

}  // namespace plait

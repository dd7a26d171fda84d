// A channel over a group of its own.
#pragma once

#include <memory>

#include "plait/base/channel.h"
#include "plait/world/collectives.h"
#include "plait/world/world.h"

namespace plait {

// Returns a channel of the world's ranks, which the world outlives, and whose waits end once its
// watch has lost a rank.
std::unique_ptr<Channel> make_channel(World& world, std::unique_ptr<Collectives> group);

}  // namespace plait

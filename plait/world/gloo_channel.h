// A channel over a Gloo group of its own.
#pragma once

#include <memory>

#include "plait/base/channel.h"
#include "plait/world/gloo.h"
#include "plait/world/world.h"

namespace plait {

// Returns a channel of the world's ranks, which the world outlives, and whose waits end once its
// watch has lost a rank.
std::unique_ptr<Channel> gloo_channel(World& world, std::unique_ptr<Gloo> gloo);

}  // namespace plait

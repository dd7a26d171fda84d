// The rate at which ranks copy memory, which bounds how fast rows cross between ranks of one host.
#pragma once

#include "plait/world/world.h"

namespace plait {

// Collective. Returns the mean bytes per second that a rank copies with its threads while all ranks
// copy, in memory that is larger than caches usually are. Takes about a tenth of a second, and
// 64 MiB on each rank.
double measure_copy_rate(World& world);

}  // namespace plait

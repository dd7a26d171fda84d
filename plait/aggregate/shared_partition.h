// A partition that all ranks of a run work with.
#pragma once

#include <optional>

#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns the same partition on every rank; rank 0 finds a slow one and sends it.
// A rank that has `made` it already does not make it again. Throws as make_partition(), on all
// ranks.
Partition shared_partition(World& world, const Dataset& dataset, PartitionScheme scheme,
                           std::uint64_t seed, std::optional<Partition> made = {});

}  // namespace plait

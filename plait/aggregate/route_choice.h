// Chooses the route of a run on a graph (plan/choose.h), by what was kept of the graph, by counts
// of its partitions, and by the memory that is free. The command line and Python share it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/plan/choose.h"
#include "plait/plan/memory_plan.h"
#include "plait/world/world.h"

namespace plait {

// A run whose route is to be chosen.
struct GraphRun {
  // Returns the run's dataset, which is called for only where the graph matters.
  std::function<const Dataset&()> dataset;
  RouteQuestion question;  // its ranks: those of the world, or so many of one host
  // Returns the memory of the run by a route, on one rank.
  std::function<MemoryPlan(const Partition&, const Route&)> plan;
  std::uint64_t seed = 0;                                // of partitions
  std::map<PartitionScheme, Partition> partitions = {};  // that this rank has made for the choice
};

// Collective. Returns on all ranks the choice that rank 0 makes. Throws, on all ranks, what making
// and counting partitions throws.
Choice choose(World& world, GraphRun& run);

// Collective. Returns the run's partition by a scheme. Partitions that were made for the choice are
// used and given back.
Partition chosen_partition(World& world, GraphRun& run, PartitionScheme scheme);

// Returns the key of measurements on this graph by so many ranks, `here` of them on this host. On
// GPUs (`gpu`), they are of the current one's kind.
MeasuredKey measured_key(const Dataset& dataset, bool gpu, int ranks, int here);
// Returns the free bytes of the GPUs that so many ranks of this host would use; nothing if there
// are too few.
std::vector<std::uint64_t> free_on_gpus(int ranks);

}  // namespace plait

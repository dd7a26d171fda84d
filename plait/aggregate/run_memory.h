// What placing a graph on ranks, and aggregating on it, will take of their memory: the account
// (plan/memory_plan.h) asked in the words of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/plan/memory_plan.h"

namespace plait {

struct RunMemory {
  Strategy strategy = Strategy::automatic;
  ShardOptions shards;  // `halo` follows from the strategy
  bool gpu = false;
  std::vector<std::uint64_t> widths;  // of the rows that are aggregated, each once
  std::uint64_t edge_scratch = 0;     // as in MemoryQuestion
  std::vector<WorkBytes> work;        // as in MemoryQuestion
};

// The exact plan: every edge is looked at.
MemoryPlan plan_run(const AnyCsr& graph, bool symmetric, const Partition& partition,
                    const RunMemory& run);

// Collective. Throws DoesNotFitError, with `what` and the figures, on all ranks, where the host or
// the GPU of one has not as much free as the plan says. Quick where all rows of all ranks would
// fit.
void require_run_fits(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
                      const RunMemory& run, const std::string& what);

}  // namespace plait

// The memory that placing a graph on ranks, and aggregating on it, will take: the account of
// plan/memory_plan.h, asked in the words of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/plan/memory_plan.h"

namespace plait {

// A run as far as its memory depends on it. Sizes are in bytes unless said otherwise.
struct RunMemory {
  Route route;
  ShardOptions shards;                // `halo` and `order` follow from the route
  std::vector<std::uint64_t> widths;  // of the rows that are aggregated, in floats, each once
  std::vector<PassWidths> scheduled;  // as in MemoryQuestion
  std::uint64_t edge_scratch = 0;     // as in MemoryQuestion
  std::uint64_t rows_per_sum = 1;     // as in MemoryQuestion
  std::vector<WorkBytes> work;        // as in MemoryQuestion
};

// Returns the exact plan. Looks at every edge, on this process alone.
MemoryPlan plan_run(const AnyCsr& graph, bool symmetric, const Partition& partition,
                    const RunMemory& run);

// Collective. Throws DoesNotFitError on all ranks, with `what` (the subject of the sentence) and
// the figures, if the host or a rank's GPU has less free than the plan needs. Quick if even all
// rows of all ranks would fit.
void require_run_fits(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
                      const RunMemory& run, const std::string& what);

}  // namespace plait

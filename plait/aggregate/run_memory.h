// The memory that placing a graph on ranks, and aggregating on it, will take: the account of
// plan/memory_plan.h, asked in the words of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/graph/counts.h"
#include "plait/plan/memory_plan.h"

namespace plait {

// A run as far as its memory depends on it. Sizes are in bytes unless said otherwise.
struct RunMemory {
  Route route;
  ShardOptions shards;                // `halo` and `order` follow from the route
  std::vector<std::uint64_t> widths;  // of the rows that are aggregated, in floats, each once
  // The operations over edges that are no plain sums, with their shapes; empty: sums of `widths`.
  std::vector<EdgeOperation> operations;
  std::uint64_t edge_scratch = 0;                  // as in MemoryQuestion
  std::uint64_t rows_per_sum = 1;                  // as in MemoryQuestion
  std::optional<std::uint64_t> copied_width = {};  // as in MemoryQuestion
  std::vector<WorkBytes> work;                     // as in MemoryQuestion
  std::vector<std::uint64_t> beside = {};          // as in MemoryQuestion
  // Bytes of the host's memory, by rank, that a command takes when all ranks have given back what
  // the run takes; empty: none.
  std::vector<std::uint64_t> afterwards = {};
};

// Returns the number of edges that lead to own rows of a part.
EdgeOffset own_edges(const AnyCsr& graph, const Partition& partition, int part);

// Returns the exact plan of the memory that the route's device has. Looks at every edge, on this
// process alone.
MemoryPlan plan_run(const AnyCsr& graph, bool symmetric, const Partition& partition,
                    const RunMemory& run);

// A run in a command of several: `what` is the subject of the sentence that refuses it.
struct NamedRun {
  std::string what;
  RunMemory run;
};

// Collective. Returns the refusal of each run, the same on all ranks, with the figures of the host
// or the rank's GPU that has less free than the run needs; empty texts for runs that fit. Does not
// look at edges if all would fit even if ranks read all rows of all others, or if none would fit
// even if ranks read none.
std::vector<std::string> refusals_of(World& world, const AnyCsr& graph, bool symmetric,
                                     const Partition& partition, std::span<const NamedRun> runs);

// Collective. The same from the counts of the graph alone, before it is read (io/stated_counts.h).
// Runs are refused only if they fit in no partition, whatever the edges are.
std::vector<std::string> refusals_by_counts(World& world, const GraphCounts& counts,
                                            std::span<const NamedRun> runs);

// Collective. Throws DoesNotFitError on all ranks if the run is refused.
void require_run_fits(World& world, const AnyCsr& graph, bool symmetric, const Partition& partition,
                      const RunMemory& run, const std::string& what);

}  // namespace plait

// Strategies: the ways in which remote rows come to the place where they are summed, and a table of
// their traits.
//
//   replicate  every rank fetches all rows of all others, then sums.
//   bulk       every rank fetches each distinct remote row that it reads once, then sums.
//   pipelined  the same rows arrive while the rows that are there are summed. On GPUs.
//   partial    as pipelined, but an owner sends sums of its rows to a rank that needs fewer sums
//              than rows. On GPUs.
//   get        nothing is fetched ahead: the kernel reads a remote row for each remote edge (MGG,
//              section 4.2). Needs ranks that share memory.
//   paged      remote rows come to the GPU page by page when it reads them (CUDA's managed memory):
//              the rival that MGG is compared with (section 2.2). On GPUs.
//   automatic  resolved() in route.h picks one of the others.
//
// Strategies differ in the rows that move and the time when they move, not in results.
#pragma once

#include <cstdint>
#include <string_view>

#include "plait/placement/shard.h"
#include "plait/plan/memory_plan.h"

namespace plait {

enum class Strategy { replicate, bulk, pipelined, partial, get, paged, automatic };

// A strategy on one kind of device.
struct StrategyOnDevice {
  bool possible;
  HaloKind halo;     // the halo that its shards must have
  HaloStore store;   // the form in which a rank keeps remote rows, for the memory account
  bool brings_rows;  // remote rows themselves come to where edges read them, not only their sums
};

// One row of the table of strategies.
struct StrategyTraits {
  Strategy strategy;
  std::string_view name;
  StrategyOnDevice cpu, gpu;
  // On GPUs:
  bool by_nccl = false;  // NCCL brings rows of other ranks
  bool reaches_peers;    // kernels of a rank read or write other GPUs' memory
  bool own_order;        // a row's sum depends on which of its edges are remote
  // On both devices:
  bool converts_rows;  // rows may cross in another type than fp32

  // Returns the traits on GPUs or on the CPU.
  const StrategyOnDevice& on(bool gpus) const { return gpus ? gpu : cpu; }
};

// Returns the strategy's row of the table, which lives as long as the program.
const StrategyTraits& traits_of(Strategy strategy);

// Returns the strategy of this name ("auto" is automatic). Throws a UsageError that lists all
// names.
Strategy parse_strategy(std::string_view name);
std::string_view to_string(Strategy strategy);

}  // namespace plait

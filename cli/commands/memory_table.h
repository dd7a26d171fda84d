// The account of memory by array and rank, as plans show it.
#pragma once

#include <functional>

#include "cli/cli.h"
#include "plait/plan/memory_plan.h"

namespace plait::cli {

// Returns the fields "arrays", "largest_rank" and "total".
json memory_json(const MemoryPlan& plan);
// Prints a line for each array and one for the total, with a column per rank and one for all.
void print_memory(const MemoryPlan& plan, int ranks);
// Prints the memory that is free on so many GPUs as one more line of that table; if it is not
// known, says why.
void print_free_on_gpus(const std::vector<std::uint64_t>& free, int gpus);

// Memory that is free: with --gpus of each GPU, or none if there are too few; else of this host.
struct FreeNow {
  std::vector<std::uint64_t> gpus;
  std::uint64_t host = 0;
};
// Shows the account beside the memory that is free, as the fields of `result`, to which it adds, or
// by `print`.
FreeNow show_beside_free(const MemoryPlan& plan, const Session& session, json result,
                         const std::function<void()>& print);

}  // namespace plait::cli

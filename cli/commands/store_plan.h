// plait plan --store: the memory of a dataset that is kept for training on samples.
#pragma once

#include "cli/cli.h"
#include "plait/nn/config.h"
#include "plait/table/store_memory.h"

namespace plait::cli {

// The values of --store and --structure.
struct StoreOptions {
  bool store = false;
  StructurePlace structure = StructurePlace::automatic;
};
void add_store_options(CLI::App* command, StoreOptions& options);

// Prints the account of what `plait train --sampled` keeps, and throws DoesNotFitError if it does
// not fit. `width`: of the features; 0: the dataset's own width. Throws UsageError if the run keeps
// nothing of the dataset.
void plan_stored(const StoreOptions& options, const Session& session, const Dataset& dataset,
                 std::uint64_t width);

}  // namespace plait::cli

// plait plan --store: the memory of a dataset that is kept for training on samples.
#pragma once

#include "cli/cli.h"
#include "plait/nn/config.h"
#include "plait/store/store_memory.h"

namespace plait::cli {

// The values of --store, --dtype, --place, --structure and --hot-rows.
struct StoreOptions {
  bool store = false;
  std::optional<RowForm> form;      // none: that of the features
  std::optional<TablePlace> place;  // none: chosen
  StructurePlace structure = StructurePlace::automatic;
  std::uint64_t hot_rows = 0;
};
void add_store_options(CLI::App* command, StoreOptions& options);

// Prints the account, and throws DoesNotFitError if it does not fit. `width`: of the features; 0:
// the dataset's own.
void plan_stored(const StoreOptions& options, const Session& session, const Dataset& dataset,
                 std::uint64_t width);

}  // namespace plait::cli

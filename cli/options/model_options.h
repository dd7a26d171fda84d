// The options that say which model to train or to time.
#pragma once

#include "cli/cli.h"

namespace plait::cli {

// Adds --model and the options of the model's shape: --layers, --hidden, --heads, --output-heads,
// --aggregation, --norm, --residual, --activation and --dropout.
void add_model_options(CLI::App* command, ModelConfig& model);

// Sets all that the command line leaves open of the model, and of the steps of its optimiser, to
// the values of the model's paper. Throws a UsageError that lists the kinds.
void apply_model_defaults(const CLI::App& command, TrainConfig& train);

}  // namespace plait::cli

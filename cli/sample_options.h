// The options of training on sampled neighbourhoods.
#pragma once

#include <optional>

#include "cli/cli.h"

namespace plait::cli {

// Adds --sampled, --fanout, --batch and --prefetch. `sampled` gets a value if --sampled is given.
void add_sample_options(CLI::App* command, std::optional<SampledTraining>& sampled);

// Clears `sampled` unless --sampled was given, and gives each layer a fan-out if there is one for
// all.
void apply_fanouts(const CLI::App& command, std::optional<SampledTraining>& sampled, int layers);

// The settings as in the object that train prints; empty if nothing is sampled.
json sampled_to_json(const std::optional<SampledTraining>& sampled);

}  // namespace plait::cli

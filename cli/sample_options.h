// The options of training on sampled neighbourhoods.
#pragma once

#include "cli/cli.h"

namespace plait::cli {

// The values of --sampled and of the options that go with it.
struct SampleOptions {
  bool sampled = false;
  SampledTraining settings;
};
void add_sample_options(CLI::App* command, SampleOptions& options);

// Returns the settings, with a fan-out for each layer if one was given for all; nothing without
// --sampled. Throws UsageError for other options without it.
std::optional<SampledTraining> sampled_of(const CLI::App& command, const SampleOptions& options,
                                          int layers);

// The settings as in the object that train prints; empty if nothing is sampled.
json sampled_to_json(const std::optional<SampledTraining>& sampled);

}  // namespace plait::cli

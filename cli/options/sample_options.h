// The options of training on sampled neighbourhoods.
#pragma once

#include "cli/cli.h"
#include "plait/world/world.h"

namespace plait::cli {

// The values of --sampled and of the options that go with it.
struct SampleOptions {
  bool sampled = false;
  SampledTraining settings;
  std::string vertex_times, edge_times, example_times;  // files, or empty
};
void add_sample_options(CLI::App* command, SampleOptions& options);

// Returns the settings, with a fan-out for each layer if one was given for all; nothing without
// --sampled.
std::optional<SampledTraining> sampled_of(const SampleOptions& options, int layers);

// Collective. Reads the files of times, which belong to the dataset's vertices and edges. Throws
// Error on all ranks if one cannot read them, or if ranks read different times.
void read_sample_times(World& world, const Dataset& dataset, const SampleOptions& options,
                       std::optional<SampledTraining>& sampled);

// The settings as in the object that train prints; empty if nothing is sampled.
json sampled_to_json(const std::optional<SampledTraining>& sampled);

}  // namespace plait::cli

// The options of plait train.
#pragma once

#include <string>

#include "cli/options/sample_options.h"
#include "cli/trials.h"

namespace plait::cli {

struct TrainOptions {
  TrainConfig train;
  std::string graph;  // file
  Optimise optimise = Optimise::automatic;
  SampleOptions samples;
};
// Adds them to the command, in the groups that its help shows.
void add_train_options(CLI::App* command, Session& session, TrainOptions& options);

// Sets what follows from options that were read: the defaults of the model's paper, the settings of
// samples, and which hosts the ranks may be on.
void complete(const CLI::App& command, Session& session, TrainOptions& options);

// Throws a UsageError if options do nothing together, on `ranks` ranks.
void require_consistent(const TrainOptions& options, int ranks);

}  // namespace plait::cli

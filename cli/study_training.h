// Trains, for studies that compare accuracies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/study_table.h"
#include "plait/aggregate/bench.h"
#include "plait/graph/dataset.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait::cli {

struct StudyTraining {
  Times times;  // per epoch: the median of each run
  // Means over the runs, by their keys in JSON, and the standard deviation of test_metric.
  std::vector<std::pair<std::string, double>> figures;
  std::vector<double> validation;  // metric by epoch, the mean over the runs
};

// Collective. Trains GraphSAGE of two layers, entry.width wide, on the whole graph or on
// entry.sampled, once per seed from `seed` on. Half of the labelled vertices train, a quarter
// validates and a quarter tests, drawn anew by each seed; the epoch of the best validation metric
// counts. Returns the result on all ranks. Throws as Trainer does.
StudyTraining train_for_study(World& world, const Dataset& dataset, const Partition& partition,
                              const StudyEntry& entry, std::uint64_t seed, int runs);

}  // namespace plait::cli

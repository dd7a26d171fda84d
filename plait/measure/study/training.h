// Trains, for studies that compare accuracies and times of training.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/measure/bench.h"
#include "plait/measure/study/entry.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

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

// Returns the settings of WholeGraph's training (section IV-A): entry.model of three layers,
// entry.width wide (gat: of four heads, if they divide it), on batches of 512 examples per rank
// whose vertices have up to 30 neighbours per hop. Half of the labelled vertices train.
TrainConfig sampled_config(const StudyEntry& entry, std::uint64_t seed);

// The ms of epochs by these settings, of the slowest rank of each repetition.
struct StudyEpochs {
  Times ahead;    // batches are prepared while others are computed
  Times in_turn;  // each batch is prepared before it is computed; these times are parts of it:
  Times sampling, gathering, computing;
};
// Collective. The parts that prepare batches are those of a profile, which waits for the GPU where
// they begin and end; the epoch in turn has no profile, and computing is the rest of it. Returns
// the result on all ranks. Throws as Trainer does.
StudyEpochs time_sampled_epochs(World& world, const Dataset& dataset, const Partition& partition,
                                const TrainConfig& config, int repetitions);

}  // namespace plait

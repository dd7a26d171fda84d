// Checks that a dataset can be trained on, and finds its split. This header needs no libtorch.
#pragma once

#include <string>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"

namespace plait {

// Throws UsageError unless the dataset has features, labels and the split that is asked for.
void check_dataset(const Dataset& dataset, const TrainConfig& config);

// Throws Error unless the partition was made of this dataset, with the numbers of its vertices.
void check_partition(const Dataset& dataset, const Partition& partition);

// Throws Error if a model of this kind divides by degrees, and a vertex has one below 0: gcn, where
// edges have negative weights. The same on every rank.
void check_degrees(const Dataset& dataset, const std::string& kind);

// Returns the dataset's own split, or folds; ten folds for a set of graphs without a split, unless
// others are asked for. There is one entry per example. The dataset must outlive it.
Array<Split> split_of(const Dataset& dataset, const TrainConfig& config);
// Returns the name of the split: "split 0", or "fold 3 of 10", which with the model's seed says
// which examples are in it.
std::string split_name(const Dataset& dataset, const TrainConfig& config);

}  // namespace plait

// What a dataset must have to be trained on, and its split. No libtorch here.
#pragma once

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"

namespace plait {

// Throws UsageError unless the dataset has features, labels and the split that is asked for.
void check_dataset(const Dataset& dataset, const TrainConfig& config);

// The dataset's own split, or folds: of a set of graphs without a split, ten if nothing is said.
// An entry an example; the dataset must outlive it.
Array<Split> split_of(const Dataset& dataset, const TrainConfig& config);

}  // namespace plait

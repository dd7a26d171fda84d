// What a dataset must have to be trained on, and its split. No libtorch here.
#pragma once

#include <string>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"

namespace plait {

// Throws UsageError unless the dataset has features, labels and the split that is asked for.
void check_dataset(const Dataset& dataset, const TrainConfig& config);

// Throws Error if a model of this kind divides by degrees, and a vertex has one below 0: gcn, where
// edges have negative weights. The same on every rank.
void check_degrees(const Dataset& dataset, const std::string& kind);

// The dataset's own split, or folds: of a set of graphs without a split, ten if nothing is said.
// An entry an example; the dataset must outlive it.
Array<Split> split_of(const Dataset& dataset, const TrainConfig& config);
// Which of them: "split 0", or "fold 3 of 10", which with the model's seed says who is in it.
std::string split_name(const Dataset& dataset, const TrainConfig& config);

}  // namespace plait

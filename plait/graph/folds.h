// Splits made by rule, for datasets without splits: cross-validation.
#pragma once

#include <cstdint>

#include "plait/graph/dataset.h"

namespace plait {

// Number of folds, to which examples are dealt; 0: none. Labels are stratified: of each class, and
// of the examples whose label is unknown or that have several, folds differ by one at most. The
// fold of an example is a function of the seed, its number and the labels.
struct Folds {
  int count = 0;
  int test = 0;  // this fold tests, the next one validates, all others train
};

// Returns one entry per example. Throws UsageError unless there are at least 3 folds, at most one
// for each example, and `test` is one of them.
Array<Split> make_folds(const Dataset& dataset, Folds folds, std::uint64_t seed);

}  // namespace plait

// Splits made by rule, for datasets that come without: cross-validation.
#pragma once

#include <cstdint>

#include "plait/graph/dataset.h"

namespace plait {

// Examples are dealt to `count` folds. Labels are stratified: of each class, and of the examples
// whose label is unknown or that have several, folds differ by one at most. Which fold an example
// is in is a function of the seed, its number and the labels.
struct Folds {
  int count = 0;
  int test = 0;  // this fold tests, the next one validates, all others train
};

// One entry an example. Throws UsageError unless there are at least 3 folds, at most one for each
// example, and `test` is one of them.
Array<Split> make_folds(const Dataset& dataset, Folds folds, std::uint64_t seed);

}  // namespace plait

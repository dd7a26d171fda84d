// Features, labels and splits that follow classes of vertices, for generated graphs. Everything is
// a function of the seed, on every machine and for every number of threads.
//
//   Features   A class has a random unit vector; a vertex has the vector of its class plus Gaussian
//              noise of deviation `noise` in every column.
//   Label sets Each class stands for a set of labels: its own and, with probability 0.3, each of
//   the
//              others.
//   Splits     There is one: in each class `train_per_class` random examples, then
//              `validation_per_class`, and the rest for test.
#pragma once

#include <cstdint>
#include <span>

#include "plait/graph/dataset.h"

namespace plait {

// The parameters of such data.
struct ClassData {
  std::int32_t classes = 0;
  std::uint64_t width = 0;  // of features; 0: none
  double noise = 0.55;
  std::uint64_t train_per_class = 20;
  std::uint64_t validation_per_class = 50;
  std::uint64_t seed = 0;
};

// Returns features of vertices of these classes.
Features class_features(const ClassData& data, std::span<const std::int32_t> classes);
// Returns the label sets of examples of these classes: examples x data.classes of 0 and 1.
Buffer<std::uint8_t> class_label_sets(const ClassData& data, std::span<const std::int32_t> classes);
// Returns the split of examples of these classes.
Buffer<Split> class_splits(const ClassData& data, std::span<const std::int32_t> classes);

}  // namespace plait

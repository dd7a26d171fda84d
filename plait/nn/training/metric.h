// How good scores are, over the examples of all ranks.
//
// A metric is found in three steps: what a rank's scores tell, on the device that made them and
// without waiting for it, so that it can be recorded; numbers for each split that need only be
// summed over ranks; and from their sums the value.
#pragma once

#include <torch/types.h>

#include <memory>
#include <span>
#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/training/targets.h"
#include "plait/world/world.h"

namespace plait {

class Metric {
 public:
  virtual ~Metric() = default;

  // What own scores (own x classes) tell: float64, of one dimension, always as many.
  virtual torch::Tensor evidence(const torch::Tensor& scores, const Targets& targets) const = 0;
  // To be summed over ranks: equally many numbers for each split of kMeasured. Collective.
  virtual std::vector<double> counts(World& world, std::span<const double> evidence) const = 0;
  // By the sums of a split with so many examples; 0 where it is not defined.
  virtual double value(std::span<const double> sums, double examples) const = 0;
};

// Not automatic.
std::unique_ptr<Metric> make_metric(MetricKind kind);

// F1 of these numbers of pairs: 2 hits / (said + true), 0 without any (Manning, Raghavan and
// Schuetze, "Introduction to Information Retrieval", section 8.3).
double f1(double hits, double said, double labelled);

struct Scored {
  double score;
  bool positive;
};
// The probability that a positive example has a higher score than a negative one, ties counting
// half (Fawcett, "An introduction to ROC analysis", 2006); 0 unless there are both. O(n log n).
double roc_auc(std::vector<Scored> examples);

}  // namespace plait

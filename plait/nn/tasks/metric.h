// Measures of scores, over the examples of all ranks.
//
// A metric is found in three steps. Evidence is taken from a rank's scores on the device that made
// them, without waiting for it, so that this can be recorded. Evidence becomes counts, numbers
// for each split that need only be summed over ranks. Their sums give the value.
#pragma once

#include <torch/types.h>

#include <memory>
#include <span>
#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/tasks/targets.h"
#include "plait/world/world.h"

namespace plait {

class Metric {
 public:
  virtual ~Metric() = default;

  // Returns the evidence of own scores (own x classes): float64, of one dimension, of fixed size.
  virtual torch::Tensor evidence(const torch::Tensor& scores, const Targets& targets) const = 0;
  // Collective. Returns counts to be summed over ranks: equally many for each split of kMeasured.
  virtual std::vector<double> counts(World& world, std::span<const double> evidence) const = 0;
  // Returns the value of a split with so many examples from its sums; 0 where it is not defined.
  virtual double value(std::span<const double> sums, double examples) const = 0;
};

// Makes a metric of a kind that is not automatic.
std::unique_ptr<Metric> make_metric(MetricKind kind);

// Returns F1 of these numbers of pairs: 2 hits / (said + labelled), 0 without any (Manning,
// Raghavan and Schuetze, "Introduction to Information Retrieval", section 8.3).
double f1(double hits, double said, double labelled);

struct Scored {
  double score;
  bool positive;
};
// Returns the probability that a positive example has a higher score than a negative one, ties
// counting half (Fawcett, "An introduction to ROC analysis", 2006); 0 unless there are both. O(n
// log n).
double roc_auc(std::vector<Scored> examples);

}  // namespace plait

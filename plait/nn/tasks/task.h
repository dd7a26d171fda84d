// The tasks that a model can learn: the loss of an example by its scores, and the metrics that suit
// it.
#pragma once

#include <torch/types.h>

#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/operations/dense.h"
#include "plait/nn/tasks/targets.h"

namespace plait {

struct Task {
  TaskKind kind;
  // Returns the loss of each example of a split, by the scores of all own examples (own x classes):
  // differentiable, on their device, without waiting for it.
  torch::Tensor (*losses)(const torch::Tensor& scores, const SplitRows& split,
                          const GraphRef& graph);
  std::vector<MetricKind> metrics;  // the first by default
};

// Returns the row of the table of tasks.
const Task& task_of(TaskKind kind);

// Returns the metric to train by. Throws UsageError if the wanted one does not suit the task or the
// number of classes.
MetricKind metric_for(const Task& task, MetricKind wanted, std::int64_t classes);

}  // namespace plait

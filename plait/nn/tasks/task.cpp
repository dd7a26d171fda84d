#include "plait/nn/tasks/task.h"

#include <fmt/core.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/names.h"

namespace plait {
namespace {

torch::Tensor cross_entropy(const torch::Tensor& scores, const SplitRows& split, const GraphRef&) {
  return torch::nll_loss(torch::log_softmax(scores.index_select(0, split.rows), 1), split.labels,
                         {}, at::Reduction::None);
}

// Returns the mean over classes of the cross entropy of each, by the sigmoid of its score.
torch::Tensor class_by_class(const torch::Tensor& scores, const SplitRows& split,
                             const GraphRef& graph) {
  const torch::Tensor losses =
      binary_cross_entropy(scores.index_select(0, split.rows), split.labels, graph);
  return row_means(losses, graph);
}

const std::vector<Task>& tasks() {
  using enum MetricKind;
  static const std::vector<Task> table{{TaskKind::single_label, cross_entropy, {accuracy, roc_auc}},
                                       {TaskKind::multi_label, class_by_class, {micro_f1}},
                                       {TaskKind::graph_label, cross_entropy, {accuracy, roc_auc}}};
  return table;
}

}  // namespace

const Task& task_of(TaskKind kind) { return tasks()[static_cast<std::size_t>(kind)]; }

MetricKind metric_for(const Task& task, MetricKind wanted, std::int64_t classes) {
  if (wanted == MetricKind::automatic) return task.metrics[0];
  if (std::ranges::find(task.metrics, wanted) == task.metrics.end()) {
    std::vector<std::string_view> known;
    for (const MetricKind metric : task.metrics) known.push_back(to_string(metric));
    throw UsageError(fmt::format("metric '{}' does not suit {} data; use {}", to_string(wanted),
                                 to_string(task.kind), in_words(known, "or")));
  }
  require<UsageError>(wanted != MetricKind::roc_auc || classes == 2,
                      "metric 'roc-auc' needs two classes, but there are {}; use accuracy",
                      classes);
  return wanted;
}

}  // namespace plait

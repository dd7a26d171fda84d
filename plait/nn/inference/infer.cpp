#include "plait/nn/inference/infer.h"

#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "plait/aggregate/rows_in_order.h"
#include "plait/base/profile.h"
#include "plait/graph/renumber.h"
#include "plait/nn/inference/placed_model.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/tasks/metric.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trainable.h"

namespace plait {

std::vector<std::int64_t> Scores::predicted() const {
  std::vector<std::int64_t> result(rows * columns());
  if (task == TaskKind::multi_label) {
    std::ranges::transform(values, result.begin(), [](float score) { return score > 0; });
    return result;
  }
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto row = values.span().subspan(i * classes, classes);
    result[i] = std::ranges::max_element(row) - row.begin();
  }
  return result;
}

LabelCounts::LabelCounts(TaskKind task, const Dataset& dataset)
    : task_(task),
      dataset_(dataset),
      vertices_(dataset.is_set_of_graphs() ? Buffer<std::uint64_t>()
                                           : vertices_by_number(dataset)) {}

void LabelCounts::add(std::uint64_t begin, const std::vector<std::int64_t>& predicted) {
  const auto count = [](bool is) { return is ? 1.0 : 0.0; };
  if (task_ == TaskKind::multi_label) {
    const auto classes = static_cast<std::uint64_t>(dataset_.classes);
    if (begin * classes + predicted.size() > dataset_.label_sets.size()) return;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const bool is =
          dataset_.label_sets[example(begin + i / classes) * classes + i % classes] == 1;
      hits_ += count(predicted[i] == 1 && is);
      said_ += count(predicted[i] == 1);
      labelled_ += count(is);
    }
    return;
  }
  if (dataset_.labels.empty()) return;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const std::int32_t label = dataset_.labels[example(begin + i)];
    hits_ += count(predicted[i] == label);
    labelled_ += count(label >= 0);
  }
}

std::optional<LabelsMet> LabelCounts::met() const {
  if (task_ == TaskKind::multi_label && !dataset_.label_sets.empty())
    return LabelsMet{MetricKind::micro_f1, f1(hits_, said_, labelled_)};
  if (labelled_ == 0) return {};
  return LabelsMet{MetricKind::accuracy, hits_ / labelled_};
}

namespace {

// Collective. Returns on rank 0 the rows of all examples, in their order, from the parts of ranks.
Buffer<float> gathered(World& world, const Partition& partition, const torch::Tensor& own,
                       const Dataset& dataset) {
  const std::span rows(own.const_data_ptr<float>(), static_cast<std::size_t>(own.numel()));
  if (dataset.is_set_of_graphs())  // ranks have ranges of graphs
    return values_by_rank(world, rows);
  return rows_in_order(world, partition, rows, static_cast<std::uint64_t>(own.size(1)));
}

// Returns the scores of own examples, on the host.
torch::Tensor own_scores(World& world, const Dataset& dataset, const Partition& partition,
                         const Route& route, TrainedModel trained,
                         const std::function<void()>& placed) {
  const PlacedModel model(world, dataset, partition, route, std::move(trained));
  placed();
  const torch::Tensor scores = model.scores();
  model.graph().about_to_wait();
  torch::Tensor own = scores.to(torch::kCPU).contiguous();
  model.graph().check();
  return own;
}

}  // namespace

void rehearse_inference(const Dataset& dataset, const ModelConfig& model, bool exact,
                        const std::function<void()>& placed) {
  const torch::NoGradGuard no_grad;
  own_scores(*World::alone(), dataset, partition_by_vertices(dataset.vertices(), 1),
             {.exact = exact}, {Model(model), Normalize::automatic}, placed);
}

Scores infer(World& world, const Dataset& dataset, const Partition& partition,
             const InferConfig& config) {
  check_partition(dataset, partition);
  const torch::NoGradGuard no_grad;
  TrainedModel trained = timed("load checkpoint", [&] {
    return load_model_for(world, dataset, config, torch_device(config.route.gpu));
  });
  const TaskKind task = trained.model.config().task;
  require_wire_used(trained.model.config(), dataset.features.is_sparse(), config.route,
                    world.size());
  require_inference_fits(world, dataset, partition, trained.model.config(), config);
  const torch::Tensor own =
      own_scores(world, dataset, partition, config.route, std::move(trained), [] {});

  Array<float> values =
      timed("gather scores", [&] { return gathered(world, partition, own, dataset); });
  if (world.rank() != 0) return {};
  return {task, dataset.examples(), static_cast<std::uint64_t>(own.size(1)), std::move(values)};
}

}  // namespace plait

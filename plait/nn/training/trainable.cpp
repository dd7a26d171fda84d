#include "plait/nn/training/trainable.h"

#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/nn/layers/layer.h"
#include "plait/placement/row_block.h"

namespace plait {

void check_dataset(const Dataset& dataset, const TrainConfig& config) {
  const auto need = [&](bool there, const std::string& what) {
    require<UsageError>(there, "{} has no {}; training needs features, labels and a split",
                        dataset.name, what);
  };
  need(!dataset.features.empty(), "features");
  need(!(dataset.labels.empty() && dataset.label_sets.empty()) && dataset.classes > 0, "labels");
  if (config.folds.count == 0) {
    need(!dataset.splits.empty() || dataset.is_set_of_graphs(),
         "split into training, validation and test vertices (" + setting("folds") + " makes one)");
    require<UsageError>(config.split < std::max(dataset.split_count, 1u),
                        "split {} is outside 0..{}", config.split,
                        std::max(dataset.split_count, 1u) - 1);
    require<UsageError>(config.folds.test == 0 || dataset.splits.empty(),
                        "{} has a split of its own; give {} too to use a fold instead",
                        dataset.name, setting("folds"));
  }
  require<UsageError>(config.epochs >= 1, "{} epochs were asked for; use at least 1",
                      config.epochs);
  check_degrees(dataset, config.model.kind);
}

void check_partition(const Dataset& dataset, const Partition& partition) {
  // A copy of the dataset has arrays of its own, so numbers are compared, not their places.
  require(partition.vertices() == dataset.vertices() &&
              std::ranges::equal(partition.numbers(), dataset.numbers),
          "{}: the partition is of another dataset", dataset.name);
}

void check_degrees(const Dataset& dataset, const std::string& kind) {
  constexpr std::uint64_t kRows = 4096;  // looked at side by side
  const auto negative = [](float f) { return !(f >= 0); };
  const bool any =
      std::visit([&](const auto& graph) { return std::ranges::any_of(graph.weights, negative); },
                 dataset.graph);
  if (!layer_kind(kind).by_degree || !any) return;
  for (std::uint64_t begin = 0; begin < dataset.vertices(); begin += kRows) {
    const BlockRange rows{begin, std::min(begin + kRows, dataset.vertices())};
    const std::vector<float> degrees = degrees_of(dataset.graph, rows, true);
    const auto found = std::ranges::find_if(degrees, negative);
    require(found == degrees.end(),
            "{}: vertex {} has degree {:g}, the sum of its edges' weights; {}'s normalisation "
            "needs 0 or more; use another model, or plait convert {}",
            dataset.name,
            found == degrees.end()
                ? 0
                : dataset.number(begin + static_cast<std::uint64_t>(found - degrees.begin())),
            found == degrees.end() ? 0 : *found, kind, setting("no-weights"));
  }
}

namespace {

// Returns folds whose count is 0 if the dataset's own split is used.
Folds folds_of(const Dataset& dataset, const TrainConfig& config) {
  Folds folds = config.folds;
  if (folds.count == 0 && dataset.splits.empty()) folds.count = 10;
  return folds;
}

}  // namespace

Array<Split> split_of(const Dataset& dataset, const TrainConfig& config) {
  const Folds folds = folds_of(dataset, config);
  if (folds.count > 0) return make_folds(dataset, folds, config.model.seed);
  const std::uint64_t examples = dataset.examples();
  return {nullptr, dataset.splits.span().subspan(config.split * examples, examples)};
}

std::string split_name(const Dataset& dataset, const TrainConfig& config) {
  const Folds folds = folds_of(dataset, config);
  return folds.count > 0 ? fmt::format("fold {} of {}", folds.test, folds.count)
                         : fmt::format("split {}", config.split);
}

}  // namespace plait

#include "plait/nn/trainable.h"

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

void check_dataset(const Dataset& dataset, const TrainConfig& config) {
  const auto need = [&](bool there, const char* what) {
    require<UsageError>(there, "{} has no {}; training needs features, labels and a split",
                        dataset.name, what);
  };
  need(!dataset.features.empty(), "features");
  need(!(dataset.labels.empty() && dataset.label_sets.empty()) && dataset.classes > 0, "labels");
  if (config.folds.count == 0) {
    need(!dataset.splits.empty() || dataset.is_set_of_graphs(),
         "split into training, validation and test vertices (--folds makes one)");
    require<UsageError>(config.split < std::max(dataset.split_count, 1u),
                        "split {} is outside 0..{}", config.split,
                        std::max(dataset.split_count, 1u) - 1);
    require<UsageError>(config.folds.test == 0 || dataset.splits.empty(),
                        "{} has a split of its own; give --folds too to use a fold instead",
                        dataset.name);
  }
  require<UsageError>(config.epochs >= 1, "{} epochs were asked for; use at least 1",
                      config.epochs);
}

Array<Split> split_of(const Dataset& dataset, const TrainConfig& config) {
  Folds folds = config.folds;
  if (folds.count == 0 && !dataset.splits.empty()) {
    const std::uint64_t examples = dataset.examples();
    return {nullptr, dataset.splits.span().subspan(config.split * examples, examples)};
  }
  if (folds.count == 0) folds.count = 10;
  return make_folds(dataset, folds, config.model.seed);
}

}  // namespace plait

#include "cli/study_training.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "plait/nn/training/train.h"

namespace plait::cli {
namespace {

constexpr int kWholeEpochs = 200;   // of one step each
constexpr int kSampledEpochs = 20;  // of as many steps as take each example once
constexpr int kFolds = 4;

TrainConfig config_of(const StudyEntry& entry) {
  const char* const kind = "sage";
  const ModelDefaults& defaults = model_defaults(kind);
  TrainConfig config{.model = default_model(kind),
                     .learning_rate = defaults.learning_rate,
                     .weight_decay = defaults.weight_decay,
                     .epochs = entry.sampled ? kSampledEpochs : kWholeEpochs,
                     .folds = {.count = kFolds},
                     .sampled = entry.sampled,
                     .route = entry.options.route};
  config.model.hidden = static_cast<std::int64_t>(entry.width);
  return config;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Returns 0 for one value.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

StudyTraining train_for_study(World& world, const Dataset& dataset, const Partition& partition,
                              const StudyEntry& entry, std::uint64_t seed, int runs) {
  TrainConfig config = config_of(entry);
  StudyTraining found{.times = {}, .figures = {}, .validation = std::vector<double>(config.epochs)};
  std::vector<double> test, validation, best;
  const std::atomic<bool> never{false};
  for (int r = 0; r < runs; ++r) {
    config.model.seed = seed + static_cast<std::uint64_t>(r);
    const TrainResult result =
        Trainer(world, dataset, partition, config).run([](const EpochResult&) {}, never);
    found.times.ms.push_back(result.epoch_ms);
    test.push_back(result.best().test_metric);
    validation.push_back(result.best().validation_metric);
    best.push_back(result.best_epoch + 1);
    for (std::size_t e = 0; e < result.epochs.size(); ++e)
      found.validation[e] += result.epochs[e].validation_metric / runs;
  }
  std::ranges::sort(found.times.ms);
  found.figures = {{"test_metric", mean_of(test)},
                   {"test_deviation", deviation_of(test)},
                   {"val_metric", mean_of(validation)},
                   {"epochs_to_best", mean_of(best)}};
  return found;
}

}  // namespace plait::cli

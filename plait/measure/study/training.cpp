#include "plait/measure/study/training.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/nn/batches/sample_maker.h"
#include "plait/nn/training/train.h"
#include "plait/world/gather.h"

namespace plait {
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

TrainConfig sampled_config(const StudyEntry& entry, std::uint64_t seed) {
  constexpr int kLayers = 3;
  constexpr std::int64_t kFanout = 30, kHeads = 4;
  const ModelDefaults& defaults = model_defaults(entry.model);
  TrainConfig config{.model = default_model(entry.model),
                     .learning_rate = defaults.learning_rate,
                     .weight_decay = defaults.weight_decay,
                     .folds = {.count = kFolds},
                     .sampled = SampledTraining{.fanouts = {kFanout, kFanout, kFanout}},
                     .route = entry.options.route};
  config.model.layers = kLayers, config.model.seed = seed;
  config.model.hidden = static_cast<std::int64_t>(entry.width);
  if (config.model.heads > 1) config.model.heads = config.model.hidden % kHeads == 0 ? kHeads : 1;
  return config;
}

namespace {

// Takes one more epoch. Returns its ms on this rank: a stop that is asked for after an epoch comes
// before the next one's first step.
double one_epoch(Trainer& trainer) {
  std::atomic<bool> stop{false};
  double ms = 0;
  const auto note = [&](const EpochResult& epoch) {
    ms = epoch.milliseconds;
    stop = true;
  };
  trainer.run(note, stop);
  return ms;
}

// Returns the ms of all phases of this name.
double ms_of(const Profile& profile, std::string_view name) {
  double ms = 0;
  for (const PhaseTotal& phase : profile.phases)
    if (phase.name == name) ms += static_cast<double>(phase.ns) / 1e6;
  return ms;
}

// Phases on GPUs have the time of their own work: they wait for it, and for earlier work.
Profile profile_of_epoch(Trainer& trainer, bool gpu) {
  start_profile({});
  if (gpu) settle_phases_by(wait_for_gpu);
  try {
    one_epoch(trainer);
  } catch (...) {
    end_profile();
    throw;
  }
  return end_profile();
}

void sort_all(StudyEpochs& epochs) {
  for (Times* times :
       {&epochs.ahead, &epochs.in_turn, &epochs.sampling, &epochs.gathering, &epochs.computing})
    std::ranges::sort(times->ms);
}

}  // namespace

StudyEpochs time_sampled_epochs(World& world, const Dataset& dataset, const Partition& partition,
                                const TrainConfig& given, int repetitions) {
  TrainConfig config = given;
  config.epochs = 2 * repetitions + 2;  // one more than are taken
  StudyEpochs found;
  const auto add = [&](Times& times, double mine) {
    times.ms.push_back(largest_of_all(world, mine));
  };
  {
    Trainer trainer(world, dataset, partition, config);
    one_epoch(trainer);  // warms up
    for (int r = 0; r < repetitions; ++r) add(found.ahead, one_epoch(trainer));
  }
  config.sampled->prefetch = 0;
  Trainer trainer(world, dataset, partition, config);
  one_epoch(trainer);
  for (int r = 0; r < repetitions; ++r) {
    const double all = one_epoch(trainer);
    const Profile profile = profile_of_epoch(trainer, config.route.gpu);
    const double sampling = ms_of(profile, SampleMaker::kSampling);
    const double gathering = ms_of(profile, SampleMaker::kGathering);
    add(found.in_turn, all);
    add(found.sampling, sampling);
    add(found.gathering, gathering);
    add(found.computing, std::max(all - sampling - gathering, 0.0));
  }
  sort_all(found);
  return found;
}

}  // namespace plait

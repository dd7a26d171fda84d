// Writes what run_json.cpp reads; apart, because reading needs no libtorch.
#include <fmt/core.h>

#include "cli/options/get_options.h"
#include "cli/options/sample_options.h"
#include "cli/run_json.h"
#include "cli/trials.h"

namespace plait::cli {
namespace {

// The fields "phases", "bytes_between_ranks" and "memory".
json costs_to_json(const TrainResult& result, const std::vector<double>& setup) {
  const auto by_rank = [&](auto RankCost::*field) {
    json values = json::array();
    for (const RankCost& rank : result.ranks) values.push_back(rank.*field);
    return values;
  };
  json memory = {{"host", by_rank(&RankCost::host_memory)}};
  if (result.ranks.front().gpu_memory > 0) memory["gpu"] = by_rank(&RankCost::gpu_memory);
  const bool known = result.bytes_between.front().size() == result.ranks.size();
  return {{"phases",
           {{"setup", setup},
            {"computing", by_rank(&RankCost::computing)},
            {"summing", by_rank(&RankCost::summing)},
            {"fetching", by_rank(&RankCost::fetching)},
            {"waiting", by_rank(&RankCost::waiting)},
            {"gradients", by_rank(&RankCost::gradients)},
            {"evaluating", by_rank(&RankCost::evaluating)}}},
          {"bytes_between_ranks", known ? json(result.bytes_between) : json(nullptr)},
          {"memory", memory}};
}

}  // namespace

json run_to_json(const RunPlace& place, const TrainConfig& train, const TrainResult& result,
                 const std::vector<double>& setup) {
  json losses = json::array(), validation = json::array(), validation_losses = json::array();
  for (const EpochResult& e : result.epochs) {
    losses.push_back(e.loss);
    validation.push_back(e.validation_metric);
    validation_losses.push_back(e.validation_loss);
  }
  const EpochResult& best = result.best();
  const bool accuracy = result.metric == MetricKind::accuracy;
  json all = {{"model", train.model.kind},
              {"graph", place.graph},
              {"ranks", place.ranks},
              {"seed", train.model.seed},
              {"strategy", to_string(train.route.strategy)},
              {"partition", to_string(train.route.partition)},
              {"wire", to_string(train.route.wire)},
              {"exact", train.route.exact},
              {"precision", to_string(train.precision)},
              {"tf32", train.precision == Precision::tf32},
              {"epochs", result.epochs.size()},
              {"loss", losses},
              {"val_loss_by_epoch", validation_losses},
              {"metric", to_string(result.metric)},
              {"val_metric_by_epoch", validation},
              {"best_epoch", result.best_epoch},
              {"train_metric", best.train_metric},
              {"val_metric", best.validation_metric},
              {"test_metric", best.test_metric},
              {"epoch_ms", result.epoch_ms},
              {"comm_share", result.comm_share},
              {"bytes_per_rank", result.bytes_per_rank},
              {"interrupted", result.interrupted},
              {"device", place.device}};
  if (accuracy)
    for (const char* part : {"train", "val", "test"})
      all[fmt::format("{}_accuracy", part)] = all[fmt::format("{}_metric", part)];
  if (accuracy) all["val_accuracy_by_epoch"] = validation;
  all.update(trials_to_json(result));
  all.update(sampled_to_json(train.sampled));
  if (train.sampled && train.route.gpu) all["replayed_steps"] = result.replayed_steps;
  if (train.route.gets_on_gpus()) all["get"] = cli::to_json(train.route.get);
  all.update(costs_to_json(result, setup));
  return all;
}

}  // namespace plait::cli

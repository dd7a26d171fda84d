// The evaluation of a training run's weights between epochs, on the whole graph.
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/nn/training/training_run.h"

namespace plait {

torch::Tensor TrainingRun::score() const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor own = scores({}, false);
  const torch::Tensor loss =
      part_of_total(task.losses(own, targets.of(Split::validation), graph), graph);
  return torch::cat({loss.view({1}), metric->evidence(own, targets)});
}

// Hosts that have placed the whole graph each find the same but for rounding: the first one's
// numbers count, so that all ranks judge the epoch alike.
void TrainingRun::sum_over_all(std::vector<double>& sums) {
  if (&placing == &world) return world.all_reduce_sum(sums);
  placing.all_reduce_sum(std::span(sums).subspan(kOfAllRanks));
  world.all_reduce_sum(std::span(sums).first(kOfAllRanks));
  world.broadcast(std::as_writable_bytes(std::span(sums).subspan(kOfAllRanks)), 0);
}

EpochResult TrainingRun::evaluate(int epoch, double loss, bool& stop) {
  const Timed timed("evaluate");
  AddTime time(costs.cost.evaluating);
  recorder->run(Recorder::evaluation, [&] { found = score(); });
  graph->about_to_wait();
  const torch::Tensor here = found.to(torch::kCPU);
  graph->check();
  const std::span own(here.const_data_ptr<double>(), static_cast<std::size_t>(here.numel()));
  std::vector<double> sums{loss, stop ? 1.0 : 0.0, own[0]};
  const std::vector<double> counts = metric->counts(placing, own.subspan(1));
  sums.insert(sums.end(), counts.begin(), counts.end());
  sum_over_all(sums);
  stop = sums[1] > 0;
  const auto mean = [&](double sum, Split split) {
    return targets.total(split) > 0 ? sum / targets.total(split) : 0.0;
  };
  const std::size_t each = counts.size() / kMeasured.size();
  const auto value = [&](std::size_t split) {
    return metric->value(std::span(sums).subspan(3 + split * each, each),
                         targets.total(kMeasured[split]));
  };
  return {.epoch = epoch,
          .loss = mean(sums[0], Split::train),
          .validation_loss = mean(sums[2], Split::validation),
          .train_metric = value(0),
          .validation_metric = value(1),
          .test_metric = value(2)};
}

}  // namespace plait

#include <torch/autograd.h>

#include <utility>

#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/nn/training/trainer_state.h"
#include "plait/world/phase.h"

namespace plait {

void Trainer::State::put_gradients(const std::vector<torch::Tensor>& mine) {
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& gradient : mine) flat.push_back(gradient.flatten());
  torch::cat_out(gradients, flat);
}

torch::Tensor Trainer::State::scores(const DropoutStep& drop_step, bool trains) const {
  return model.forward(input, graph, drop_step, trains, set ? &*set : nullptr);
}

void Trainer::State::differentiate(const torch::Tensor& loss, const torch::Tensor& share) {
  const Timed timed("backward");
  put_gradients(torch::autograd::grad({loss}, parameters, {share}));
}

void Trainer::State::descend() {
  graph->wait_before_sums();  // which is no time of the sum
  {
    const Phase phase("summing gradients", "sum gradients");
    AddTime time(cost.gradients);
    if (world.size() > 1) graph->all_reduce_sum(gradients);
  }
  const Timed timed("optimiser");
  optimizer.step();
}

double Trainer::State::step(int epoch) {
  AddTime time(step_seconds);
  recorder->run(Recorder::step, [&] {
    const auto* const at = reinterpret_cast<std::uint32_t*>(epoch_at.mutable_data_ptr<int>());
    const DropoutStep drop_step{&dropout, static_cast<std::uint32_t>(epoch), 0, at};
    const torch::Tensor losses =
        task.losses(scores(drop_step, true), targets.of(Split::train), graph);
    const BackwardHere here;
    const torch::Tensor loss = losses.sum();
    differentiate(loss, share_of_one);
    descend();
    epoch_at.add_(1);
    step_loss = graph->exact() ? part_of_total(losses, graph) : loss.detach();
  });
  graph->about_to_wait();
  const auto loss = step_loss.item<double>();  // waits for all that a GPU was given to do
  graph->check();
  return loss;
}

std::optional<double> Trainer::State::counted_step(int epoch) {
  if (batches && !room_recorder) record_samples();  // which is no part of an epoch
  const ExchangeCost before = graph->cost();
  const std::uint64_t sent_before = world.bytes_sent();
  const bool whole = training.under_way.steps == 0;
  const std::optional<double> loss = batches ? sampled_steps(epoch) : step(epoch);
  const ExchangeCost after = graph->cost();
  cost.summing += after.summing - before.summing;
  cost.fetching += after.fetching - before.fetching;
  cost.waiting += after.waiting - before.waiting;
  const std::uint64_t bytes =
      after.bytes_fetched - before.bytes_fetched + world.bytes_sent() - sent_before;
  // Epochs are alike, and a replay counts none.
  if (step_bytes > 0 || !whole || !loss) return loss;
  step_bytes = bytes;
  step_bytes_from = after.fetched_from;
  for (std::size_t p = 0; p < before.fetched_from.size(); ++p)
    step_bytes_from[p] -= before.fetched_from[p];
  return loss;
}

torch::Tensor Trainer::State::score() const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor own = scores({}, false);
  const torch::Tensor loss =
      part_of_total(task.losses(own, targets.of(Split::validation), graph), graph);
  return torch::cat({loss.view({1}), metric->evidence(own, targets)});
}

// Hosts that have placed the whole graph each find the same but for rounding: the first one's
// numbers count, so that all ranks judge the epoch alike.
void Trainer::State::sum_over_all(std::vector<double>& sums) {
  if (&placing == &world) return world.all_reduce_sum(sums);
  placing.all_reduce_sum(std::span(sums).subspan(kOfAllRanks));
  world.all_reduce_sum(std::span(sums).first(kOfAllRanks));
  world.broadcast(std::as_writable_bytes(std::span(sums).subspan(kOfAllRanks)), 0);
}

EpochResult Trainer::State::evaluate(int epoch, double loss, bool& stop) {
  const Timed timed("evaluate");
  AddTime time(cost.evaluating);
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

#include "plait/nn/training/training_run.h"

#include <torch/autograd.h>

#include <algorithm>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/base/setting.h"
#include "plait/base/timer.h"
#include "plait/graph/renumber.h"
#include "plait/nn/training/epochs.h"
#include "plait/nn/training/trainable.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"

namespace plait {
namespace {

AdamOptions adam_options(const TrainConfig& config, const Model& model) {
  return {.learning_rate = config.learning_rate,
          .weight_decay = config.weight_decay,
          .decayed = model.decayed_parameters()};
}

// Throws UsageError if the checkpoint that was read has more epochs than the run is to have.
void require_not_past(const TrainingState& training, const TrainConfig& config) {
  const std::size_t done = training.history.size();
  const bool another = training.under_way.steps > 0;
  require<UsageError>(done + another <= static_cast<std::size_t>(config.epochs),
                      "{} has {} epoch{}{}, but {} asks for fewer; give a larger number",
                      printable(config.resume), done, done == 1 ? "" : "s",
                      another ? " and steps of another" : "",
                      setting("epochs", fmt::to_string(config.epochs)));
}

// Returns the way in which the graph is placed: for evaluation alone if steps take samples.
ShardOptions shards_of(const TrainConfig& config) {
  ShardOptions options = shard_options_of(config.model);
  options.transposed = !config.sampled;
  return options;
}

// Collective. Returns the dataset as it was before it was renumbered.
Dataset in_first_order(World& world, const Dataset& dataset) {
  if (!dataset.numbers.empty())  // on all ranks
    on_all_or_none(world,
                   [&] { require_memory_to_renumber(dataset, world.ranks_of_host().size()); });
  return with_first_numbers(dataset);
}

}  // namespace

Learner::Learner(const TrainConfig& config, const torch::Device& device)
    : model(config.model, device),
      parameters(model.parameters()),
      kept(model.state()),
      optimizer(parameters, adam_options(config, model)) {
  for (const torch::Tensor& t : kept) best.push_back(t.clone());
  std::int64_t count = 0, at = 0;
  for (const torch::Tensor& p : parameters) count += p.numel();
  gradients = torch::zeros({count}, device);
  for (const torch::Tensor& p : parameters) {
    p.mutable_grad() = gradients.narrow(0, at, p.numel()).view_as(p);
    at += p.numel();
  }
}

void Learner::differentiate(const torch::Tensor& loss, const torch::Tensor& share) {
  const Timed timed("backward");
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& gradient : torch::autograd::grad({loss}, parameters, {share}))
    flat.push_back(gradient.flatten());
  torch::cat_out(gradients, flat);
}

void Learner::keep_best() {
  const torch::NoGradGuard no_grad;
  at::_foreach_copy_(best, kept);
}

TrainingRun::TrainingRun(World& w, const Dataset& dataset, const Partition& partition,
                         const TrainConfig& c)
    : world(w),
      placing(graph_ranks(w, c)),
      config(c),
      device(torch_device(c.route.gpu)),
      stream(device),
      learner(c, device),
      task(task_of(dataset.task())),
      metric_kind(metric_for(task, c.metric, dataset.classes)),
      metric(make_metric(metric_kind)),
      input({dataset.features, c.made_rows}, partition, placing.rank(), c.normalize, device),
      set(graph_set_of(placing, dataset, input, device)),
      targets(make_targets(placing, dataset, split_of(dataset, c).span(),
                           set ? set->own() : input.vertices())),
      placer{[this, &dataset, &partition] {
               c10::intrusive_ptr<GraphHandle> handle;
               on_all_hosts(world, placing, [&] {
                 handle = c10::make_intrusive<GraphHandle>(
                     placing, dataset.graph, dataset.symmetric, partition,
                     ExchangeOptions{.route = config.route,
                                     .shards = shards_of(config),
                                     .max_width = learner.model.moved_width(input.is_sparse()),
                                     .tuning = {.pass_shares = equal_shares(config.passes)}});
               });
               handle->sum_over(world);
               return handle;
             },
             [this, &dataset, &partition] {
               require_training_fits(placing, dataset, partition, config);
             }},
      dropout(c.model.seed, c.model.dropout) {
  {
    AddTime time(setting_up);
    graph = placer.place();
  }
  recorder.emplace(*graph, records());
  require<UsageError>(targets.total(Split::train) > 0,
                      "{} has no labelled training examples in split {}", dataset.name, c.split);
  require<UsageError>(c.patience <= 0 || targets.total(Split::validation) > 0,
                      "{} has no labelled validation examples in split {}, by which {} "
                      "stops; leave it out",
                      dataset.name, c.split, setting("patience"));
  steps = c.sampled ? make_sampled_steps(*this, dataset, partition) : make_full_graph_steps(*this);
  training.steps = steps->count();
  if (!c.resume.empty() || !c.checkpoint.empty()) {
    training.settings = {{"metric", std::string(to_string(metric_kind))},
                         {"split", split_name(dataset, c)},
                         {"normalize", std::string(to_string(c.normalize))},
                         {"steps", steps_name(c, w.size(), dataset)}};
    training.graph = fingerprint(in_first_order(w, dataset));
  }
  if (!c.resume.empty())
    training = resume_checkpoint(read_checkpoint(w, c.resume), c.resume, training, learner.model,
                                 learner.best, learner.optimizer);
  require_not_past(training, c);
  steps->begin_at(static_cast<std::int64_t>(training.history.size()));
}

Trials::Placed TrainingRun::place_anew(const TrialWay& way, bool fits) {
  recorder.reset();
  steps->forget_graph();
  found.reset();
  graph.reset();
  if (config.route.gpu) release_gpu_caches();
  world.barrier();  // shared memory is free when all ranks have let go of it
  config.route.strategy = way.strategy;
  config.passes = way.passes;
  if (!fits) placer.require_fits();
  const Stopwatch watch;
  graph = placer.place();
  const double seconds = watch.seconds();
  recorder.emplace(*graph, records());
  costs.bytes = 0;
  costs.bytes_from.clear();
  return {warm_up(), seconds};
}

void TrainingRun::note_under_way(std::int64_t taken, double milliseconds, double loss) {
  training.under_way = {taken, milliseconds, gather_values(world, loss)};
  const bool finite =
      std::ranges::all_of(training.under_way.losses, [](double sum) { return std::isfinite(sum); });
  require(finite, "the loss is not finite after {} steps of epoch {}; lower the learning rate",
          taken, training.history.size());
  if (training.history.empty()) learner.keep_best();  // no epoch has told which are best
}

void TrainingRun::save() {
  const Timed timed("checkpoint");
  const std::size_t done = training.history.size();
  if (done == 0 && training.under_way.steps == 0) return;
  require_finite_weights(learner.kept, training.under_way.steps > 0 ? done : done - 1);
  if (!config.checkpoint.empty() && world.rank() == 0)
    save_checkpoint(config.checkpoint, learner.model, learner.best, learner.optimizer, training);
}

void TrainingRun::keep_best(const EpochResult& result) {
  if (!is_as_good(result, training.history[static_cast<std::size_t>(training.best_epoch)])) return;
  training.best_epoch = result.epoch;
  learner.keep_best();
}

torch::Tensor TrainingRun::scores(const DropoutStep& drop_step, bool trains) const {
  return learner.model.forward(input, graph, drop_step, trains, set ? &*set : nullptr);
}

void TrainingRun::descend() {
  graph->wait_before_sums();  // which is no time of the sum
  {
    const Phase phase("summing gradients", "sum gradients");
    AddTime time(costs.cost.gradients);
    if (world.size() > 1) graph->all_reduce_sum(learner.gradients);
  }
  const Timed timed("optimiser");
  learner.optimizer.step();
}

std::optional<double> TrainingRun::counted_steps(int epoch, const std::atomic<bool>& stop) {
  steps->prepare();
  const ExchangeCost before = graph->cost();
  const std::uint64_t sent_before = world.bytes_sent();
  const bool whole = training.under_way.steps == 0;
  const std::optional<double> loss = steps->take(epoch, stop);
  const ExchangeCost after = graph->cost();
  costs.cost.summing += after.summing - before.summing;
  costs.cost.fetching += after.fetching - before.fetching;
  costs.cost.waiting += after.waiting - before.waiting;
  const std::uint64_t bytes =
      after.bytes_fetched - before.bytes_fetched + world.bytes_sent() - sent_before;
  // Epochs are alike, and a replay counts none.
  if (costs.bytes > 0 || !whole || !loss) return loss;
  costs.bytes = bytes;
  costs.bytes_from = after.fetched_from;
  for (std::size_t p = 0; p < before.fetched_from.size(); ++p)
    costs.bytes_from[p] -= before.fetched_from[p];
  return loss;
}

}  // namespace plait

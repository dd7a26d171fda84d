#include "plait/nn/training/trainer_state.h"

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

void copy_weights(const std::vector<torch::Tensor>& from, const std::vector<torch::Tensor>& to) {
  const torch::NoGradGuard no_grad;
  at::_foreach_copy_(to, from);
}

// Collective. Returns the dataset as it was before it was renumbered.
Dataset in_first_order(World& world, const Dataset& dataset) {
  if (!dataset.numbers.empty())  // on all ranks
    on_all_or_none(world,
                   [&] { require_memory_to_renumber(dataset, world.ranks_of_host().size()); });
  return with_first_numbers(dataset);
}

}  // namespace

Trainer::State::State(World& w, const Dataset& dataset, const Partition& partition,
                      const TrainConfig& c)
    : world(w),
      placing(graph_ranks(w, c)),
      config(c),
      device(torch_device(c.route.gpu)),
      stream(device),
      model(c.model, device),
      task(task_of(dataset.task())),
      metric_kind(metric_for(task, c.metric, dataset.classes)),
      metric(make_metric(metric_kind)),
      input({dataset.features, c.made_rows}, partition, placing.rank(), c.normalize, device),
      set(graph_set_of(placing, dataset, input, device)),
      targets(make_targets(placing, dataset, split_of(dataset, c).span(),
                           set ? set->own() : input.vertices())),
      placed([this, &dataset, &partition] {
        c10::intrusive_ptr<GraphHandle> handle;
        on_all_hosts(world, placing, [&] {
          handle = c10::make_intrusive<GraphHandle>(
              placing, dataset.graph, dataset.symmetric, partition,
              ExchangeOptions{.route = config.route,
                              .shards = shards_of(config),
                              .max_width = model.moved_width(input.is_sparse()),
                              .tuning = {.pass_shares = equal_shares(config.passes)}});
        });
        handle->sum_over(world);
        return handle;
      }),
      require_fits([this, &dataset, &partition] {
        require_training_fits(placing, dataset, partition, config);
      }),
      graph(first_placed()),
      dropout(c.model.seed, c.model.dropout),
      parameters(model.parameters()),
      share_of_one(torch::full({}, 1 / targets.total(Split::train), device)),
      epoch_at(torch::zeros({}, torch::dtype(torch::kInt32).device(device))),
      optimizer(parameters, adam_options(c, model)) {
  recorder.emplace(*graph, records());
  require<UsageError>(targets.total(Split::train) > 0,
                      "{} has no labelled training examples in split {}", dataset.name, c.split);
  require<UsageError>(c.patience <= 0 || targets.total(Split::validation) > 0,
                      "{} has no labelled validation examples in split {}, by which {} "
                      "stops; leave it out",
                      dataset.name, c.split, setting("patience"));
  std::int64_t count = 0;
  kept = model.state();
  for (const torch::Tensor& t : kept) best.push_back(t.clone());
  for (const torch::Tensor& p : parameters) count += p.numel();
  gradients = torch::zeros({count}, device);
  std::int64_t at = 0;
  for (const torch::Tensor& p : parameters) {
    p.mutable_grad() = gradients.narrow(0, at, p.numel()).view_as(p);
    at += p.numel();
  }
  if (config.sampled) {
    const std::uint64_t ahead =
        config.route.gpu ? sampled_bytes_ahead(dataset, partition, config, placing.rank()) : 0;
    batches = std::make_unique<SampledBatches>(w, dataset, partition, config,
                                               split_of(dataset, c).span(), ahead);
    training.steps = batches->steps();
  }
  if (!c.resume.empty() || !c.checkpoint.empty()) {
    training.settings = {{"metric", std::string(to_string(metric_kind))},
                         {"split", split_name(dataset, c)},
                         {"normalize", std::string(to_string(c.normalize))},
                         {"steps", steps_name(c, w.size(), dataset)}};
    training.graph = fingerprint(in_first_order(w, dataset));
  }
  if (!c.resume.empty())
    training =
        resume_checkpoint(read_checkpoint(w, c.resume), c.resume, training, model, best, optimizer);
  require_not_past(training, c);
  epoch_at.fill_(static_cast<std::int64_t>(training.history.size()));
}

c10::intrusive_ptr<GraphHandle> Trainer::State::first_placed() {
  AddTime time(setting_up);
  return placed();
}

Trials::Placed Trainer::State::place_anew(const TrialWay& way, bool fits) {
  recorder.reset();
  step_loss.reset(), found.reset();
  graph.reset();
  if (config.route.gpu) release_gpu_caches();
  world.barrier();  // shared memory is free when all ranks have let go of it
  config.route.strategy = way.strategy;
  config.passes = way.passes;
  if (!fits) require_fits();
  const Stopwatch watch;
  graph = placed();
  const double seconds = watch.seconds();
  recorder.emplace(*graph, records());
  step_bytes = 0;
  step_bytes_from.clear();
  return {warm_up(), seconds};
}

void Trainer::State::note_under_way(std::int64_t steps, double milliseconds, double loss) {
  training.under_way = {steps, milliseconds, gather_values(world, loss)};
  const bool finite =
      std::ranges::all_of(training.under_way.losses, [](double sum) { return std::isfinite(sum); });
  require(finite, "the loss is not finite after {} steps of epoch {}; lower the learning rate",
          steps, training.history.size());
  if (training.history.empty()) copy_weights(kept, best);  // no epoch has told which are best
}

void Trainer::State::save() {
  const Timed timed("checkpoint");
  const std::size_t done = training.history.size();
  if (done == 0 && training.under_way.steps == 0) return;
  require_finite_weights(kept, training.under_way.steps > 0 ? done : done - 1);
  if (!config.checkpoint.empty() && world.rank() == 0)
    save_checkpoint(config.checkpoint, model, best, optimizer, training);
}

void Trainer::State::keep_best(const EpochResult& result) {
  if (!is_as_good(result, training.history[static_cast<std::size_t>(training.best_epoch)])) return;
  training.best_epoch = result.epoch;
  copy_weights(kept, best);
}

}  // namespace plait

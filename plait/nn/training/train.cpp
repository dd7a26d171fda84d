#include "plait/nn/training/train.h"

#include <ATen/Context.h>
#include <torch/autograd.h>

#include <algorithm>
#include <array>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/graph/renumber.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/adam.h"
#include "plait/nn/training/checkpoint.h"
#include "plait/nn/training/epochs.h"
#include "plait/nn/training/metric.h"
#include "plait/nn/training/recorded.h"
#include "plait/nn/training/sampled_batches.h"
#include "plait/nn/training/task.h"
#include "plait/nn/training/trainable.h"
#include "plait/nn/training/trials.h"
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

struct Trainer::State {
  World& world;
  TrainConfig config;
  torch::Device device;
  OwnStream stream;
  Model model;
  const Task& task;
  MetricKind metric_kind;
  std::unique_ptr<Metric> metric;
  InputFeatures input;
  std::optional<GraphSet> set;  // if graphs are labelled
  Targets targets;
  std::function<c10::intrusive_ptr<GraphHandle>()> placed;  // places the graph by `config`
  std::function<void()> require_fits;                       // by `config`
  double setting_up = 0;                                    // seconds that placing it took
  c10::intrusive_ptr<GraphHandle> graph;
  Dropout dropout;
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> kept, best;  // parameters and buffers, now and of the best epoch
  torch::Tensor gradients;                // one array, of which the parameters' gradients are views
  torch::Tensor share_of_one;             // factor of the loss of one training example
  torch::Tensor epoch_at;  // one int32: the epoch under way, which a recorded step reads
  Adam optimizer;
  TrainingState training;
  std::unique_ptr<SampledBatches> batches;           // if a step takes a sample
  std::vector<torch::Tensor> before_epoch;           // then: weights, buffers and moments
  const std::atomic<bool>* asked_to_stop = nullptr;  // of run()
  std::optional<Recorder> recorder;
  torch::Tensor step_loss, found;  // loss and evidence of the recorded work
  RankCost cost;                   // of this rank
  std::uint64_t step_bytes = 0;
  std::vector<std::uint64_t> step_bytes_from;  // of these, bytes of rows, by their owner
  double step_seconds = 0;

  State(World& w, const Dataset& dataset, const Partition& partition, const TrainConfig& c)
      : world(w),
        config(c),
        device(torch_device(c.route.gpu)),
        stream(device),
        model(c.model, device),
        task(task_of(dataset.task())),
        metric_kind(metric_for(task, c.metric, dataset.classes)),
        metric(make_metric(metric_kind)),
        input(dataset.features, partition, w.rank(), c.normalize, device),
        set(graph_set_of(w, dataset, input, device)),
        targets(make_targets(w, dataset, split_of(dataset, c).span(),
                             set ? set->own() : input.vertices())),
        placed([this, &dataset, &partition] {
          return c10::make_intrusive<GraphHandle>(
              world, dataset.graph, dataset.symmetric, partition,
              ExchangeOptions{.route = config.route,
                              .shards = shards_of(config),
                              .max_width = model.moved_width(input.is_sparse()),
                              .tuning = {.pass_shares = equal_shares(config.passes)}});
        }),
        require_fits([this, &dataset, &partition] {
          require_training_fits(world, dataset, partition, config);
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
          config.route.gpu ? sampled_bytes_ahead(dataset, partition, config, w.rank()) : 0;
      batches =
          std::make_unique<SampledBatches>(w, dataset, config, split_of(dataset, c).span(), ahead);
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
      training = resume_checkpoint(read_checkpoint(w, c.resume), c.resume, training, model, best,
                                   optimizer);
    epoch_at.fill_(static_cast<std::int64_t>(training.history.size()));
  }

  c10::intrusive_ptr<GraphHandle> first_placed() {
    AddTime time(setting_up);
    return placed();
  }

  // Tells whether work is recorded. While a thread prepares batches it is not: that thread may wait
  // for the whole GPU, which no recording survives.
  bool records() const { return !config.sampled; }

  // Returns the number of steps that do more than later ones: the first, or all until a step is
  // recorded (recorded.h).
  int warm_up() const { return graph->recordable() ? 3 : 1; }

  // Collective. Places the graph in another way, as Trials::Place. The memory of the graph before
  // is given back first, so that a run needs no more memory than the larger of both.
  Trials::Placed place_anew(const TrialWay& way, bool fits) {
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

  // Replaces this rank's gradients of the mean loss by their sums over ranks.
  void sum_gradients(const std::vector<torch::Tensor>& mine) {
    const Phase phase("summing gradients", "sum gradients");
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& gradient : mine) flat.push_back(gradient.flatten());
    torch::cat_out(gradients, flat);
    AddTime time(cost.gradients);
    if (world.size() > 1) graph->all_reduce_sum(gradients);
  }

  torch::Tensor scores(const DropoutStep& drop_step, bool trains) const {
    return model.forward(input, graph, drop_step, trains, set ? &*set : nullptr);
  }

  // Takes a step along the gradient of the loss of all ranks. `loss`: the sum over this rank's
  // examples; `share`: the factor of one.
  void descend(const torch::Tensor& loss, const torch::Tensor& share) {
    sum_gradients(
        timed("backward", [&] { return torch::autograd::grad({loss}, parameters, {share}); }));
    timed("optimiser", [&] { optimizer.step(); });
  }

  // Returns all that a step changes.
  std::vector<torch::Tensor> changing() const {
    std::vector<torch::Tensor> all = kept;
    for (const auto* moments : {&optimizer.exp_avg(), &optimizer.exp_avg_sq()})
      all.insert(all.end(), moments->begin(), moments->end());
    return all;
  }

  // Collective. Tells whether any rank was asked to stop.
  bool any_stops() {
    double wants = asked_to_stop != nullptr && asked_to_stop->load() ? 1 : 0;
    world.all_reduce_sum(std::span(&wants, 1));
    return wants > 0;
  }

  // Takes a step on the sample of each batch of an epoch. Returns this rank's part of the losses of
  // all examples, each from before its step; nothing if a rank was asked to stop before the last
  // step: then all is as before the epoch.
  std::optional<double> sampled_steps(int epoch) {
    AddTime time(step_seconds);
    before_epoch.clear();
    for (const torch::Tensor& tensor : changing()) before_epoch.push_back(tensor.clone());
    const BackwardHere here;
    torch::Tensor sum = torch::zeros({}, torch::dtype(torch::kFloat64).device(device));
    for (std::int64_t i = 0; i < batches->steps(); ++i) {
      if (any_stops()) {
        at::_foreach_copy_(changing(), before_epoch);
        return std::nullopt;
      }
      const std::int64_t step = epoch * batches->steps() + i;
      const SampledBatch batch = batches->batch(step, graph);
      const DropoutStep drop_step{&dropout, static_cast<std::uint32_t>(step)};
      const torch::Tensor scores = model.forward(batch.input, batch.graphs, drop_step, true);
      const torch::Tensor loss =
          task.losses(scores, batch.targets, batch.graphs.back()).sum(torch::kFloat64);
      descend(loss, torch::full({}, 1 / batch.examples, loss.options()));
      sum.add_(loss.detach());
      graph->about_to_wait();  // the thread that prepares batches waits for this work
      graph->check();
      for (const GraphRef& sample : batch.graphs) cost.summing += sample->cost().summing;
    }
    const auto total = sum.item<double>();  // waits for all that a GPU was given to do
    graph->check();
    return total;
  }

  // Takes one step on the whole graph. Returns this rank's part of the training loss.
  double step(int epoch) {
    AddTime time(step_seconds);
    recorder->run(Recorder::step, [&] {
      const auto* const at = reinterpret_cast<std::uint32_t*>(epoch_at.mutable_data_ptr<int>());
      const DropoutStep drop_step{&dropout, static_cast<std::uint32_t>(epoch), 0, at};
      const torch::Tensor losses =
          task.losses(scores(drop_step, true), targets.of(Split::train), graph);
      const BackwardHere here;
      const torch::Tensor loss = losses.sum();
      descend(loss, share_of_one);
      epoch_at.add_(1);
      step_loss = graph->exact() ? part_of_total(losses, graph) : loss.detach();
    });
    graph->about_to_wait();
    const auto loss = step_loss.item<double>();  // waits for all that a GPU was given to do
    graph->check();
    return loss;
  }

  // Returns the bytes of rows that were fetched and of gradients that were sent so far.
  std::uint64_t bytes_moved() const { return graph->cost().bytes_fetched + world.bytes_sent(); }

  // Does the same, and counts its cost. Returns nothing if a sampled epoch was left. This is
  // outside of the step's time, because a GPU is asked, and on both sides of the step, because
  // evaluation exchanges rows, too.
  std::optional<double> counted_step(int epoch) {
    const ExchangeCost before = graph->cost();
    const std::uint64_t sent_before = world.bytes_sent();
    const std::optional<double> loss = batches ? sampled_steps(epoch) : step(epoch);
    const ExchangeCost after = graph->cost();
    cost.summing += after.summing - before.summing;
    cost.fetching += after.fetching - before.fetching;
    cost.waiting += after.waiting - before.waiting;
    const std::uint64_t bytes =
        after.bytes_fetched - before.bytes_fetched + world.bytes_sent() - sent_before;
    if (step_bytes > 0) return loss;  // steps are alike, and a replay counts none
    step_bytes = bytes;
    step_bytes_from = after.fetched_from;
    for (std::size_t p = 0; p < before.fetched_from.size(); ++p)
      step_bytes_from[p] -= before.fetched_from[p];
    return loss;
  }

  // Returns this rank's validation loss, then its evidence for the metric.
  torch::Tensor score() const {
    const torch::NoGradGuard no_grad;
    const torch::Tensor own = scores({}, false);
    const torch::Tensor loss =
        part_of_total(task.losses(own, targets.of(Split::validation), graph), graph);
    return torch::cat({loss.view({1}), metric->evidence(own, targets)});
  }

  // Sums over ranks the given loss, the validation loss, whether to stop, and the metric's counts.
  EpochResult evaluate(int epoch, double loss, bool& stop) {
    const Timed timed("evaluate");
    AddTime time(cost.evaluating);
    recorder->run(Recorder::evaluation, [&] { found = score(); });
    graph->about_to_wait();
    const torch::Tensor here = found.to(torch::kCPU);
    graph->check();
    const std::span own(here.const_data_ptr<double>(), static_cast<std::size_t>(here.numel()));
    std::vector<double> sums{loss, own[0], stop ? 1.0 : 0.0};
    const std::vector<double> counts = metric->counts(world, own.subspan(1));
    sums.insert(sums.end(), counts.begin(), counts.end());
    world.all_reduce_sum(sums);
    stop = sums[2] > 0;
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
            .validation_loss = mean(sums[1], Split::validation),
            .train_metric = value(0),
            .validation_metric = value(1),
            .test_metric = value(2)};
  }

  // Keeps the weights if this epoch is the best so far.
  void keep_best(const EpochResult& result) {
    if (!is_as_good(result, training.history[static_cast<std::size_t>(training.best_epoch)]))
      return;
    training.best_epoch = result.epoch;
    const torch::NoGradGuard no_grad;
    at::_foreach_copy_(best, kept);
  }

  // Runs on rank 0, whose weights are those of all.
  void save() const {
    const Timed timed("checkpoint");
    require_finite_weights(kept, training.history.size() - 1);
    if (!config.checkpoint.empty() && world.rank() == 0)
      save_checkpoint(config.checkpoint, model, best, optimizer, training);
  }

  TrainResult summary(bool interrupted) {
    TrainResult result{
        .epochs = training.history, .metric = metric_kind, .best_epoch = training.best_epoch};
    result.interrupted = interrupted;
    result.way = {config.route.strategy, config.passes};
    result.epoch_ms = median_milliseconds(training.history);
    // The share is the mean over ranks; the bytes are those of the rank with the most.
    const double communicating = cost.fetching + cost.waiting + cost.gradients;
    double share = step_seconds > 0 ? communicating / step_seconds / world.size() : 0;
    world.all_reduce_sum(std::span(&share, 1));
    result.comm_share = share;
    result.bytes_per_rank = largest_of_all(world, step_bytes);
    cost.computing = std::max(0.0, step_seconds - communicating - cost.summing);
    cost.host_memory = peak_memory();
    if (config.route.gpu) cost.gpu_memory = gpu_used_memory();
    const bool known = !config.route.gpu || config.route.placement().store != HaloStore::none;
    if (known) step_bytes_from.resize(static_cast<std::size_t>(world.size()));
    result.ranks = gather_values(world, cost);
    result.bytes_between = gather_vectors(world, step_bytes_from);
    return result;
  }
};

Trainer::Trainer(World& world, const Dataset& dataset, const Partition& partition,
                 const TrainConfig& given) {
  const Timed timed("set up training");
  check_dataset(dataset, given);
  check_partition(dataset, partition);
  TrainConfig config = given;
  config.model = model_for(given.model, dataset);
  if (config.sampled) check_sampled(dataset, config);
  config.normalize = resolved(given.normalize, dataset.features);
  torch_device(config.route.gpu);  // before any backward pass, also of rehearsals
  if (config.route.gpu) at::globalContext().setAllowTF32CuBLAS(config.tf32);
  require_training_fits(world, dataset, partition, config);
  state_ = std::make_unique<State>(world, dataset, partition, config);
}

void Trainer::rehearse(const Dataset& dataset, const TrainConfig& config,
                       const std::function<void()>& placed) {
  const auto world = World::alone();
  State state(*world, dataset, partition_by_vertices(dataset.vertices(), 1), config);
  placed();
  for (const int epoch : {0, 1}) {
    bool stop = false;
    state.evaluate(epoch, state.step(epoch), stop);
  }
}

Trainer::~Trainer() = default;

double Trainer::step(int number) {
  require<UsageError>(!state_->batches, "a step of a benchmark takes the whole graph");
  return state_->step(number) / state_->targets.total(Split::train);
}

std::uint64_t Trainer::bytes_moved() const { return state_->bytes_moved(); }

TrainResult Trainer::run(const std::function<void(const EpochResult&)>& each_epoch,
                         const std::atomic<bool>& stop) {
  State& s = *state_;
  const auto first = static_cast<int>(s.training.history.size());
  s.asked_to_stop = &stop;
  bool stopped = false;
  Trials trials(s.world, s.config.trials, {s.warm_up(), s.setting_up});
  for (int epoch = first; epoch < s.config.epochs && !stopped &&
                          !out_of_patience(s.training.history, s.config.patience);
       ++epoch) {
    const Phase phase(fmt::format("epoch {}", epoch), "epoch");
    trials.before_epoch([&](const TrialWay& way, bool fits) { return s.place_anew(way, fits); });
    const double before = s.step_seconds;
    const std::optional<double> loss = s.counted_step(epoch);
    if (!loss) {
      require<Interrupted>(epoch > 0, "interrupted in the first epoch");
      stopped = true;
      break;
    }
    stopped = stop.load();
    EpochResult result = s.evaluate(epoch, *loss, stopped);
    require_finite(result, s.training.steps > 1);
    trials.after_epoch(s.step_seconds - before, s.config.epochs - epoch - 1);
    result.milliseconds = (s.step_seconds - before) * 1e3;
    s.training.history.push_back(result);
    s.keep_best(result);
    each_epoch(result);
    if (s.config.checkpoint_every > 0 && (epoch + 1) % s.config.checkpoint_every == 0) s.save();
  }
  s.save();
  TrainResult result = s.summary(stopped);
  const Optimiser& optimiser = trials.optimiser();
  if (optimiser.trials().size() > 1) {
    result.trials = optimiser.trials();
    result.trials_ended =
        optimiser.finished() && result.trials[optimiser.wanted()].way == result.way;
  }
  return result;
}

}  // namespace plait

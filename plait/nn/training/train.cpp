#include "plait/nn/training/train.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cstdio>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/base/setting.h"
#include "plait/nn/training/epochs.h"
#include "plait/nn/training/trainable.h"
#include "plait/nn/training/training_run.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"

namespace plait {

TrainResult TrainingRun::summary(bool interrupted) {
  TrainResult result{
      .epochs = training.history, .metric = metric_kind, .best_epoch = training.best_epoch};
  result.interrupted = interrupted;
  if (config.sampled) result.structure = config.sampled->structure;
  result.replayed_steps = steps->replayed();
  result.steps = training.under_way.steps;
  result.steps_per_epoch = training.steps;
  result.way = {config.route.strategy, config.passes};
  result.epoch_ms = median_milliseconds(training.history);
  // The share is the mean over ranks; the bytes are those of the rank with the most.
  RankCost& cost = costs.cost;
  const double communicating = cost.fetching + cost.waiting + cost.gradients;
  double share = costs.seconds > 0 ? communicating / costs.seconds / world.size() : 0;
  world.all_reduce_sum(std::span(&share, 1));
  result.comm_share = share;
  result.bytes_per_rank = largest_of_all(world, costs.bytes);
  cost.computing = std::max(0.0, costs.seconds - communicating - cost.summing);
  cost.host_memory = peak_memory();
  if (config.route.gpu) cost.gpu_memory = gpu_used_memory();
  const bool known = !config.route.gpu || config.route.placement().store != HaloStore::none;
  // Where hosts have replicas, steps are on samples: the graph's strategy, whose ranks are those of
  // one host, brings no rows for them.
  const auto ranks = static_cast<std::size_t>(world.size());
  if (&placing != &world)
    costs.bytes_from.assign(ranks, 0);
  else if (known)
    costs.bytes_from.resize(ranks);
  result.ranks = gather_values(world, cost);
  result.bytes_between = gather_vectors(world, costs.bytes_from);
  return result;
}

namespace {

bool training_fits(World& world, const Dataset& dataset, const Partition& partition,
                   const TrainConfig& config) {
  try {
    require_training_fits(world, dataset, partition, config);
    return true;
  } catch (const DoesNotFitError&) {
    return false;
  }
}

// Returns the ways in which a run on samples may fit, the fastest first: steps that read structure
// over the link take longer than steps that are not recorded.
std::vector<TrainConfig> ways_of(const TrainConfig& config, bool records, int ranks) {
  std::vector<StructurePlace> structures{config.sampled->structure};
  if (config.route.gpu && structures[0] == StructurePlace::automatic) {
    structures = {StructurePlace::replicated};
    if (ranks > 1) structures.push_back(StructurePlace::sharded);
  }
  std::vector<TrainConfig> ways;
  for (const StructurePlace structure : structures) {
    TrainConfig way = config;
    way.sampled->structure = structure;
    if (records) ways.push_back(way);
    way.record = false;
    ways.push_back(way);
  }
  return ways;
}

// Collective among graph_ranks(). Refuses a run that does not fit. A run on samples takes the first
// way that does, with a warning if its steps are not recorded for want of memory.
void require_fits(World& world, const Dataset& dataset, const Partition& partition,
                  TrainConfig& config) {
  if (!config.sampled) return require_training_fits(world, dataset, partition, config);
  const bool records = records_samples(config, dataset.features.is_sparse(), world.size());
  const std::vector<TrainConfig> ways = ways_of(config, records, world.size());
  std::size_t way = 0;
  while (way + 1 < ways.size() && !training_fits(world, dataset, partition, ways[way])) ++way;
  config = ways[way];
  if (way + 1 == ways.size()) require_training_fits(world, dataset, partition, config);
  if (!records || *config.record || world.rank() != 0) return;
  // Training goes on if stderr is a terminal that has been closed.
  std::fputs(
      "plait: warning: the GPUs lack memory for a recorded step; steps are not recorded, and "
      "take longer\n",
      stderr);
}

}  // namespace

std::string reason_against_hosts() {
  return fmt::format(
      "ranks are on several hosts, but {} shares rows among GPUs of one; leave it out",
      setting("cooperative"));
}

World& graph_ranks(World& world, const TrainConfig& config) {
  if (!config.sampled || !config.route.gpu || world.one_host()) return world;
  require<UsageError>(!config.sampled->cooperative, "{}", reason_against_hosts());
  return world.host_world();
}

Trainer::Trainer(World& world, const Dataset& dataset, const Partition& partition,
                 const TrainConfig& given) {
  const Timed timed("set up training");
  check_dataset(dataset, given);
  check_partition(dataset, partition);
  TrainConfig config = given;
  config.model = model_for(given.model, dataset);
  if (config.sampled) check_sampled(dataset, config);
  World& placing = graph_ranks(world, config);
  if (!config.record) config.record = !config.sampled || placing.size() > 1;
  config.normalize = resolved(given.normalize, dataset.features);
  torch_device(config.route.gpu);  // before any backward pass, also of rehearsals
  set_precision(config.precision);
  if (config.route.gpu) at::globalContext().setAllowTF32CuBLAS(config.precision == Precision::tf32);
  on_all_hosts(world, placing, [&] { require_fits(placing, dataset, partition, config); });
  run_ = std::make_unique<TrainingRun>(world, dataset, partition, config);
}

void Trainer::rehearse(const Dataset& dataset, const TrainConfig& config,
                       const std::function<void()>& placed) {
  const auto world = World::alone();
  TrainingRun run(*world, dataset, partition_by_vertices(dataset.vertices(), 1), config);
  placed();
  const std::atomic<bool> goes_on{false};
  for (const int epoch : {0, 1}) {
    bool stop = false;
    run.evaluate(epoch, *run.steps->take(epoch, goes_on), stop);
  }
}

Trainer::~Trainer() = default;

double Trainer::step(int number) {
  require<UsageError>(!run_->config.sampled, "a step of a benchmark takes the whole graph");
  const std::atomic<bool> goes_on{false};
  return *run_->steps->take(number, goes_on) / run_->targets.total(Split::train);
}

std::uint64_t Trainer::bytes_moved() const {
  return run_->graph->cost().bytes_fetched + run_->world.bytes_sent();
}

TrainResult Trainer::run(const std::function<void(const EpochResult&)>& each_epoch,
                         const std::atomic<bool>& stop) {
  TrainingRun& s = *run_;
  const auto first = static_cast<int>(s.training.history.size());
  bool stopped = false;
  Trials trials(s.world, s.config.trials, {s.warm_up(), s.setting_up});
  for (int epoch = first; epoch < s.config.epochs && !stopped &&
                          !out_of_patience(s.training.history, s.config.patience);
       ++epoch) {
    const Phase phase(fmt::format("epoch {}", epoch), "epoch");
    trials.before_epoch([&](const TrialWay& way, bool fits) { return s.place_anew(way, fits); });
    const double before = s.costs.seconds, earlier = s.training.under_way.milliseconds;
    const std::optional<double> loss = s.counted_steps(epoch, stop);
    stopped = !loss || stop.load();
    if (!loss) break;
    EpochResult result = s.evaluate(epoch, *loss, stopped);
    require_finite(result, s.training.steps > 1);
    trials.after_epoch(s.costs.seconds - before, s.config.epochs - epoch - 1);
    result.milliseconds = earlier + (s.costs.seconds - before) * 1e3;
    s.training.history.push_back(result);
    s.keep_best(result);
    each_epoch(result);
    if (s.config.checkpoint_every > 0 && (epoch + 1) % s.config.checkpoint_every == 0) s.save();
  }
  s.save();
  require<Interrupted>(
      !s.training.history.empty(), "{}",
      interruption(0, s.training.under_way.steps, s.training.steps, s.config.checkpoint));
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

#include "plait/measure/model_bench.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/setting.h"
#include "plait/base/timer.h"
#include "plait/nn/inference/placed_model.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/recorded.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trainable.h"
#include "plait/world/gather.h"

namespace plait {
namespace {

constexpr double kNotFinite = 1e30;

// Takes the steps that come before all that are timed. Returns the bytes that the second one has
// moved, because the first one agrees on what later ones know, and a replay counts none.
template <class Step, class Moved>
std::uint64_t warm_up(World& world, Step step, Moved moved) {
  std::uint64_t bytes = 0;
  for (int number = 0; number < ModelBench::kWarmUp; ++number) {
    const std::uint64_t before = moved();
    step(number);
    if (number == 1) bytes = moved() - before;
  }
  return largest_of_all(world, bytes);
}

double loss_difference(const std::vector<double>& losses, const std::vector<double>& expected) {
  double greatest = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double scale = std::max(std::abs(expected[i]), 1e-30);
    const double off = std::abs(losses[i] - expected[i]) / scale;
    greatest = std::max(greatest, std::isfinite(off) ? off : kNotFinite);
  }
  return greatest;
}

}  // namespace

double score_difference(const torch::Tensor& scores, const torch::Tensor& expected) {
  if (scores.numel() == 0) return 0;
  constexpr std::int64_t kBlockFloats = std::int64_t{1} << 18;
  const std::int64_t rows = scores.size(0);
  const std::int64_t most = std::max<std::int64_t>(1, kBlockFloats / scores.size(1));
  const torch::Tensor greatest = torch::empty({rows}), off = torch::empty({rows});
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    const std::int64_t count = std::min(most, rows - begin);
    const torch::Tensor found = scores.narrow(0, begin, count).to(torch::kCPU),
                        wanted = expected.narrow(0, begin, count).to(torch::kCPU);
    if (!found.isfinite().all().item<bool>()) return kNotFinite;
    greatest.narrow(0, begin, count).copy_(wanted.abs().amax(1));
    off.narrow(0, begin, count).copy_((found - wanted).abs().amax(1));
  }
  const torch::Tensor scale = torch::maximum(greatest, greatest.median()).clamp_min(1e-30);
  return (off / scale).max().item<double>();
}

namespace {

// Returns the memory of each route's inference, and with training of that after it.
std::vector<NamedRun> bench_memory(const Dataset& dataset, const Partition& partition,
                                   TrainConfig config, std::span<const Route> routes,
                                   bool training) {
  config.model = model_for(config.model, dataset);
  std::vector<NamedRun> runs;
  for (const Route& route : routes) {
    torch_device(route.gpu);  // before the backward passes that plan training
    config.route = route;
    runs.push_back(scoring_memory(dataset, partition, config.model, route));
    if (training) runs.push_back(training_memory(dataset, partition, config));
  }
  return runs;
}

// Returns the first refusal of each route.
std::vector<std::string> by_route(const std::vector<std::string>& refusals, bool training) {
  std::vector<std::string> first;
  for (std::size_t i = 0; i < refusals.size(); i += training ? 2 : 1)
    first.push_back(training && refusals[i].empty() ? refusals[i + 1] : refusals[i]);
  return first;
}

}  // namespace

std::vector<std::string> bench_refusals(World& world, const GraphCounts& counts,
                                        const TrainConfig& config, std::span<const Route> routes,
                                        bool training) {
  const Partition even = partition_by_vertices(counts.vertices, world.size());
  const std::vector<NamedRun> runs =
      bench_memory(stand_in(counts.width, counts.classes), even, config, routes, training);
  return by_route(refusals_by_counts(world, counts, runs), training);
}

ModelBench::ModelBench(World& world, Dataset dataset, const Partition& partition,
                       TrainConfig config, const MadeData& made)
    : world_(world),
      dataset_(with_made_data(world, std::move(dataset), made)),
      partition_(partition),
      config_(std::move(config)) {
  check_dataset(dataset_, config_);
  check_partition(dataset_, partition);
  config_.model = model_for(config_.model, dataset_);
  config_.made_rows = made_rows(dataset_, made.width);
  config_.normalize = resolved(config_.normalize, dataset_.features);
}

std::vector<std::uint64_t> ModelBench::score_bytes() const {
  std::vector<std::uint64_t> bytes;
  for (int rank = 0; rank < partition_.parts(); ++rank) {
    const std::uint64_t rows =
        dataset_.is_set_of_graphs() ? dataset_.examples() : partition_.size(rank);
    bytes.push_back(rows * static_cast<std::uint64_t>(dataset_.classes) * sizeof(float));
  }
  return bytes;
}

std::vector<std::string> ModelBench::plan(std::span<const Route> routes, bool training) {
  keeps_scores_ = routes.size() > 1;
  std::vector<NamedRun> runs = bench_memory(dataset_, partition_, config_, routes, training);
  if (keeps_scores_)
    for (NamedRun& named : runs) named.run.beside = score_bytes();
  return by_route(refusals_of(world_, dataset_.graph, dataset_.symmetric, partition_, runs),
                  training);
}

namespace {

// `what` was computed by this route; throws the same on all ranks, which know the same difference.
void require_agreement(double difference, bool first, const Route& route, const char* what) {
  require(!first || difference < kNotFinite, "{} are not finite; try fewer layers, or {}", what,
          setting("norm"));
  require<MismatchError>(difference < ModelBench::kTolerance,
                         "{} by strategy {} differ from the first strategy's by {:.3g} relative",
                         what, to_string(route.strategy), difference);
}

}  // namespace

ModelTimes ModelBench::time_inference(const Route& route, const BenchEffort& effort) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = torch_device(route.gpu);
  ModelTimes result;
  const Stopwatch watch;
  const NamedRun memory = scoring_memory(dataset_, partition_, config_.model, route);
  require_run_fits(world_, dataset_.graph, dataset_.symmetric, partition_, memory.run, memory.what);
  const OwnStream stream(device);
  const PlacedModel placed(world_, dataset_, partition_, route,
                           {Model(config_.model, device), config_.normalize}, config_.made_rows);
  result.setup_s = largest_of_all(world_, watch.seconds());
  parameters_ = 0;
  for (const torch::Tensor& p : placed.model().parameters()) parameters_ += p.numel();

  GraphHandle& graph = placed.graph();
  Recorder recorder(graph, graph.recordable());
  torch::Tensor scores;
  const auto run = [&](int steps) {
    for (int k = 0; k < steps; ++k)
      recorder.run(Recorder::evaluation, [&] {
        scores.reset();  // before others take memory
        scores = placed.scores();
      });
    graph.about_to_wait();
    if (route.gpu) wait_for_gpu();
    graph.check();
  };
  result.bytes = warm_up(
      world_, [&](int) { run(1); },
      [&] { return graph.cost().bytes_fetched + world_.bytes_sent(); });
  const bool first = !scores_.defined();
  result.difference = largest_of_all(world_, score_difference(scores, first ? scores : scores_));
  require_agreement(result.difference, first, route, "scores");
  if (first && keeps_scores_) scores_ = scores.to(torch::kCPU);
  result.times = time_steps(world_, effort, run);
  return result;
}

ModelTimes ModelBench::time_training(const Route& route, const BenchEffort& effort) {
  ModelTimes result;
  TrainConfig config = config_;
  config.route = route;
  const Stopwatch watch;
  Trainer trainer(world_, dataset_, partition_, config);
  result.setup_s = largest_of_all(world_, watch.seconds());

  int number = 0;
  std::vector<double> losses;
  result.bytes = warm_up(
      world_, [&](int) { losses.push_back(trainer.step(number++)); },
      [&] { return trainer.bytes_moved(); });
  world_.all_reduce_sum(losses);
  const bool first = losses_.empty();
  if (first) losses_ = losses;
  result.difference = loss_difference(losses, losses_);
  require_agreement(result.difference, first, route, "losses");
  result.times = time_steps(world_, effort, [&](int steps) {
    for (int k = 0; k < steps; ++k) trainer.step(number++);
  });
  return result;
}

}  // namespace plait

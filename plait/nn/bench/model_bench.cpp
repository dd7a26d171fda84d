#include "plait/nn/bench/model_bench.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
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
  if (!scores.isfinite().all().item<bool>()) return kNotFinite;
  const torch::Tensor greatest = expected.abs().amax(1);
  const torch::Tensor scale = torch::maximum(greatest, greatest.median()).clamp_min(1e-30);
  return ((scores - expected).abs().amax(1) / scale).max().item<double>();
}

ModelBench::ModelBench(World& world, const Dataset& dataset, const Partition& partition,
                       TrainConfig config)
    : world_(world), dataset_(dataset), partition_(partition), config_(std::move(config)) {
  check_dataset(dataset, config_);
  check_partition(dataset, partition);
  config_.model = model_for(config_.model, dataset);
  config_.normalize = resolved(config_.normalize, dataset.features);
}

namespace {

// `what` was computed by this route; throws the same on all ranks, which know the same difference.
void require_agreement(double difference, bool first, const Route& route, const char* what) {
  require(!first || difference < kNotFinite, "{} are not finite; try fewer layers, or --norm",
          what);
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
  require_inference_fits(world_, dataset_, partition_, config_.model, {.route = route});
  const OwnStream stream(device);
  const PlacedModel placed(world_, dataset_, partition_, route,
                           {Model(config_.model, device), config_.normalize});
  result.setup_s = largest_of_all(world_, watch.seconds());
  parameters_ = 0;
  for (const torch::Tensor& p : placed.model().parameters()) parameters_ += p.numel();

  GraphHandle& graph = placed.graph();
  Recorder recorder(graph, graph.recordable());
  torch::Tensor scores;
  const auto run = [&](int steps) {
    for (int k = 0; k < steps; ++k)
      recorder.run(Recorder::evaluation, [&] { scores = placed.scores(); });
    graph.about_to_wait();
    if (route.gpu) wait_for_gpu();
    graph.check();
  };
  result.bytes = warm_up(
      world_, [&](int) { run(1); },
      [&] { return graph.cost().bytes_fetched + world_.bytes_sent(); });
  const torch::Tensor found = scores.to(torch::kCPU);
  const bool first = !scores_.defined();
  if (first) scores_ = found.clone();
  result.difference = largest_of_all(world_, score_difference(found, scores_));
  require_agreement(result.difference, first, route, "scores");
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

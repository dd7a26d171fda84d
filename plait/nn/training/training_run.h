// A training run on one rank: the inside of Trainer (train.h). It has all that epochs share: what
// learns, the placed graph, costs and evaluations. Its steps (epoch_steps.h) have their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/tasks/metric.h"
#include "plait/nn/tasks/targets.h"
#include "plait/nn/tasks/task.h"
#include "plait/nn/training/adam.h"
#include "plait/nn/training/checkpoint.h"
#include "plait/nn/training/epoch_steps.h"
#include "plait/nn/training/recorded.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trials.h"

namespace plait {

// A model, and all that it learns by: the same bits on every rank.
struct Learner {
  Model model;
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> kept, best;  // parameters and buffers, now and of the best epoch
  torch::Tensor gradients;                // one array; the parameters' gradients are views of it
  Adam optimizer;

  Learner(const TrainConfig& config, const torch::Device& device);

  // Puts this rank's gradients of `loss`, a sum over its examples, into `gradients`. `share`: the
  // factor of the loss of one example.
  void differentiate(const torch::Tensor& loss, const torch::Tensor& share);
  // Keeps the weights as those of the best epoch.
  void keep_best();
};

// Places a graph in the way that a configuration says, at first and in trials of other ways.
struct GraphPlacer {
  std::function<c10::intrusive_ptr<GraphHandle>()> place;
  std::function<void()> require_fits;
};

// The costs of steps on this rank.
struct StepCosts {
  RankCost cost;
  double seconds = 0;
  std::uint64_t bytes = 0;                // of one epoch
  std::vector<std::uint64_t> bytes_from;  // of these, bytes of rows, by their owner
};

struct TrainingRun {
  World& world;
  World& placing;  // the ranks that share out the graph (graph_ranks())
  TrainConfig config;
  const torch::Device device;
  OwnStream stream;
  Learner learner;
  const Task& task;
  const MetricKind metric_kind;
  std::unique_ptr<Metric> metric;
  InputFeatures input;
  std::optional<GraphSet> set;  // if graphs are labelled
  Targets targets;
  GraphPlacer placer;     // by `config`
  double setting_up = 0;  // seconds that placing the graph took first
  c10::intrusive_ptr<GraphHandle> graph;
  std::optional<Recorder> recorder;  // of work on the whole graph; anew for each placed graph
  torch::Tensor found;               // loss and evidence of the recorded evaluation
  Dropout dropout;
  TrainingState training;
  StepCosts costs;
  std::unique_ptr<EpochSteps> steps;

  TrainingRun(World& w, const Dataset& dataset, const Partition& partition, const TrainConfig& c);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Tells whether steps and evaluations on the whole graph are recorded. While a thread prepares
  // batches they are not: that thread may wait for the whole GPU, which no recording survives.
  bool records() const {
    return config.record.value_or(true) && !config.sampled && graph->recordable();
  }
  // Returns the number of steps that do more than later ones: the first, or all until a step is
  // recorded (recorded.h).
  int warm_up() const { return records() ? 3 : 1; }
  // Collective. Places the graph in another way, as Trials::Place. The memory of the graph before
  // is given back first, so that a run needs no more memory than the larger of both.
  Trials::Placed place_anew(const TrialWay& way, bool fits);

  // Returns the scores of own examples on the whole graph.
  torch::Tensor scores(const DropoutStep& drop_step, bool trains) const;
  // Replaces the gradients by their sums over ranks, and takes the optimiser's step.
  void descend();
  // Takes the steps of an epoch, as EpochSteps::take(), and counts their cost. Counting is outside
  // of the steps' time, because a GPU is asked, and on both sides of the steps, because evaluation
  // exchanges rows, too.
  std::optional<double> counted_steps(int epoch, const std::atomic<bool>& stop);

  // Sums over ranks the given loss, whether to stop, the validation loss, and the metric's counts.
  EpochResult evaluate(int epoch, double loss, bool& stop);
  // Keeps the weights if this epoch is the best so far.
  void keep_best(const EpochResult& result);
  // Collective. Notes the epoch on samples that is under way, as EpochUnderWay. `loss`: of this
  // rank.
  void note_under_way(std::int64_t taken, double milliseconds, double loss);
  // Writes the checkpoint, if there is to be one, on rank 0, whose weights are those of all.
  void save();
  TrainResult summary(bool interrupted);

 private:
  // Returns this rank's validation loss, then its evidence for the metric.
  torch::Tensor score() const;
  // Collective. Sums the first kOfAllRanks of these numbers over all ranks, and the other numbers
  // over the ranks that share out the graph.
  static constexpr std::size_t kOfAllRanks = 2;
  void sum_over_all(std::vector<double>& sums);
};

}  // namespace plait

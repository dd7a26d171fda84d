// The state of a training run on one rank, and the steps that it takes: the inside of Trainer
// (train.h).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/adam.h"
#include "plait/nn/training/checkpoint.h"
#include "plait/nn/training/metric.h"
#include "plait/nn/training/recorded.h"
#include "plait/nn/training/sample_room.h"
#include "plait/nn/training/sampled_batches.h"
#include "plait/nn/training/task.h"
#include "plait/nn/training/train.h"
#include "plait/nn/training/trials.h"

namespace plait {

struct Trainer::State {
  World& world;
  World& placing;  // the ranks that share out the graph (graph_ranks())
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
  torch::Tensor gradients;                // one array; the parameters' gradients are views of it
  torch::Tensor share_of_one;             // factor of the loss of one training example
  torch::Tensor epoch_at;  // one int32: the epoch under way, which a recorded step reads
  Adam optimizer;
  TrainingState training;
  std::unique_ptr<SampledBatches> batches;           // if a step takes a sample
  const std::atomic<bool>* asked_to_stop = nullptr;  // of run()
  std::optional<Recorder> recorder;
  torch::Tensor step_loss, found;  // loss and evidence of the recorded work
  // record_samples() makes the room that batches move into, and the recording of the step on it.
  std::optional<SampleRoom> room;
  std::optional<Recorder> room_recorder;
  std::int64_t replayed_steps = 0;
  RankCost cost;  // of this rank
  std::uint64_t step_bytes = 0;
  std::vector<std::uint64_t> step_bytes_from;  // of these, bytes of rows, by their owner
  double step_seconds = 0;

  State(World& w, const Dataset& dataset, const Partition& partition, const TrainConfig& c);

  c10::intrusive_ptr<GraphHandle> first_placed();
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
  // Puts this rank's gradients of the mean loss, one tensor per parameter, into `gradients`.
  void put_gradients(const std::vector<torch::Tensor>& mine);
  // Replaces `gradients` by their sums over ranks, and takes the optimiser's step.
  void descend();
  torch::Tensor scores(const DropoutStep& drop_step, bool trains) const;
  // Puts the gradients of the mean loss. `loss`: the sum over this rank's examples; `share`: the
  // factor of one.
  void differentiate(const torch::Tensor& loss, const torch::Tensor& share);
  // Collective. Tells whether any rank was asked to stop.
  bool any_stops();
  // Takes a step on the sample of each batch of an epoch that has not been taken. Returns this
  // rank's part of the losses of all examples, each from before its step; nothing if a rank was
  // asked to stop before the last step: then `training` tells of the epoch under way.
  std::optional<double> sampled_steps(int epoch);
  // Takes step `number` of the run's and adds the losses of this rank's examples to `sum`.
  void sampled_step(std::int64_t number, torch::Tensor& sum);
  // Compute `gradients` of this rank on a batch, and return the loss, the sum over its examples.
  torch::Tensor compute(const SampledBatch& batch);
  torch::Tensor replay(const SampledBatch& batch);  // that fits into the room
  // Computes them on the batch in the room, with the loss in `step_loss`.
  void compute_in_room();
  // Collective. Records the step on a room for batches, if there may be one. Done before the first
  // batch is taken, while no thread prepares any.
  void record_samples();
  // Takes one step on the whole graph. Returns this rank's part of the training loss.
  double step(int epoch);
  // Returns the bytes of rows that were fetched and of gradients that were sent so far.
  std::uint64_t bytes_moved() const { return graph->cost().bytes_fetched + world.bytes_sent(); }
  // Does the same, and counts its cost. Returns nothing if a sampled epoch was left. This is
  // outside of the step's time, because a GPU is asked, and on both sides of the step, because
  // evaluation exchanges rows, too.
  std::optional<double> counted_step(int epoch);
  // Returns this rank's validation loss, then its evidence for the metric.
  torch::Tensor score() const;
  // Sums over ranks the given loss, whether to stop, the validation loss, and the metric's counts.
  EpochResult evaluate(int epoch, double loss, bool& stop);
  // Collective. Sums the first kOfAllRanks of these numbers over all ranks, and the other numbers
  // over the ranks that share out the graph.
  static constexpr std::size_t kOfAllRanks = 2;
  void sum_over_all(std::vector<double>& sums);
  // Keeps the weights if this epoch is the best so far.
  void keep_best(const EpochResult& result);
  // Collective. Notes the epoch on samples that is under way, as EpochUnderWay. `loss`: of this
  // rank.
  void note_under_way(std::int64_t steps, double milliseconds, double loss);
  // Writes the checkpoint, if there is to be one, on rank 0, whose weights are those of all.
  void save();
  TrainResult summary(bool interrupted);
};

}  // namespace plait

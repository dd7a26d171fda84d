// Training across ranks, on the whole graph or on samples of it.
//
// Every rank holds all weights and the rows of its own vertices. An epoch is one step on the whole
// graph, or as many steps on samples (sampled_batches.h) as take each example once: forward and
// backward exchange rows, gradients of the weights are summed over ranks, and every rank takes the
// same step of Adam (Kingma and Ba, 2015), so weights stay the same bits everywhere. The loss is
// the mean over the training examples of all ranks; the task (task.h) says what an example is, and
// gives its loss and the metric.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plait/base/array.h"
#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

struct TrainingRun;  // training_run.h

struct EpochResult {
  int epoch = 0;  // from 0
  double loss = 0;
  double validation_loss = 0;
  double train_metric = 0, validation_metric = 0, test_metric = 0;
  double milliseconds = 0;  // of the training step: evaluation is not in it
};

// The cost of a run on one rank: seconds and bytes.
struct RankCost {
  // In training steps: summing over neighbours, bringing rows of other ranks, waiting for ranks,
  // summing gradients over them, and all else. On GPUs, summing and bringing run at the same time
  // as the rest and are counted with it.
  double summing = 0, fetching = 0, waiting = 0, gradients = 0, computing = 0;
  double evaluating = 0;          // accuracies and the validation loss
  std::uint64_t host_memory = 0;  // the most that the process has had
  std::uint64_t gpu_memory = 0;   // in use on its GPU when training ended; 0: on the CPU
};

struct TrainResult {
  std::vector<EpochResult> epochs;
  MetricKind metric = MetricKind::accuracy;
  int best_epoch = 0;     // the one whose weights are kept: the highest validation metric, of
                          // those the lowest validation loss; the last without such examples
  double epoch_ms = 0;    // median
  double comm_share = 0;  // of the time of training steps: waiting, fetching, summing gradients
  std::uint64_t bytes_per_rank = 0;  // received per epoch, the most of any rank
  std::vector<RankCost> ranks;
  // [reader][owner]: bytes of rows that a training step brings; empty where it is not known of each
  // owner (strategy `get` on GPUs).
  std::vector<std::vector<std::uint64_t>> bytes_between;
  bool interrupted = false;
  // Steps of an epoch on samples that were taken when it was interrupted, of so many.
  std::int64_t steps = 0, steps_per_epoch = 1;
  StructurePlace structure = StructurePlace::automatic;  // that was chosen, if GPUs sample
  std::int64_t replayed_steps =
      0;                      // steps on samples that rank 0 did not enqueue anew, in this run
  TrialWay way;               // the way of the last epochs
  std::vector<Trial> trials;  // the trials of ways, if there were some
  bool trials_ended = false;  // and the best way stayed

  const EpochResult& best() const { return epochs[static_cast<std::size_t>(best_epoch)]; }
};

// Returns why cooperative batches are refused on GPUs of several hosts.
std::string reason_against_hosts();

// Collective when it is first called. Returns the ranks that share out the graph and the features:
// all, or where GPUs of several hosts sample, the ranks of this host. Each host then has a whole
// replica (WholeGraph, section 3), so that rows cross no network: only gradients do. Throws
// UsageError for cooperative batches of GPUs on several hosts.
World& graph_ranks(World& world, const TrainConfig& config);

class Trainer {
 public:
  // Collective. Cuts the graph and places the rows. The partition is among graph_ranks(). With
  // trials (TrainConfig::trials), the dataset and the partition outlive the trainer. Throws
  // UsageError if the dataset lacks features, labels or the split (a set of graphs without one gets
  // ten folds) or the metric does not suit them, DoesNotFitError before anything large is
  // allocated.
  Trainer(World& world, const Dataset& dataset, const Partition& partition,
          const TrainConfig& config);
  ~Trainer();

  // Takes the first steps and evaluations of a training, on this process alone and on the CPU,
  // whatever memory there is; `placed` is called before the first. Their memory tells the memory of
  // larger runs (work_memory.h).
  static void rehearse(const Dataset& dataset, const TrainConfig& config,
                       const std::function<void()>& placed);

  // Collective. `each_epoch` is called on every rank. Setting `stop` on any rank ends the training
  // on all after the epoch in flight; with samples after the step in flight, from which the
  // checkpoint goes on. Throws Interrupted if that is in the first epoch, when there is no result.
  TrainResult run(const std::function<void(const EpochResult&)>& each_epoch,
                  const std::atomic<bool>& stop);

  // Collective, for benchmarks. Takes step `number`, from 0, without an evaluation or a record of
  // the epoch. Returns this rank's part of the training loss before the step: the sum of all parts
  // is the mean over the training examples.
  double step(int number);
  // Returns the bytes, of rows and of gradients, that this rank has received and sent so far: all
  // that TrainResult::bytes_per_rank counts. Steps that a GPU replays add none.
  std::uint64_t bytes_moved() const;

 private:
  std::unique_ptr<TrainingRun> run_;
};

// Class scores: rows x classes, row major. Rows are vertices by their numbers before renumbering,
// or graphs.
struct Scores {
  TaskKind task = TaskKind::single_label;
  std::uint64_t rows = 0;
  std::uint64_t classes = 0;
  Array<float> values;

  // Predictions, rows x columns: the class with the highest score of each row; or, for several
  // labels per vertex, 1 for each score above 0, else 0.
  std::uint64_t columns() const { return task == TaskKind::multi_label ? classes : 1; }
  std::vector<std::int64_t> predicted() const;
};

// The agreement of scores with a dataset's labels, by the task's first metric.
struct LabelsMet {
  MetricKind metric;
  double value;
};

// Measures this agreement over blocks of rows.
class LabelCounts {
 public:
  // `dataset` outlives this.
  LabelCounts(TaskKind task, const Dataset& dataset);

  // Adds the predictions (Scores::predicted) for the rows from `begin` on.
  void add(std::uint64_t begin, const std::vector<std::int64_t>& predicted);
  // Returns the agreement; nothing without labels.
  std::optional<LabelsMet> met() const;

 private:
  // Returns the example of a row of scores.
  std::uint64_t example(std::uint64_t row) const {
    return vertices_.empty() ? row : vertices_[row];
  }

  const TaskKind task_;
  const Dataset& dataset_;
  const Buffer<std::uint64_t> vertices_;  // of a renumbered graph, by number; else empty
  double hits_ = 0, said_ = 0, labelled_ = 0;
};

// Collective. Returns on rank 0 the scores of every vertex, or of every graph of a set, by the
// weights of a checkpoint; empty elsewhere. Throws InputError if the checkpoint is of another
// model, task or shape.
Scores infer(World& world, const Dataset& dataset, const Partition& partition,
             const InferConfig& config);

}  // namespace plait

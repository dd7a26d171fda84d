// The steps of an epoch of a training run (training_run.h): one on the whole graph, or one on the
// sample of each batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "plait/graph/dataset.h"
#include "plait/partition/partition.h"

namespace plait {

struct TrainingRun;

class EpochSteps {
 public:
  virtual ~EpochSteps() = default;

  // Returns the number of steps of an epoch, the same on every rank.
  virtual std::int64_t count() const = 0;
  // Says which epoch comes first.
  virtual void begin_at(std::int64_t epoch) = 0;
  // Collective. Does what comes before a step and is no part of an epoch.
  virtual void prepare() = 0;
  // Collective. Takes the steps of an epoch that have not been taken. Returns this rank's part of
  // the losses of all examples, each from before its step; nothing if a rank was asked to stop
  // before the last step: then TrainingRun::training tells of the epoch under way.
  virtual std::optional<double> take(int epoch, const std::atomic<bool>& stop) = 0;
  // Lets go of all that was made with the graph, which is about to be placed anew.
  virtual void forget_graph() = 0;
  // Returns the steps that this rank has replayed and not enqueued anew, if they are counted.
  virtual std::int64_t replayed() const = 0;
};

// The run outlives its steps.
std::unique_ptr<EpochSteps> make_full_graph_steps(TrainingRun& run);
// Collective. The dataset and the partition outlive the steps. Throws as SampledBatches does.
std::unique_ptr<EpochSteps> make_sampled_steps(TrainingRun& run, const Dataset& dataset,
                                               const Partition& partition);

}  // namespace plait

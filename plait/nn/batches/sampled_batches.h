// Mini-batches of training on sampled neighbourhoods (Hamilton, Ying and Leskovec, NeurIPS 2017;
// WholeGraph).
//
// A step takes `ranks * batch` training examples, which depend on that product alone: two ranks of
// 256 take those of one rank of 512. Each rank samples for its share of them. Layers read one hop
// each, whose targets are all rows that the next layer reads, with new draws: so a layer's result
// for a vertex depends on the step and the vertex alone, and the loss of a step does not depend on
// how examples are shared. Sums over the edges of a sample are scaled so that they estimate sums
// over all edges; with all neighbours they are the same numbers.
//
// Norms over a batch are the exception: a vertex that several ranks sample counts several times. In
// a cooperative batch, which ranks sample together (sample/cooperative.h), it counts once. Ranks
// then sample for the examples that they own.
//
// A thread of its own prepares the next batches on the device (sample_maker.h) while the caller
// computes. With SampledTraining::prefetch 0 the caller prepares each batch before it computes, so
// that a profile tells what sampling and gathering take.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/nn/layers/input.h"
#include "plait/nn/operations/dense.h"
#include "plait/nn/tasks/targets.h"
#include "plait/partition/partition.h"
#include "plait/placement/graph_shards.h"

namespace plait {

// One rank's batch of a step, where the placed graph is.
struct SampledBatch {
  std::shared_ptr<const void> memory;  // that the rest is made in
  InputFeatures input;                 // of the first layer's inputs
  std::vector<GraphRef> graphs;        // one per layer
  SplitRows targets;                   // the first rows of the last layer, which are its own rows
  double examples = 0;                 // of all ranks
  std::uint32_t step = 0;              // of the run
};

class SampledBatches {
 public:
  // Collective. `config.sampled` is set, and `config.normalize` resolved (resolved()). The dataset,
  // the partition and the world outlive this; `split` is only read here. Throws UsageError for
  // settings that do not suit the model or the dataset, DoesNotFitError on all ranks if a GPU lacks
  // memory. `ahead`: as make_gpu_samples() takes it.
  SampledBatches(World& world, const Dataset& dataset, const Partition& partition,
                 const TrainConfig& config, std::span<const Split> split, std::uint64_t ahead);
  // Collective if batches are cooperative: threads end behind the same batch.
  ~SampledBatches();

  // Returns the number of steps of an epoch, the same on every rank.
  std::int64_t steps() const;
  // Collective if the model normalises over the batch, or batches are cooperative. Returns this
  // rank's batch of step `step` of all steps of the run, from 0; calls after the first ask for the
  // next step each, from the thread that has made this. Throws what sampling threw.
  SampledBatch batch(std::int64_t step, const GraphRef& placed);
  // The same for any step, only before the first call of batch(): this thread makes the batch.
  SampledBatch trial(std::int64_t step, const GraphRef& placed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Throws UsageError unless such a model can be trained on samples of the dataset by these settings.
void check_sampled(const Dataset& dataset, const TrainConfig& config);

}  // namespace plait

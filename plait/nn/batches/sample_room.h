// A batch of samples whose arrays stay where they are and keep their sizes, so that a step on it
// can be recorded once and replayed (recorded.h) for all batches that fit in.
//
// Batches differ in their rows and edges. The rows of a room beyond a batch's have zeros for
// features, no edges lead to them or from them, and their losses count nothing: so they take no
// part in the gradients of the weights. Only norms over a batch would count them.
//
// Memory order: batches move in on the stream that computes, before the step on them and behind the
// step before, by copies on the GPU. They are prepared ahead in memory of their own, as batches for
// which there is no room are.
#pragma once

#include <torch/types.h>

#include <span>
#include <vector>

#include "plait/aggregate/sample_counts.h"
#include "plait/nn/batches/sampled_batches.h"

namespace plait {

// Returns the counts of a batch on a GPU, one per layer, the first one's first.
std::vector<SampleCounts> counts_of(const SampledBatch& batch);

class SampleRoom {
 public:
  // Makes room for batches on a GPU of at most these counts, one per layer, which are otherwise
  // like `like`, for work on this thread's current stream. Features are dense and after the dropout
  // of the first layer; `dropout` outlives this. Throws DoesNotFitError and c10::OutOfMemoryError.
  SampleRoom(const SampledBatch& like, std::span<const SampleCounts> rooms, const GraphRef& placed,
             const Dropout& dropout);

  bool fits(const SampledBatch& batch) const;
  // Enqueues the copies that move in a batch that fits; the batch may be destroyed then.
  void take(const SampledBatch& batch);

  // The batch, as SampledBatch has it; all of the tensors are as large as the room.
  const InputFeatures& input() const { return input_; }
  const std::vector<GraphRef>& graphs() const { return graphs_; }
  const SplitRows& targets() const { return targets_; }
  // Returns for each of the targets whether it is none of the batch's.
  torch::Tensor left_over() const { return targets_.rows >= count_; }
  // The factor of the loss of one example: float64.
  const torch::Tensor& share() const { return share_; }
  // The step, which kernels read from the GPU's memory.
  DropoutStep dropout_step() const;

 private:
  const Dropout& dropout_;
  const std::vector<SampleCounts> rooms_;
  torch::Tensor rows_, numbers_;           // of the inputs: float32, int64
  torch::Tensor count_, share_, step_at_;  // of no dimension: int64, float64, int32
  SplitRows targets_;
  std::vector<GraphRef> graphs_;
  InputFeatures input_;
};

}  // namespace plait

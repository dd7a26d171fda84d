// The last part of a step backward on embedding tables: the gradients of this rank's rows.
// Gradients of other ranks' bags are read from the heap, after ranks have met.
#pragma once

#include "plait/embedding/cuda/named_rows.cuh"
#include "plait/embedding/cuda/step_edges.cuh"
#include "plait/embedding/embeddings.h"
#include "plait/symmetric/heap.h"
#include "plait/world/world.h"

namespace plait {

// A step whose bags and gradients are in the heap.
struct BackwardStep {
  StepBags bags;
  BagGradientsThere own;              // that this rank was given
  std::span<const DevicePart> parts;  // of the heap, by rank
  const Embeddings::Room& room;
};

class GpuGradients {
 public:
  // The arguments outlive this object. Pinned memory and events are of the current GPU, and
  // all that steps need is taken here. Rows are numbered in numberings of fewer than `most` rows.
  // Throws errors as number_rows(), DoesNotFitError if memory is short.
  GpuGradients(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules,
               std::uint64_t most);

  // Tells whether sums of replicated tables are joined over ranks.
  bool joins() const { return joins_; }
  // Collective if gradients are joined: then ranks meet at the heap's barrier once, after
  // everything that the stream was given before. Enqueues the gradients of all of this rank's
  // pieces, by table, and waits for the numbers of rows.
  std::vector<RowGradients> sum(const BackwardStep& step, SymmetricHeap& heap);

 private:
  // Tables whose edges are sorted at once.
  struct Pass {
    RowNumbers numbers;
    DeviceArray<Slot> bases;  // a copy of numbers.bases
  };

  void sum_pass(const BackwardStep& step, const Pass& pass, std::vector<RowGradients>& found);
  SumOfGroup shared_sum(const BackwardStep& step, const NamedRows& rows, const TableGroup& group);
  void join(const BackwardStep& step, SymmetricHeap& heap, std::vector<RowGradients>& found);

  World& world_;
  const EmbeddingLayout& layout_;
  const EmbeddingRules& rules_;
  const bool joins_;
  std::vector<Pass> passes_;
  Readback readback_;
  DeviceEvent shared_;             // behind this rank's sums of replicated tables
  std::uint64_t shared_rows_ = 0;  // their number
};

}  // namespace plait

// The limit of norms before a step forward on embedding tables.
#pragma once

#include "plait/embedding/cuda/named_rows.cuh"
#include "plait/embedding/cuda/step_edges.cuh"
#include "plait/embedding/piece_rows.h"
#include "plait/world/world.h"

namespace plait {

class GpuNormLimits {
 public:
  // The arguments outlive this object. Pinned memory and events are of the current GPU, and all
  // that is taken once is taken here. Throws UsageError if this rank has too many rows
  // (number_rows()), DoesNotFitError if memory is short.
  GpuNormLimits(World& world, const EmbeddingLayout& layout, const EmbeddingRules& rules);

  // Collective. Limits the norms of rows that bags of any rank name, so that replicated rows stay
  // the same. Ranks that have columns of the same rows join their sums of powers.
  void limit_rows(const StepBags& step, const TablePieces& pieces);

 private:
  bool is_shared(std::size_t t) const { return layout_.table(t).split == EmbeddingSplit::columns; }
  void join(std::span<double> sums_there, cudaStream_t stream) const;

  World& world_;
  const EmbeddingLayout& layout_;
  const EmbeddingRules& rules_;
  RowNumbers numbers_;
  DeviceArray<Slot> bases_;  // a copy of numbers_.bases
  Readback readback_;
};

}  // namespace plait

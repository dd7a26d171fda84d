// Adds the sums of the groups of cut rows: the last part of spmm.cu. Internal to this room.
#pragma once

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/spmm_rows.cuh"

namespace plait {

inline constexpr int kHubColumns = 32;  // of a hub's sum, that one block adds

// The cut rows of groups or of tiles, in memory of the GPU; the last `hubs` of them are hubs.
struct CutRows {
  const CutRow* rows;
  std::uint32_t count, hubs;
};
template <class Cut>  // RowGroups or EvenCut
CutRows cut_rows_of(const Cut& cut) {
  return {cut.cut_rows(), cut.cut_size(), cut.hubs()};
}

// Enqueues y_i (+)= row_scale_i * the sum of the partial sums of row i, for all of these rows. The
// order in which a row's are added depends on their number and the width alone.
void add_partial_sums(const SpmmView& view, const CutRows& cut, DType y, cudaStream_t stream);

}  // namespace plait

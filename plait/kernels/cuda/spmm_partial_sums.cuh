// Adds the sums of the groups of cut rows: the last part of spmm.cu. Internal to this room.
#pragma once

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/spmm_rows.cuh"

namespace plait {

inline constexpr int kHubColumns = 32;  // of a hub's sum, that one block adds

// Enqueues y_i (+)= row_scale_i * the sum of the partial sums of row i, for all cut rows of the
// groups. The order in which a row's are added depends on their number alone.
void add_partial_sums(const SpmmView& view, const RowGroups& groups, DType y, cudaStream_t stream);

}  // namespace plait

// A part of spmm.cu: sums of whole rows of a small matrix. Internal to this room.
#pragma once

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/spmm_rows.cuh"

namespace plait {

// Tells whether the GPU has room for several warps per row at once, so that rows are summed sooner
// by spmm_by_split_rows(). The arguments are those of that function; `vec`: elements per lane.
bool split_pays(const SpmmView& view, int lanes, std::uint64_t vec);

// Enqueues the sum of groups that are whole rows. `lanes` (above 1) lanes read a slice of a row of
// x, 16 bytes each. The order in which a row is summed depends on its edges and `lanes` alone.
void spmm_by_split_rows(const SpmmView& view, int lanes, DType x, DType y, cudaStream_t stream);

}  // namespace plait

// Sums of at most kEvenWidth columns by the even cut: a part of spmm.cu. Internal to this room.
#pragma once

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/even_cut.cuh"
#include "plait/kernels/cuda/spmm_rows.cuh"

namespace plait {

// Enqueues the sum of a matrix that has tiles. Parts of cut rows go to view.partial_sums, which has
// room for cut.partial_sums() rows.
void spmm_by_tiles(const SpmmView& view, const EvenCut& cut, DType x, DType y, cudaStream_t stream);

}  // namespace plait

// Optimisers of rows (embedding/row_update.h) and the first weights of tables
// (embedding/first_weights.h) on a GPU. This header needs no header of CUDA.
#pragma once

#include "plait/embedding/first_weights.h"
#include "plait/embedding/row_update.h"

namespace plait {

// Enqueues the change on the cudaStream_t. All arrays are in memory of the GPU.
void gpu_update_rows(const RowUpdate& update, void* stream);
// Enqueues the weights there.
void gpu_fill_first_weights(const FirstWeights& of, void* stream);

}  // namespace plait

// A sample on a GPU as columns of numbers of 64 bits (sample/columns.h). This header needs no
// header of CUDA.
#pragma once

#include "plait/sample/columns.h"
#include "plait/sample/cuda/neighbours.h"

namespace plait {

// Enqueues the writing of all columns on the cudaStream_t. They are in memory that the current GPU
// reaches.
void gpu_write_columns(const GpuSample& sample, const SampleColumns& to, void* stream);

}  // namespace plait

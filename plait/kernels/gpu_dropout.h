// Dropout on the GPU, of the same bits as dropout.h. No header of CUDA is needed here.
#pragma once

#include "plait/kernels/dropout.h"

namespace plait {

// y = x times the mask of an active step. Pointers are to memory of the GPU; the work is enqueued
// on the cudaStream_t.
void gpu_drop_rows(const DropoutStep& step, const DropoutRows& rows, void* stream);

}  // namespace plait

// Dropout on the GPU, with the same bits as dropout.h. This header needs no header of CUDA.
#pragma once

#include "plait/kernels/dropout.h"

namespace plait {

// Enqueues y = x times the mask of an active step on the cudaStream_t. Pointers are to memory of
// the GPU.
void gpu_drop_rows(const DropoutStep& step, const DropoutRows& rows, void* stream);
void gpu_drop_relu_gradient(const DropReluGradient& args, void* stream);

}  // namespace plait

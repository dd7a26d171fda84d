// Dropout (kernels/dropout.h) as a differentiable operation.
#pragma once

#include <torch/types.h>

#include "plait/kernels/dropout.h"

namespace plait {

// Global ids of own vertices, by row: int64, on the device that computes.
using VertexList = torch::Tensor;

// Returns the ids as kernels take them, on the list's device.
inline const std::uint64_t* ids_of(const VertexList& vertices) {
  return reinterpret_cast<const std::uint64_t*>(vertices.const_data_ptr<std::int64_t>());
}

// Returns row i of x times the mask of vertex i, without a gradient. It is its own adjoint. x:
// contiguous, float32, where `vertices` are; the step must be active.
torch::Tensor mask_rows(const torch::Tensor& x, const VertexList& vertices,
                        const DropoutStep& step);

// Returns x, own x width, after dropout, with a gradient; x itself if nothing is dropped.
torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step);

}  // namespace plait

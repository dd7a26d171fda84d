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
// `relu`: max(x, 0) times the mask instead, which is not linear.
torch::Tensor mask_rows(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step,
                        bool relu = false);

// Returns x, own x width, after dropout, with a gradient; x itself if nothing is dropped.
torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step);
// Returns drop(x.relu(), vertices, step) with the same bits. An active step reads and writes x
// once, and its gradient, which can be taken once, reads the result instead of drawing the mask
// again.
torch::Tensor drop_relu(const torch::Tensor& x, const VertexList& vertices,
                        const DropoutStep& step);

}  // namespace plait

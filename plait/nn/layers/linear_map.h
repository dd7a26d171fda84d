// A linear map with its adjoint, as a differentiable operation. Aggregation, dropout with a given
// mask and the product with a sparse matrix are all of this kind.
#pragma once

#include <torch/types.h>

#include <functional>

namespace plait {

using TensorMap = std::function<torch::Tensor(const torch::Tensor&)>;

// Returns map(x); the gradient for x is adjoint(gradient). Both get contiguous tensors. Objects
// that they capture live as long as the autograd graph of the result.
torch::Tensor linear_map(const torch::Tensor& x, TensorMap map, TensorMap adjoint);

}  // namespace plait

// The types of numbers in tables, as tensors have them.
#pragma once

#include <torch/types.h>

#include "plait/base/dtype.h"

namespace plait {

// Returns the type of a tensor's numbers. Throws a ValueError unless these are float32, bfloat16 or
// float16.
inline DType number_type(const torch::Tensor& numbers) {
  const torch::ScalarType type = numbers.scalar_type();
  TORCH_CHECK_VALUE(type == torch::kFloat32 || type == torch::kBFloat16 || type == torch::kFloat16,
                    "rows of ", type, " are not supported; use float32, bfloat16 or float16");
  return type == torch::kFloat32 ? DType::f32 : type == torch::kBFloat16 ? DType::bf16 : DType::f16;
}

}  // namespace plait

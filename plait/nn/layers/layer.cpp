#include "plait/nn/layers/layer.h"

namespace plait {

torch::Tensor padded_weight(const torch::Tensor& weight) {
  const auto width = static_cast<std::uint64_t>(weight.size(0));
  const auto missing = static_cast<std::int64_t>(row_stride(width) - width);
  return missing > 0 ? torch::constant_pad_nd(weight, {0, 0, 0, missing}) : weight;
}

}  // namespace plait

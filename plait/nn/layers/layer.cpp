#include "plait/nn/layers/layer.h"

#include <array>

namespace plait {

torch::Tensor padded_weight(const torch::Tensor& weight) {
  const auto width = static_cast<std::uint64_t>(weight.size(0));
  const auto missing = static_cast<std::int64_t>(row_stride(width) - width);
  return missing > 0 ? torch::constant_pad_nd(weight, {0, 0, 0, missing}) : weight;
}

std::string_view to_string(PhaseOrder order) {
  constexpr std::array<std::string_view, 3> kNames{"no sum", "product first", "sum first"};
  return kNames[static_cast<std::size_t>(order)];
}

LayerPlan plan_of_sum(const LayerShape& shape, bool sparse_input) {
  const auto in = static_cast<double>(shape.in), out = static_cast<double>(shape.out);
  return {.shape = shape,
          .order = transforms_first(shape, sparse_input) ? PhaseOrder::product_first
                                                         : PhaseOrder::sum_first,
          .moved_width = narrower_width(shape, sparse_input),
          .passes = {},
          .product = shape.out,
          .weights = in * out,
          .activations = 4 * out};  // the product, the sum, and the input as it was dropped
}

}  // namespace plait

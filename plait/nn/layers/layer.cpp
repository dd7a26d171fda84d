#include "plait/nn/layers/layer.h"

#include <fmt/format.h>

#include <array>

#include "plait/nn/operations/graph_handle.h"

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

torch::Tensor join_heads(const torch::Tensor& y, const LayerShape& shape, const GraphRef& graph) {
  if (shape.concatenated || shape.heads == 1) return y;
  return row_means(y.view({y.size(0), shape.heads, features_of_head(shape)}).transpose(1, 2),
                   graph);
}

std::uint64_t copied_width(std::uint64_t width, bool scaled) {
  return scaled || row_stride(width) != width ? width : 0;
}

LayerPlan plan_of_sum(const LayerShape& shape, bool sparse_input, bool scaled) {
  const auto in = static_cast<double>(shape.in), out = static_cast<double>(shape.out);
  const std::uint64_t width = narrower_width(shape, sparse_input);
  return {.shape = shape,
          .order = transforms_first(shape, sparse_input) ? PhaseOrder::product_first
                                                         : PhaseOrder::sum_first,
          .moved_width = width,
          .copied_width = copied_width(width, scaled),
          .operations = {},
          .product = shape.out,
          .weights = in * out,
          .activations = 4 * out};  // the product, the sum, and the input as it was dropped
}

LayerPlan plan_of_pairs(const LayerShape& shape, PairShape pairs, int products) {
  pairs.heads = static_cast<std::uint64_t>(shape.heads);
  pairs.features = static_cast<std::uint64_t>(features_of_head(shape));
  const std::int64_t width = features_of_heads(shape);
  const double all = static_cast<double>(products) * static_cast<double>(width);
  return {.shape = shape,
          .order = PhaseOrder::product_first,  // attention is paid to products
          .moved_width = std::max(pairs.forward_width(), pairs.backward_width()),
          .operations = {PairForward{.edges = {}, .shape = pairs, .dropout = {}},
                         PairOwnGradient{.edges = {}, .shape = pairs, .dropout = {}},
                         PairBackward{.edges = {}, .shape = pairs, .dropout = {}}},
          .edge_scratch = pairs.heads,  // norms of passes (kernels/cuda/pair_attention.cuh)
          .product = width,
          .weights = static_cast<double>(shape.in) * all,
          .activations = 4 * all,
          .refused_on_gpus =
              pairs.features > kMostPairFeatures
                  ? fmt::format("{} features per head are more than the {} that GPUs work on; "
                                "give more heads",
                                pairs.features, kMostPairFeatures)
                  : ""};
}

}  // namespace plait

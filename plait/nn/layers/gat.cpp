#include <fmt/format.h>

#include "plait/aggregate/operations.h"
#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/edges.h"

namespace plait {
namespace {

class GatLayer : public Layer {
 public:
  GatLayer(float slope, const LayerShape& shape, WeightSource& source)
      : shape_(shape),
        slope_(slope),
        weight_(source.glorot({features_of_heads(shape), shape.in})),
        source_score_(source.glorot({1, shape.heads, features_of_head(shape)})),
        target_score_(source.glorot({1, shape.heads, features_of_head(shape)})),
        bias_(source.constant(shape.out, 0)) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    const torch::Tensor h = x.times(weight_, graph);
    const torch::Tensor rows = h.view({h.size(0), shape_.heads, features_of_head(shape_)});
    const auto scores = [&](const torch::Tensor& of, const torch::Tensor& of_head) {
      return row_sums(scale_columns(of, of_head, graph), graph);
    };
    const torch::Tensor source = scores(rows, source_score_),
                        target = scores(own_rows(rows, graph), target_score_);
    const torch::Tensor y = attend(h, source, target, graph, slope_, x.step());
    return add_bias(join_heads(y, shape_, graph), bias_, graph);
  }
  NamedTensors parameters() const override {
    return {{"att_src", source_score_},
            {"att_dst", target_score_},
            {"bias", bias_},
            {"lin.weight", weight_}};
  }

 private:
  LayerShape shape_;
  float slope_;
  torch::Tensor weight_, source_score_, target_score_, bias_;
};

AttentionShape attention_of(const LayerShape& shape) {
  return {static_cast<std::uint64_t>(shape.heads),
          static_cast<std::uint64_t>(features_of_head(shape))};
}

std::unique_ptr<Layer> make_gat_layer(const ModelConfig& config, const LayerShape& shape,
                                      WeightSource& source) {
  return std::make_unique<GatLayer>(config.slope, shape, source);
}

LayerPlan plan_of_gat(const ModelConfig&, const LayerShape& shape, bool) {
  const AttentionShape of = attention_of(shape);
  const std::int64_t product = features_of_heads(shape);
  const auto wide = static_cast<double>(product);
  return {.shape = shape,
          .order = PhaseOrder::product_first,  // attention is paid to products
          .moved_width = of.backward_width(),
          .operations = {AttentionForward{.edges = {}, .shape = of, .dropout = {}},
                         AttentionBackward{.edges = {}, .shape = of, .dropout = {}}},
          .rows_per_sum = kAttentionRecord,
          .edge_scratch = static_cast<std::uint64_t>(product),  // kernels/cuda/attention.cuh
          .product = product,
          .weights = static_cast<double>(shape.in) * wide,
          .activations = 8 * wide,
          .refused_on_gpus = of.heads > kMostAttentionHeads
                                 ? fmt::format("{} heads are more than the {} that GPUs work on; "
                                               "give fewer",
                                               of.heads, kMostAttentionHeads)
                                 : ""};
}

}  // namespace

const LayerKind kGatLayer{
    .name = "gat",
    .defaults = {2, 64, 8, 0.6f, "elu", NormKind::none, 0.005, 5e-4, true, Pool::mean},
    .make = make_gat_layer,
    .plan = plan_of_gat,
    .moves_rows = [](const ModelConfig&) { return true; },
    .one_loop_each = true,
    .drops_edges = true,
    .has_heads = true};

}  // namespace plait

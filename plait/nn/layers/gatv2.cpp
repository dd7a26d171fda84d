#include "plait/aggregate/operations.h"
#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/edges.h"

namespace plait {
namespace {

class Gatv2Layer : public Layer {
 public:
  Gatv2Layer(float slope, const LayerShape& shape, WeightSource& source)
      : shape_(shape),
        slope_(slope),
        source_(source.glorot({features_of_heads(shape), shape.in})),
        target_(source.glorot({features_of_heads(shape), shape.in})),
        factors_(source.glorot({1, shape.heads, features_of_head(shape)})),
        source_bias_(source.constant(features_of_heads(shape), 0)),
        target_bias_(source.constant(features_of_heads(shape), 0)),
        bias_(source.constant(shape.out, 0)) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    const torch::Tensor p = add_bias(x.times(source_, graph), source_bias_, graph),
                        q = add_bias(x.own_times(target_, graph), target_bias_, graph);
    const torch::Tensor y =
        attend_pairs({q, p, {}, factors_}, shape_.heads, graph, slope_, x.step());
    return add_bias(join_heads(y, shape_, graph), bias_, graph);
  }
  NamedTensors parameters() const override {
    return {{"att", factors_},         {"bias", bias_},
            {"lin_l.weight", source_}, {"lin_l.bias", source_bias_},
            {"lin_r.weight", target_}, {"lin_r.bias", target_bias_}};
  }

 private:
  LayerShape shape_;
  float slope_;
  torch::Tensor source_, target_, factors_, source_bias_, target_bias_, bias_;
};

std::unique_ptr<Layer> make_gatv2_layer(const ModelConfig& config, const LayerShape& shape,
                                        WeightSource& source) {
  return std::make_unique<Gatv2Layer>(config.slope, shape, source);
}

LayerPlan plan_of_gatv2(const ModelConfig&, const LayerShape& shape, bool) {
  return plan_of_pairs(shape, {.score = PairScore::leaky}, 2);
}

}  // namespace

const LayerKind kGatv2Layer{
    .name = "gatv2",
    .defaults = {2, 64, 8, 0.6f, "elu", NormKind::none, 0.005, 5e-4, true, Pool::mean},
    .make = make_gatv2_layer,
    .plan = plan_of_gatv2,
    .moves_rows = [](const ModelConfig&) { return true; },
    .one_loop_each = true,
    .drops_edges = true,
    .has_heads = true};

}  // namespace plait

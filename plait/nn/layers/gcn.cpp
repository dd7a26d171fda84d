#include "plait/nn/layers/layer.h"

namespace plait {
namespace {

class LinearLayer : public Layer {
 public:
  LinearLayer(const LayerShape& shape, WeightSource& source, bool propagates)
      : propagates_(propagates),
        weight_(source.glorot({shape.out, shape.in})),
        bias_(source.constant(shape.out, 0)) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    if (!propagates_) return add_bias(x.own_times(weight_, graph), bias_, graph);
    if (!transforms_first(weight_, x, graph))
      return linear(propagate(x.dense(), graph), weight_, bias_, graph);
    const torch::Tensor sums = propagate(x.times(padded_weight(weight_), graph), graph);
    return add_bias(first_columns(sums, weight_), bias_, graph);
  }
  NamedTensors parameters() const override { return {{"lin.weight", weight_}, {"bias", bias_}}; }

 private:
  static torch::Tensor propagate(const torch::Tensor& x, const GraphRef& graph) {
    const torch::Tensor& scale = graph->gcn_normalization();
    return aggregate(x, graph, true, scale, own_rows(scale, graph));
  }

  bool propagates_;
  torch::Tensor weight_, bias_;
};

template <bool propagates>
std::unique_ptr<Layer> make_linear_layer(const ModelConfig&, const LayerShape& shape,
                                         WeightSource& source) {
  return std::make_unique<LinearLayer>(shape, source, propagates);
}

LayerPlan plan_of_mlp(const ModelConfig&, const LayerShape& shape, bool sparse_input) {
  LayerPlan plan = plan_of_sum(shape, sparse_input, false);
  plan.order = PhaseOrder::no_sum, plan.moved_width = plan.copied_width = 0;
  return plan;
}

LayerPlan plan_of_gcn(const ModelConfig&, const LayerShape& shape, bool sparse_input) {
  return plan_of_sum(shape, sparse_input, true);
}

constexpr ModelDefaults kDefaultsOfGcn{2,    16,   1,     0.5f,      "relu", NormKind::none,
                                       0.01, 5e-4, false, Pool::mean};

}  // namespace

const LayerKind kMlpLayer{.name = "mlp",
                          .defaults = kDefaultsOfGcn,
                          .make = make_linear_layer<false>,
                          .plan = plan_of_mlp};
const LayerKind kGcnLayer{.name = "gcn",
                          .defaults = kDefaultsOfGcn,
                          .make = make_linear_layer<true>,
                          .plan = plan_of_gcn,
                          .one_loop_each = true,
                          .by_degree = true};

}  // namespace plait

#include <cmath>

#include "plait/aggregate/operations.h"
#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/edges.h"

namespace plait {
namespace {

// A product with a weight and a bias, as torch.nn.Linear draws them.
struct Map {
  torch::Tensor weight, bias;

  Map(std::int64_t out, std::int64_t in, WeightSource& source)
      : weight(source.linear({out, in}, in)), bias(source.linear({out}, in)) {}
  void add_to(NamedTensors& all, const std::string& name) const {
    add_named(all, name + ".", {{"weight", weight}, {"bias", bias}});
  }
};

class TransformerLayer : public Layer {
 public:
  TransformerLayer(const LayerShape& shape, WeightSource& source)
      : shape_(shape),
        key_(features_of_heads(shape), shape.in, source),
        query_(features_of_heads(shape), shape.in, source),
        value_(features_of_heads(shape), shape.in, source),
        skip_(shape.out, shape.in, source) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    const auto of_inputs = [&](const Map& map) {
      return add_bias(x.times(map.weight, graph), map.bias, graph);
    };
    const auto of_own = [&](const Map& map) {
      return add_bias(x.own_times(map.weight, graph), map.bias, graph);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(features_of_head(shape_)));
    const torch::Tensor y =
        attend_pairs({of_own(query_) * scale, of_inputs(key_), of_inputs(value_), {}}, shape_.heads,
                     graph, 0, x.step());
    return join_heads(y, shape_, graph) + of_own(skip_);
  }
  NamedTensors parameters() const override {
    NamedTensors all;
    key_.add_to(all, "lin_key"), query_.add_to(all, "lin_query");
    value_.add_to(all, "lin_value"), skip_.add_to(all, "lin_skip");
    return all;
  }

 private:
  LayerShape shape_;
  Map key_, query_, value_, skip_;
};

std::unique_ptr<Layer> make_transformer_layer(const ModelConfig&, const LayerShape& shape,
                                              WeightSource& source) {
  return std::make_unique<TransformerLayer>(shape, source);
}

LayerPlan plan_of_transformer(const ModelConfig&, const LayerShape& shape, bool) {
  LayerPlan plan = plan_of_pairs(shape, {.score = PairScore::product, .own_values = true}, 3);
  const auto out = static_cast<double>(shape.out);
  plan.weights += static_cast<double>(shape.in) * out, plan.activations += 2 * out;  // of own rows
  return plan;
}

}  // namespace

const LayerKind kTransformerLayer{
    .name = "transformer",
    .defaults = {2, 64, 4, 0.5f, "relu", NormKind::none, 0.005, 5e-4, true, Pool::mean},
    .make = make_transformer_layer,
    .plan = plan_of_transformer,
    .moves_rows = [](const ModelConfig&) { return true; },
    .drops_edges = true,
    .has_heads = true};

}  // namespace plait

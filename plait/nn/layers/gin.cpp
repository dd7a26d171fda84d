#include <optional>

#include "plait/nn/layers/layer.h"
#include "plait/nn/layers/norm.h"

namespace plait {
namespace {

// Two linear layers with the model's norm and activation between them, as PyG's GIN has them.
class GinLayer : public Layer {
 public:
  GinLayer(const ModelConfig& config, const LayerShape& shape, WeightSource& source)
      : activation_(config.activation),
        first_(source.linear({shape.out, shape.in}, shape.in)),
        first_bias_(source.linear({shape.out}, shape.in)),
        second_(source.linear({shape.out, shape.out}, shape.out)),
        second_bias_(source.linear({shape.out}, shape.out)),
        eps_(source.constant(1, 0).detach()) {
    if (config.norm != NormKind::none) norm_.emplace(config.norm, shape.out, first_.device());
  }

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    const auto with_neighbours = [&](const torch::Tensor& h) {
      return torch::addcmul(aggregate(h, graph, false, {}, graph->sum_scale()), own_rows(h, graph),
                            1 + eps_);
    };
    torch::Tensor h =
        transforms_first(first_, x, graph)  // the sum of rows, times W, is the sum of products
            ? add_bias(
                  first_columns(with_neighbours(x.times(padded_weight(first_), graph)), first_),
                  first_bias_, graph)
            : linear(with_neighbours(x.dense()), first_, first_bias_, graph);
    if (norm_) h = (*norm_)(h, graph, x.trains());
    return linear(activate(h, activation_, graph), second_, second_bias_, graph);
  }
  NamedTensors parameters() const override {
    NamedTensors named{{"nn.lins.0.weight", first_},
                       {"nn.lins.0.bias", first_bias_},
                       {"nn.lins.1.weight", second_},
                       {"nn.lins.1.bias", second_bias_}};
    if (norm_) add_named(named, "nn.norms.0.", norm_->parameters());
    return named;
  }
  NamedTensors buffers() const override {
    NamedTensors named{{"eps", eps_}};
    if (norm_) add_named(named, "nn.norms.0.", norm_->buffers());
    return named;
  }

 private:
  std::string activation_;
  torch::Tensor first_, first_bias_, second_, second_bias_, eps_;
  std::optional<Norm> norm_;
};

std::unique_ptr<Layer> make_gin_layer(const ModelConfig& config, const LayerShape& shape,
                                      WeightSource& source) {
  return std::make_unique<GinLayer>(config, shape, source);
}

LayerPlan plan_of_gin(const ModelConfig&, const LayerShape& shape, bool sparse_input) {
  LayerPlan plan = plan_of_sum(shape, sparse_input, false);
  const auto out = static_cast<double>(shape.out);
  plan.weights += out * out, plan.activations *= 2;  // of the second linear layer
  return plan;
}

}  // namespace

const LayerKind kGinLayer{
    .name = "gin",
    .defaults = {5, 64, 1, 0.5f, "relu", NormKind::batch, 0.01, 5e-4, false, Pool::sum},
    .make = make_gin_layer,
    .plan = plan_of_gin,
    .has_inner_norm = true};

}  // namespace plait

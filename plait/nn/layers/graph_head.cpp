#include "plait/nn/layers/graph_head.h"

#include "plait/nn/layers/dropout.h"

namespace plait {

GraphHead::GraphHead(const ModelConfig& config, WeightSource& source)
    : activation_(config.activation),
      number_(static_cast<std::uint32_t>(config.layers)),
      first_(source.linear({config.hidden, config.hidden}, config.hidden)),
      first_bias_(source.linear({config.hidden}, config.hidden)),
      second_(source.linear({config.outputs, config.hidden}, config.hidden)),
      second_bias_(source.linear({config.outputs}, config.hidden)) {}

torch::Tensor GraphHead::scores(const torch::Tensor& pooled, const GraphSet& set,
                                const GraphRef& graph, DropoutStep step) const {
  step.layer = number_;
  const torch::Tensor h = activate(linear(pooled, first_, first_bias_, graph), activation_, graph);
  return linear(drop(h, set.own(), step), second_, second_bias_, graph);
}

NamedTensors GraphHead::parameters() const {
  return {{"lins.0.weight", first_},
          {"lins.0.bias", first_bias_},
          {"lins.1.weight", second_},
          {"lins.1.bias", second_bias_}};
}

}  // namespace plait

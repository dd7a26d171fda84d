// The head that scores graphs by their pooled rows: two linear layers, with the model's activation
// and dropout between them (as in PyG's example mutag_gin.py).
#pragma once

#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/graph_set.h"

namespace plait {

// The weights of a head, alike on all ranks.
class GraphHead {
 public:
  // Draws the weights: hidden x hidden, then outputs x hidden.
  GraphHead(const ModelConfig& config, WeightSource& source);

  // Returns own graphs x outputs. pooled: own graphs x hidden. `set` tells the graphs' ids, by
  // which dropout draws.
  torch::Tensor scores(const torch::Tensor& pooled, const GraphSet& set, const GraphRef& graph,
                       DropoutStep step) const;
  // Returns the weights, named as PyG's MLP names them.
  NamedTensors parameters() const;

 private:
  std::string activation_;
  std::uint32_t number_;  // among the layers, for dropout
  torch::Tensor first_, first_bias_, second_, second_bias_;
};

}  // namespace plait

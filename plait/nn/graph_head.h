// What scores graphs by their pooled rows: two linear layers, with the model's activation and
// dropout between them (as PyG's example mutag_gin.py has them).
#pragma once

#include "plait/nn/graph_set.h"
#include "plait/nn/layer.h"

namespace plait {

class GraphHead {
 public:
  GraphHead(const ModelConfig& config, WeightSource& source);

  // own graphs x outputs, by their pooled rows (own graphs x hidden).
  torch::Tensor scores(const torch::Tensor& pooled, const GraphSet& set, const GraphRef& graph,
                       DropoutStep step) const;
  // Named as PyG's MLP names them.
  NamedTensors parameters() const;

 private:
  std::string activation_;
  std::uint32_t number_;  // among the layers, for dropout
  torch::Tensor first_, first_bias_, second_, second_bias_;
};

}  // namespace plait

// Normalisation between layers, and within layers of gin: of each column over the vertices of all
// ranks (batch), or of each row (layer).
#pragma once

#include "plait/nn/layers/layer.h"

namespace plait {

// One normalisation with its weights and running statistics, alike on all ranks.
class Norm {
 public:
  // Weights are 1, biases 0. `width`: floats of a row.
  Norm(NormKind kind, std::int64_t width, const torch::Device& device);

  // x: own x width. Collective if it trains: batch normalisation then takes mean and variance of
  // all vertices, and moves its running statistics towards them; otherwise it uses the running ones
  // (Ioffe and Szegedy, ICML 2015, with momentum 0.1 and epsilon 1e-5 as in torch.nn.BatchNorm1d).
  torch::Tensor operator()(const torch::Tensor& x, const GraphRef& graph, bool trains) const;

  // Returns weight and bias, named as in PyG's BatchNorm and LayerNorm.
  NamedTensors parameters() const;
  // Returns the running statistics, which are kept but not learnt by gradients.
  NamedTensors buffers() const;

 private:
  // For an exact graph: returns x before weight and bias are applied.
  torch::Tensor exactly_normalized(const torch::Tensor& x, const GraphRef& graph,
                                   bool trains) const;
  // Moves the running statistics towards the mean and variance of `count` vertices.
  void learn(const torch::Tensor& mean, const torch::Tensor& variance, double count) const;

  NormKind kind_;
  torch::Tensor weight_, bias_, running_mean_, running_variance_;
};

}  // namespace plait

// Models for full-graph training: layers of weights that every rank holds alike, applied to the
// rows that it owns.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/graph_handle.h"
#include "plait/nn/input.h"

namespace plait {

class Model {
 public:
  // Weights are drawn from the seed (Glorot), biases are 0: the same on every rank and device.
  explicit Model(const ModelConfig& config, const torch::Device& device = torch::kCPU);

  const ModelConfig& config() const { return config_; }

  // What the graph must be like for this model.
  ShardOptions shard_options() const;
  // The widest rows that it will aggregate.
  std::uint64_t aggregated_width(bool sparse_input) const;

  // Class scores of own vertices: own x outputs. Dropout only if `step` asks for it. Collective.
  torch::Tensor forward(const InputFeatures& input, const c10::intrusive_ptr<GraphHandle>& graph,
                        DropoutStep step) const;

  // Named as PyG's GCN (torch_geometric.nn.models) names them: "convs.0.lin.weight" (out x in),
  // "convs.0.bias" (out).
  std::vector<std::pair<std::string, torch::Tensor>> named_parameters() const;
  // The same without names.
  std::vector<torch::Tensor> parameters() const;
  // Weights and bias of layer l.
  const torch::Tensor& weight(int l) const { return weights_[static_cast<std::size_t>(l)]; }
  const torch::Tensor& bias(int l) const { return biases_[static_cast<std::size_t>(l)]; }

 private:
  bool transforms_first(int layer, bool sparse) const;

  ModelConfig config_;
  std::vector<torch::Tensor> weights_, biases_;
};

}  // namespace plait

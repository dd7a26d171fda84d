// Models for full-graph training: layers (layer.h) with dropout, normalisation and activations
// between them, put together as PyG's basic models are.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/graph_handle.h"
#include "plait/nn/graph_head.h"
#include "plait/nn/input.h"
#include "plait/nn/layer.h"
#include "plait/nn/norm.h"

namespace plait {

// What the graph must be like for such a model.
ShardOptions shard_options_of(const ModelConfig& config);
// The different widths of rows that such a model sends through the graph, each once.
std::vector<std::uint64_t> moved_widths_of(const ModelConfig& config, bool sparse_input);
// Floats for each own row that operations over edges take on GPUs besides (attention_cuda.h).
std::uint64_t edge_scratch_of(const ModelConfig& config);

class Model {
 public:
  // Weights are drawn from the seed: the same on every rank and device. Throws UsageError for
  // sizes that do not go together.
  explicit Model(const ModelConfig& config, const torch::Device& device = torch::kCPU);

  const ModelConfig& config() const { return config_; }

  // What the graph must be like for this model.
  ShardOptions shard_options() const { return shard_options_of(config_); }
  // The widest rows that it will send through the graph.
  std::uint64_t moved_width(bool sparse_input) const;

  // Class scores of own vertices, or if the model pools of own graphs in `set`: own x outputs.
  // Dropout only if `step` asks for it; norms learn their statistics if the model `trains`.
  // Collective.
  torch::Tensor forward(const InputFeatures& input, const GraphRef& graph, DropoutStep step,
                        bool trains = false, const GraphSet* set = nullptr) const;

  // What one layer gives, with the norm and activation that follow it: own x out. Collective.
  torch::Tensor layer_output(std::size_t layer, const LayerInput& x, const GraphRef& graph) const;

  // Named as PyG's basic models (torch_geometric.nn.models) name them: "convs.0.lin.weight" (out x
  // in), "convs.0.bias" (out), "norms.0.module.weight", and for residual layers whose widths
  // differ "residuals.0.weight"; of the head "mlp.lins.0.weight". Layers come first, in order.
  NamedTensors named_parameters() const;
  // The same without names.
  std::vector<torch::Tensor> parameters() const;
  // How many of them, the first ones, weight decay is meant for.
  std::size_t decayed_parameters() const;
  // What layers and norms keep; not learnt by gradients.
  NamedTensors named_buffers() const;
  // Parameters, then buffers, detached: all that makes its results.
  std::vector<torch::Tensor> state() const;

 private:
  ModelConfig config_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<torch::Tensor> residuals_;  // one a layer; undefined where nothing is projected
  std::vector<Norm> norms_;               // one a layer that gives no scores, or none
  std::optional<GraphHead> head_;         // if it pools
};

// Floats of the weights and of the activations, for each own vertex, of a model: what training it
// will hold, before anything is made.
struct ModelSize {
  double weights, activations_per_vertex;
};
ModelSize size_of_model(const ModelConfig& config);
// Floats for each row that a layer holds at the least while it gives its output, without gradients:
// what it reads, what it makes of that, and its output.
std::uint64_t layer_floats(const ModelConfig& config, int layer);

}  // namespace plait

// Models: layers (layer.h) with dropout, normalisation and activations
// between them, put together as PyG's basic models are.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "plait/nn/config.h"
#include "plait/nn/layers/graph_head.h"
#include "plait/nn/layers/input.h"
#include "plait/nn/layers/layer.h"
#include "plait/nn/layers/norm.h"
#include "plait/nn/operations/graph_handle.h"

namespace plait {

// Returns the way in which the graph must be placed for such a model. The functions of a
// ModelConfig throw UsageError for kinds and sizes that do not go together.
ShardOptions shard_options_of(const ModelConfig& config);

// Returns the plan of a layer of the config's kind and this shape.
LayerPlan layer_plan_of(const ModelConfig& config, const LayerShape& shape, bool sparse_input);
// Returns the plans of all layers. `sparse_input`: the features are sparse.
std::vector<LayerPlan> layer_plans_of(const ModelConfig& config, bool sparse_input);

// Returns the widths, in floats, of the rows that such a model sends through the graph, one per
// layer.
std::vector<std::uint64_t> moved_widths_of(const ModelConfig& config, bool sparse_input);
// Tells whether such a model needs rows themselves at its edges, and not only their sums.
bool moves_rows(const ModelConfig& config);
// Returns how often rows cross for one layer in a step of training, at the most.
std::size_t moves_per_step(const ModelConfig& config);
// Throws UsageError if GPUs lack a kernel for one of the model's layers.
void require_kernels(const ModelConfig& config);
// Throws a UsageError if rows are to cross as less than fp32, but sums of the model's move none
// between so many ranks.
void require_wire_used(const ModelConfig& config, bool sparse_input, const Route& route, int ranks);
// Returns the operations of such a model that are no plain sums, with their shapes; none if it has
// sums alone.
std::vector<EdgeOperation> operations_of(const ModelConfig& config);
// Memory that the operations of such a model over edges take besides rows.
struct EdgeMemory {
  std::uint64_t scratch = 0;       // floats per own row, on GPUs
  std::uint64_t rows_per_sum = 1;  // as LayerPlan has it
};
EdgeMemory edge_memory_of(const ModelConfig& config);

// A model with its weights, which all ranks hold alike.
class Model {
 public:
  // Draws weights from the seed: the same on every rank and device. Throws UsageError for sizes
  // that do not go together.
  explicit Model(const ModelConfig& config, const torch::Device& device = torch::kCPU);

  const ModelConfig& config() const { return config_; }

  // Returns the way in which the graph must be placed for this model.
  ShardOptions shard_options() const { return shard_options_of(config_); }
  // Returns the width of the widest rows that it will send through the graph.
  std::uint64_t moved_width(bool sparse_input) const;

  // Collective. Returns class scores of own vertices or, if the model pools, of own graphs in `set`
  // (UsageError if that is null): own x outputs. Drops only if `step` asks for it; norms learn
  // their statistics if the model `trains`.
  torch::Tensor forward(const InputFeatures& input, const GraphRef& graph, DropoutStep step,
                        bool trains = false, const GraphSet* set = nullptr) const;

  // Collective. The same for a model that does not pool, with a graph for each layer: samples, in
  // which the own rows of a layer's graph are the inputs of the next, or are shared for them
  // (shared_rows()). `input` has the inputs of the first, and begins with the own rows of all.
  // Returns scores of the own rows of the last.
  torch::Tensor forward(const InputFeatures& input, const std::vector<GraphRef>& graphs,
                        DropoutStep step, bool trains) const;

  // Collective. Returns the output of one layer (from 0), with the norm and activation that follow
  // it: own x out.
  torch::Tensor layer_output(std::size_t layer, const LayerInput& x, const GraphRef& graph) const;

  // Returns the weights, named as PyG's basic models (torch_geometric.nn.models) name them:
  // "convs.0.lin.weight" (out x in), "convs.0.bias" (out), "norms.0.module.weight", and for
  // residual layers whose widths differ "residuals.0.weight"; of the head "mlp.lins.0.weight".
  // Layers come first, in order.
  NamedTensors named_parameters() const;
  // Returns the same weights without names.
  std::vector<torch::Tensor> parameters() const;
  // Returns the number of weights, counted from the first, that weight decay is meant for.
  std::size_t decayed_parameters() const;
  // Returns the tensors that layers and norms keep but do not learn by gradients.
  NamedTensors named_buffers() const;
  // Returns parameters, then buffers, detached: all that determines the model's results.
  std::vector<torch::Tensor> state() const;

 private:
  // Returns the output of a layer before its activation.
  torch::Tensor layer_sums(std::size_t layer, const LayerInput& x, const GraphRef& graph) const;
  // Returns the input of a layer, from the output of the layer before and its graph.
  torch::Tensor activate_and_drop(const torch::Tensor& h, const GraphRef& graph,
                                  const VertexList& vertices, const DropoutStep& step) const;

  ModelConfig config_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<torch::Tensor> residuals_;  // one per layer; undefined if nothing is projected
  std::vector<Norm> norms_;               // one per layer that gives no scores, or none
  std::optional<GraphHead> head_;         // if it pools
};

// Floats that training a model will hold: of its weights, and of its activations per own vertex.
// Known before anything is made.
struct ModelSize {
  double weights, activations_per_vertex;
};
// Returns the size of such a model.
ModelSize size_of_model(const ModelConfig& config);
// Returns the floats per row that a layer (from 0) holds at the least while it gives its output,
// without gradients: its input, intermediate results, and its output.
std::uint64_t layer_floats(const ModelConfig& config, int layer);

}  // namespace plait

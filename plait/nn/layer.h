// What a layer of a model is: weights that every rank holds alike, applied to rows of the vertices
// that it owns. One kind a file: NAME_layer.cpp; model.h puts them together.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plait/base/row_stride.h"
#include "plait/nn/config.h"
#include "plait/nn/dense_operations.h"
#include "plait/nn/input.h"

namespace plait {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

inline void add_named(NamedTensors& all, const std::string& prefix, const NamedTensors& some) {
  for (const auto& [name, tensor] : some) all.emplace_back(prefix + name, tensor);
}

// What a layer reads: the features of the graph, perhaps sparse, or what the layer before gave;
// with this layer's dropout; and whether norms within the layer learn their statistics.
class LayerInput {
 public:
  LayerInput(const InputFeatures& features, const DropoutStep& step, bool trains)
      : features_(&features), step_(step), trains_(trains) {}
  LayerInput(const torch::Tensor& h, const VertexList& vertices, const DropoutStep& step,
             bool trains)
      : h_(drop(h, vertices, step)), step_(step), trains_(trains) {}

  bool is_sparse() const { return features_ != nullptr && features_->is_sparse(); }
  // own x width.
  torch::Tensor dense() const { return features_ != nullptr ? features_->dense(step_) : h_; }
  // X W^T, own x out, with the gradient for weight (out x width).
  torch::Tensor times(const torch::Tensor& weight, const GraphRef& graph) const {
    return features_ != nullptr ? features_->times(weight, step_, graph)
                                : linear(h_, weight, {}, graph);
  }
  const DropoutStep& step() const { return step_; }
  bool trains() const { return trains_; }

 private:
  const InputFeatures* features_ = nullptr;
  torch::Tensor h_;
  DropoutStep step_;
  bool trains_;
};

// Draws the weights of one layer, each by its number in the layer: the same on every rank and
// device, whatever else the model has.
class WeightSource {
 public:
  WeightSource(std::uint64_t seed, int layer, const torch::Device& device)
      : seed_(seed), next_(static_cast<std::uint32_t>(layer)), device_(device) {}

  // Glorot and Bengio (2010), in and out being the last two sizes.
  torch::Tensor glorot(const std::vector<std::int64_t>& shape);
  // As torch.nn.Linear: uniform in +-1 / sqrt(in).
  torch::Tensor linear(const std::vector<std::int64_t>& shape, std::int64_t in);
  torch::Tensor constant(std::int64_t size, double value) const;

 private:
  torch::Tensor uniform(const std::vector<std::int64_t>& shape, double bound);

  std::uint64_t seed_;
  std::uint32_t next_;  // layer + 256 * weights drawn
  torch::Device device_;
};

// The sizes of one layer.
struct LayerShape {
  std::int64_t in = 0, out = 0;
  std::int64_t heads = 1;    // of attention
  bool concatenated = true;  // heads stand beside each other in `out`; else `out` is their mean
};

// Whether a layer multiplies by `weight` (out x in) before rows cross, where that may come before
// or after: X W moves rows of the output's width, and X first those of the input's; the narrower
// goes, and what is sparse is multiplied first.
inline bool transforms_first(const torch::Tensor& weight, bool sparse_input) {
  return sparse_input || weight.size(0) <= weight.size(1);
}
// The weight of a product whose rows cross next, with rows of 0 at its end, so that each row of the
// product begins where kernels read and write it fastest (base/row_stride.h). first_columns()
// takes what was padded off the sum of rows.
torch::Tensor padded_weight(const torch::Tensor& weight);
inline torch::Tensor first_columns(const torch::Tensor& rows, const torch::Tensor& weight) {
  return rows.narrow(1, 0, weight.size(0));
}
// The width of the rows that then cross.
inline std::uint64_t narrower_width(const LayerShape& shape, bool sparse_input) {
  const auto in = static_cast<std::uint64_t>(shape.in), out = static_cast<std::uint64_t>(shape.out);
  return sparse_input || out <= in ? row_stride(out) : in;
}

class Layer {
 public:
  virtual ~Layer() = default;
  // own x out. Collective.
  virtual torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const = 0;
  // Named as the layer of PyG names them.
  virtual NamedTensors parameters() const = 0;
  // What is kept but not learnt by gradients; named likewise.
  virtual NamedTensors buffers() const { return {}; }
};

using LayerMaker = std::unique_ptr<Layer> (*)(const ModelConfig&, const LayerShape&, WeightSource&);
// The widest rows that such a layer sends through the graph.
using MovedWidth = std::uint64_t (*)(const ModelConfig&, const LayerShape&, bool sparse_input);

// y = A x W^T + b without A: what the features alone can tell.
std::unique_ptr<Layer> make_mlp_layer(const ModelConfig&, const LayerShape&, WeightSource&);
// D^-1/2 (A + I) D^-1/2 X W^T + b (Kipf and Welling, ICLR 2017, equation 2).
std::unique_ptr<Layer> make_gcn_layer(const ModelConfig&, const LayerShape&, WeightSource&);
// W_l mean or max of neighbours + b + W_r x (Hamilton, Ying and Leskovec, NeurIPS 2017).
std::unique_ptr<Layer> make_sage_layer(const ModelConfig&, const LayerShape&, WeightSource&);
std::uint64_t sage_moved_width(const ModelConfig&, const LayerShape&, bool sparse_input);
// MLP((1 + eps) x + sum of neighbours), eps kept, at first 0 (Xu et al., ICLR 2019, equation 4.1).
std::unique_ptr<Layer> make_gin_layer(const ModelConfig&, const LayerShape&, WeightSource&);
// Attention over neighbours and the vertex itself (Velickovic et al., ICLR 2018; attention.h).
std::unique_ptr<Layer> make_gat_layer(const ModelConfig&, const LayerShape&, WeightSource&);
std::uint64_t gat_moved_width(const ModelConfig&, const LayerShape&, bool sparse_input);

}  // namespace plait

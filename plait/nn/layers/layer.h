// The interface of a layer: weights that every rank holds alike, applied to rows of the vertices
// that it owns or, in a sample, to rows of those that its edges read (GraphHandle::inputs). Each
// kind has one file, NAME.cpp (mlp is in gcn.cpp); model.h puts layers together.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/aggregate/operations.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/pair_attention.h"
#include "plait/nn/config.h"
#include "plait/nn/layers/input.h"
#include "plait/nn/operations/dense.h"

namespace plait {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Appends `some` to `all`, with `prefix` before each name.
inline void add_named(NamedTensors& all, const std::string& prefix, const NamedTensors& some) {
  for (const auto& [name, tensor] : some) all.emplace_back(prefix + name, tensor);
}

// The input of a layer: the features of the graph, perhaps sparse, or the output of the layer
// before; with this layer's dropout, and whether norms within the layer learn their statistics.
class LayerInput {
 public:
  // `features` outlive the input.
  LayerInput(const InputFeatures& features, const DropoutStep& step, bool trains)
      : features_(&features), step_(step), trains_(trains) {}
  // h: inputs x width, of the layer before, after dropout by `step`.
  LayerInput(torch::Tensor h, const DropoutStep& step, bool trains)
      : h_(std::move(h)), step_(step), trains_(trains) {}

  // Tells whether the input is sparse features.
  bool is_sparse() const { return features_ != nullptr && features_->is_sparse(); }
  // Returns inputs x width, after dropout: the same tensor each time, which all products share.
  torch::Tensor dense() const {
    if (!h_.defined()) h_ = features_->dense(step_);
    return h_;
  }
  // Returns X W^T, inputs x out, with the gradient for weight (out x width).
  torch::Tensor times(const torch::Tensor& weight, const GraphRef& graph) const {
    return is_sparse() ? features_->times(weight, step_, graph)
                       : linear(dense(), weight, {}, graph);
  }
  // Returns the same product for own rows alone: own x out.
  torch::Tensor own_times(const torch::Tensor& weight, const GraphRef& graph) const {
    return is_sparse() ? own_rows(times(weight, graph), graph)
                       : linear(own_rows(dense(), graph), weight, {}, graph);
  }
  const DropoutStep& step() const { return step_; }
  bool trains() const { return trains_; }

 private:
  const InputFeatures* features_ = nullptr;
  mutable torch::Tensor h_;  // of features: undefined until dense() is called
  DropoutStep step_;
  bool trains_;
};

// Draws the weights of one layer, each by its number in the layer: the same on every rank and
// device, whatever else the model has. All weights require a gradient.
class WeightSource {
 public:
  // `layer`: number of the layer, from 0, below 256. On the device torch::kMeta, weights are shapes
  // without memory.
  WeightSource(std::uint64_t seed, int layer, const torch::Device& device)
      : seed_(seed), next_(static_cast<std::uint32_t>(layer)), device_(device) {}

  // Returns a weight as Glorot and Bengio (2010) draw it; in and out are the last two sizes.
  torch::Tensor glorot(const std::vector<std::int64_t>& shape);
  // Returns a weight as torch.nn.Linear draws it: uniform in +-1 / sqrt(in).
  torch::Tensor linear(const std::vector<std::int64_t>& shape, std::int64_t in);
  // Returns `size` equal numbers.
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
  bool concatenated = true;  // heads stand side by side in `out`; else `out` is their mean
};

// Tells whether a layer of this shape multiplies by its weight (out x in) before rows cross, if
// that may come before or after: X W moves rows of the output's width, X rows of the input's. The
// narrower rows cross, and sparse input is always multiplied first.
inline bool transforms_first(const LayerShape& shape, bool sparse_input) {
  return sparse_input || shape.out <= shape.in;
}
inline bool transforms_first(const torch::Tensor& weight, bool sparse_input) {
  return transforms_first(LayerShape{.in = weight.size(1), .out = weight.size(0)}, sparse_input);
}
// padded_weight() returns the weight of a product whose rows cross next, with rows of 0 at its end,
// so that each row of the product begins where kernels read and write it fastest
// (base/row_stride.h). first_columns() takes the padding off the sum of rows.
torch::Tensor padded_weight(const torch::Tensor& weight);
inline torch::Tensor first_columns(const torch::Tensor& rows, const torch::Tensor& weight) {
  return rows.narrow(1, 0, weight.size(0));
}
// The same for a layer under way. In a sample, most rows that edges read are no own rows, so dense
// rows are summed first.
inline bool transforms_first(const torch::Tensor& weight, const LayerInput& x,
                             const GraphRef& graph) {
  return x.is_sparse() || (!graph->is_sample() && transforms_first(weight, false));
}
// Returns the width of the rows that then cross.
inline std::uint64_t narrower_width(const LayerShape& shape, bool sparse_input) {
  const auto in = static_cast<std::uint64_t>(shape.in), out = static_cast<std::uint64_t>(shape.out);
  return transforms_first(shape, sparse_input) ? row_stride(out) : in;
}

// A layer with its weights.
class Layer {
 public:
  virtual ~Layer() = default;
  // Collective. Takes inputs x in, and returns own x out.
  virtual torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const = 0;
  // Returns the weights, named as the layer of PyG names them.
  virtual NamedTensors parameters() const = 0;
  // Returns tensors that are kept but not learnt by gradients; named likewise.
  virtual NamedTensors buffers() const { return {}; }
};

// Heads of attention. Returns the features of one head, and of all heads side by side, which are
// `out` unless it is the mean of several heads.
inline std::int64_t features_of_head(const LayerShape& shape) {
  return shape.concatenated ? shape.out / shape.heads : shape.out;
}
inline std::int64_t features_of_heads(const LayerShape& shape) {
  return shape.heads * features_of_head(shape);
}
// Returns the output of a layer, rows x out, from the heads side by side.
torch::Tensor join_heads(const torch::Tensor& y, const LayerShape& shape, const GraphRef& graph);

// The order of a layer's product with its weights and of its sum, attention or maximum over
// neighbours. The rows that are summed, and cross, have the width of what came first.
enum class PhaseOrder { no_sum, product_first, sum_first };
// "no sum", "product first" or "sum first".
std::string_view to_string(PhaseOrder order);

// The properties of a layer that are known before it is made.
struct LayerPlan {
  LayerShape shape;
  PhaseOrder order = PhaseOrder::no_sum;
  // Width of the widest rows that it sends through the graph, forward or backward, in floats; 0 if
  // it sends none. They are padded as in memory (base/row_stride.h).
  std::uint64_t moved_width = 0;
  // Width of the widest rows that one rank on the CPU copies before they come to edges, because it
  // scales them, forward or backward, or leaves gaps between them; 0 if it reads all in place.
  std::uint64_t copied_width = 0;
  // Its operations over edges that are no plain sums, in training and in inference, as far as their
  // widths tell.
  std::vector<EdgeOperation> operations;
  std::uint64_t rows_per_sum = 1;  // rows of a record of a partial result (kExtremumRecord)
  std::uint64_t edge_scratch = 0;  // floats per own row that these operations take on GPUs besides
  std::int64_t product = 0;        // columns of its widest product, or of its output
  double weights = 0;              // numbers in its matrices
  double activations = 0;          // floats per own vertex that it keeps for the gradient, about
  bool moves_rows = false;         // rows themselves must come to edges (LayerKind::moves_rows)
  std::string refused_on_gpus;     // why GPUs have no kernel for it; empty: they have
};
// Returns the plan of a layer that sums rows over neighbours, before or after one product.
// `scaled`: it scales rows before it sends them, forward or backward.
LayerPlan plan_of_sum(const LayerShape& shape, bool sparse_input, bool scaled);
// Returns `width` if one rank on the CPU copies rows of it, scaled or not, and else 0.
std::uint64_t copied_width(std::uint64_t width, bool scaled);
// Returns the plan of a layer that pays attention to pairs of products, as wide as all heads.
// `pairs`: heads and features are the layer's. `products`: the number of those products.
LayerPlan plan_of_pairs(const LayerShape& shape, PairShape pairs, int products);

// A kind of layer: all that other code knows of it. Each stands in the file of its layer.
struct LayerKind {
  const char* name;
  ModelDefaults defaults;
  std::unique_ptr<Layer> (*make)(const ModelConfig&, const LayerShape&, WeightSource&);
  LayerPlan (*plan)(const ModelConfig&, const LayerShape&, bool sparse_input);
  // Tells whether rows themselves must come to edges, not only their sums; null: it never does.
  bool (*moves_rows)(const ModelConfig&) = nullptr;
  bool one_loop_each = false;  // it takes graphs in which every vertex has one loop
  bool drops_edges = false;    // its dropout draws by the ids of an edge's two ends
  bool by_degree = false;      // it scales by 1 / sqrt(degree): no degree may be negative
  bool has_heads = false, has_aggregation = false, has_inner_norm = false;  // as KindTrait
};
// Returns the kind of this name. Throws a UsageError that lists the kinds.
const LayerKind& layer_kind(const std::string& name);

// mlp: X W^T + b, which uses the features alone.
extern const LayerKind kMlpLayer;
// gcn: D^-1/2 (A + I) D^-1/2 X W^T + b (Kipf and Welling, ICLR 2017, equation 2).
extern const LayerKind kGcnLayer;
// sage: W_l (mean, max or min of neighbours) + b + W_r x (Hamilton, Ying and Leskovec, NeurIPS
// 2017).
extern const LayerKind kSageLayer;
// gin: MLP((1 + eps) x + sum of neighbours); eps is kept, at first 0 (Xu et al., ICLR 2019,
// equation 4.1).
extern const LayerKind kGinLayer;
// gat: attention over neighbours and the vertex itself (Velickovic et al., ICLR 2018; attention.h).
extern const LayerKind kGatLayer;
// gatv2: attention whose scores are functions of both rows, by each head (Brody, Alon and Yahav,
// ICLR 2022, equation 7; pair_attention.h), over neighbours and the vertex itself.
extern const LayerKind kGatv2Layer;
// transformer: attention by products of queries and keys over neighbours, and W x (Shi et al.,
// IJCAI 2021, equation 3; pair_attention.h).
extern const LayerKind kTransformerLayer;

}  // namespace plait

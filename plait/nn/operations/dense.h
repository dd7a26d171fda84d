// Computations of models besides operations over edges, if a result or a gradient is a sum:
// products with weights, biases, scales, norms, losses. They are computed as libtorch does or, if
// the graph is exact (Route::exact), by exact_sums.h, so that no bit depends on the number of
// ranks.
//
// With an exact graph the gradient of a weight or a bias is a sum over the vertices of all ranks.
// Rank 0 gets all of it and the others zeros, so that the sum over ranks, which the training loop
// takes in any case, is exact too. All functions work on own rows, are differentiable once unless
// said otherwise, and are collective if the graph is exact. Without a graph (null) they are
// libtorch's.
#pragma once

#include <torch/types.h>

#include <string>

#include "plait/nn/config.h"
#include "plait/nn/operations/graph_handle.h"

namespace plait {

using GraphRef = c10::intrusive_ptr<GraphHandle>;

// Tells whether there is a graph and it is exact.
inline bool is_exact(const GraphRef& graph) { return graph && graph->exact(); }

// Sets whether linear() rounds to bf16 in this process from here on, but where the graph is exact.
// A setting of libtorch decides whether it rounds to TF32.
void set_precision(Precision precision);

// Returns x W^T + b, own x out. weight: out x in; bias: out, or undefined.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const GraphRef& graph);
// Returns h + b, by row.
torch::Tensor add_bias(const torch::Tensor& h, const torch::Tensor& bias, const GraphRef& graph);
// Returns x * scale, by row. `scale` has one number for each number of a row, in any shape that
// broadcasts to x.
torch::Tensor scale_columns(const torch::Tensor& x, const torch::Tensor& scale,
                            const GraphRef& graph);
// Return the sum and the mean over the last dimension.
torch::Tensor row_sums(const torch::Tensor& x, const GraphRef& graph);
torch::Tensor row_means(const torch::Tensor& x, const GraphRef& graph);

// The mean and the variance (divided by the number of vertices) of each column, float32.
struct ColumnStatistics {
  torch::Tensor mean, variance;
};
// Returns them over the vertices of all ranks, for an exact graph; without a gradient.
ColumnStatistics exact_statistics(const torch::Tensor& x, const GraphRef& graph);
// Returns (x - mean) * scale for an exact graph. Its gradient takes into account that mean and
// scale (1 / standard deviation) depend on x.
torch::Tensor standardize(const torch::Tensor& x, const torch::Tensor& mean,
                          const torch::Tensor& scale, const GraphRef& graph);

// Returns h after the `activation` of ModelConfig.
torch::Tensor activate(const torch::Tensor& h, const std::string& activation,
                       const GraphRef& graph);
// Returns the loss of each example and class, by the sigmoid of its score. labels: float32, 0 or 1.
torch::Tensor binary_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                   const GraphRef& graph);

// Returns the sum of a vector, float64, of no dimension, without a gradient. It is this rank's part
// or, for an exact graph, the sum of all ranks on rank 0, and 0 elsewhere.
torch::Tensor part_of_total(const torch::Tensor& values, const GraphRef& graph);
// Returns `whole`, which all ranks have alike, on rank 0, and zeros elsewhere.
torch::Tensor on_rank_0(const torch::Tensor& whole, const GraphRef& graph);

}  // namespace plait

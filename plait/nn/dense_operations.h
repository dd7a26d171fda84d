// What models compute besides operations over edges, wherever a result or a gradient is a sum:
// products with weights, biases, scales, norms, losses. As libtorch computes them, or, if the graph
// is exact (Route::exact), by exact_sums.h, so that no bit depends on the ranks.
//
// With an exact graph the gradient of a weight or a bias is a sum over the vertices of all ranks:
// rank 0 gets all of it and the others zeros, so that the sum over ranks, which the training loop
// takes in any case, is exact too. All are differentiable once, on own rows, and collective.
// Without a graph (null) they are libtorch's.
#pragma once

#include <torch/types.h>

#include <string>

#include "plait/nn/graph_handle.h"

namespace plait {

using GraphRef = c10::intrusive_ptr<GraphHandle>;

inline bool is_exact(const GraphRef& graph) { return graph && graph->exact(); }

// x W^T + b, own x out. weight: out x in; bias: out, or undefined.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                     const GraphRef& graph);
// h + b, by row.
torch::Tensor add_bias(const torch::Tensor& h, const torch::Tensor& bias, const GraphRef& graph);
// x * w, by row: w has one number for each of a row's, in any shape that goes with x.
torch::Tensor scale_columns(const torch::Tensor& x, const torch::Tensor& scale,
                            const GraphRef& graph);
// The sum and the mean over the last dimension.
torch::Tensor row_sums(const torch::Tensor& x, const GraphRef& graph);
torch::Tensor row_means(const torch::Tensor& x, const GraphRef& graph);

// The mean and the variance of each column over the vertices of all ranks, float32, for an exact
// graph; without a gradient.
struct ColumnStatistics {
  torch::Tensor mean, variance;
};
ColumnStatistics exact_statistics(const torch::Tensor& x, const GraphRef& graph);
// (x - mean) * scale, whose gradient takes into account that the mean and the scale, 1 / standard
// deviation, are those of x. For an exact graph.
torch::Tensor standardize(const torch::Tensor& x, const torch::Tensor& mean,
                          const torch::Tensor& scale, const GraphRef& graph);

// `activation` as in ModelConfig.
torch::Tensor activate(const torch::Tensor& h, const std::string& activation,
                       const GraphRef& graph);
// Of each example and class (float32, 0 or 1), by the sigmoid of its score.
torch::Tensor binary_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                   const GraphRef& graph);

// The sum of a vector, float64, of no dimension, without a gradient: this rank's part; of an exact
// graph all of it on rank 0, and 0 elsewhere.
torch::Tensor part_of_total(const torch::Tensor& values, const GraphRef& graph);
// What all ranks have alike becomes rank 0's, and zeros elsewhere.
torch::Tensor on_rank_0(const torch::Tensor& whole, const GraphRef& graph);

}  // namespace plait

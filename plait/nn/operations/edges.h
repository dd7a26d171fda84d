// Operations over edges that are no plain sums, differentiable and collective: attention
// (kernels/attention.h, kernels/pair_attention.h) and the greatest or least of neighbours
// (kernels/extremum.h).
#pragma once

#include <torch/types.h>

#include "plait/kernels/attention.h"
#include "plait/kernels/extremum.h"
#include "plait/kernels/pair_attention.h"
#include "plait/nn/operations/graph_handle.h"

namespace plait {

// Returns y[i, k] = sum of softmax(leaky_relu(source[j, k] + target[i, k])) h[j, k] over the edges
// of i, by head k. h: inputs x (heads * features); source: inputs x heads; target: own x heads;
// float32, on the graph's device. Attention is dropped if `step` is active; the graph must then
// know vertices by their ids (ShardOptions.slot_vertices). Throws c10::Error for other shapes and
// types, and errors as Aggregator::over_edges().
torch::Tensor attend(const torch::Tensor& h, const torch::Tensor& source,
                     const torch::Tensor& target, const c10::intrusive_ptr<GraphHandle>& graph,
                     float slope, const DropoutStep& step);

// The rows between which attention is paid. q: own x width; p and v: inputs x width, v undefined
// where it is p; f: width numbers in any shape, for PairScore::leaky, undefined for
// PairScore::product. All float32, on the graph's device.
struct AttendedPairs {
  torch::Tensor q, p, v, f;
};

// Returns y[i, k] = sum of softmax(score of q[i, k] and p[j, k]) v[j, k] over the edges of i, by
// head k (kernels/pair_attention.h). `slope`: of leaky_relu below 0. Attention is dropped, and
// errors are thrown, as by attend().
torch::Tensor attend_pairs(const AttendedPairs& rows, std::int64_t heads,
                           const c10::intrusive_ptr<GraphHandle>& graph, float slope,
                           const DropoutStep& step);

// Returns by column the greatest or the least of the rows of x that each own row aggregates from; 0
// without edges. x: inputs x width, float32, on the graph's device. Throws as attend().
torch::Tensor extremum_of_neighbours(const torch::Tensor& x,
                                     const c10::intrusive_ptr<GraphHandle>& graph,
                                     Extremum which = Extremum::greatest);

// The two directions of each operation follow, for callers with an autograd of their own. Shapes
// are as above and not checked again.

// The inputs of attention, or their gradients.
struct AttentionInput {
  torch::Tensor h, source, target;
};

// The graph along which attention is taken, and its constants.
struct AttentionSetting {
  c10::intrusive_ptr<GraphHandle> graph;
  float slope = 0.2f;
  DropoutStep step;
};

// y, and the sums that its gradient needs (AttentionForward).
struct Attended {
  torch::Tensor y, u, b, norm;
};

// Collective. Without `keeps`, only y is made.
Attended attention_forward(const AttentionInput& input, const AttentionSetting& setting,
                           bool keeps = true);
// Collective. Returns the gradient of each input.
AttentionInput attention_backward(const torch::Tensor& dy, const AttentionInput& input,
                                  const Attended& attended, const AttentionSetting& setting);

// y, and the number of edges that reach it.
struct Extrema {
  torch::Tensor y, ties;
};

// Collective. Without `keeps`, only y is made.
Extrema extremum_forward(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                         Extremum which, bool keeps = true);
// Collective. Returns the gradient of x.
torch::Tensor extremum_backward(const torch::Tensor& dy, const torch::Tensor& x,
                                const Extrema& extrema,
                                const c10::intrusive_ptr<GraphHandle>& graph);

}  // namespace plait

// Operations over edges that are no plain sums, differentiable and collective: attention
// (kernels/attention.h) and the maximum over neighbours (kernels/max_rows.h).
#pragma once

#include <torch/types.h>

#include "plait/kernels/attention.h"
#include "plait/nn/graph_handle.h"

namespace plait {

// y[i, k] = sum of softmax(leaky_relu(source[j, k] + target[i, k])) h[j, k] over the edges of i,
// by head k. h: own x (heads * features); source and target: own x heads; float32, on the graph's
// device. Attention is dropped if `step` is active; the graph then knows vertices by their ids
// (ShardOptions.slot_vertices).
torch::Tensor attend(const torch::Tensor& h, const torch::Tensor& source,
                     const torch::Tensor& target, const c10::intrusive_ptr<GraphHandle>& graph,
                     float slope, const DropoutStep& step);

// y[i] = the greatest of the rows of x that i aggregates from, by column; 0 without edges.
torch::Tensor max_of_neighbours(const torch::Tensor& x,
                                const c10::intrusive_ptr<GraphHandle>& graph);

// The two directions of each, for callers with an autograd of their own. Shapes as above, not
// checked again.

struct AttentionInput {
  torch::Tensor h, source, target;
};

// What attention is taken along, both ways.
struct AttentionSetting {
  c10::intrusive_ptr<GraphHandle> graph;
  float slope = 0.2f;
  DropoutStep step;
};

// y, and what its gradient needs besides (AttentionForward).
struct Attended {
  torch::Tensor y, u, b, norm;
};

// Without `keeps`, y alone is made.
Attended attention_forward(const AttentionInput& input, const AttentionSetting& setting,
                           bool keeps = true);
// The gradient of each input.
AttentionInput attention_backward(const torch::Tensor& dy, const AttentionInput& input,
                                  const Attended& attended, const AttentionSetting& setting);

// y, and how many edges reach it.
struct Maxima {
  torch::Tensor y, ties;
};

Maxima max_forward(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph,
                   bool keeps = true);
// The gradient of x.
torch::Tensor max_backward(const torch::Tensor& dy, const torch::Tensor& x, const Maxima& maxima,
                           const c10::intrusive_ptr<GraphHandle>& graph);

}  // namespace plait

// Rows of a cooperative batch (sample/cooperative.h) go from the ranks that have computed them to
// those whose layers read them.
#pragma once

#include <torch/types.h>

#include "plait/nn/operations/graph_handle.h"

namespace plait {

// Returns the rows of a layer's inputs, inputs x width, from x, the rows of this rank's own targets
// of the layer before: own x width, float32, on the graph's device. Its gradient goes back to the
// owners, which add it in the order of ranks. Collective in both directions, for a graph with
// shared_rows(). Throws LostRankError.
torch::Tensor share_rows(const torch::Tensor& x, const c10::intrusive_ptr<GraphHandle>& graph);

}  // namespace plait

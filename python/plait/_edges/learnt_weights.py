"""Weighted sums that are differentiable with respect to the edge weights.

The C++ graph holds its weights, so it is made at every call.
"""

import torch

from plait._edges.adjacency import inverse_root
from plait._edges.batch_graph import batch_graph_if_it_fits, one_loop_each
from plait._library import ops

_EDGES_AT_ONCE = 2**16


class LearntAdjacency:
    """The counterpart of plait._edges.adjacency.Adjacency for weighted sums."""

    def __init__(self, edge_index, edge_weight, num_nodes, loop_weight):
        ops.check_edges(edge_index, num_nodes, edge_weight.detach())
        self._num_nodes = num_nodes
        self._index, self._weight = edge_index.to(edge_weight.device, torch.long), edge_weight
        if loop_weight is not None:
            self._index, self._weight = one_loop_each(self._index, self._weight, num_nodes, loop_weight)

    @torch.compiler.disable
    def aggregate(self, x, op):
        """Returns x aggregated by `op`: weighted or gcn."""
        return _WeightedSum.apply(x.float(), self._weight, self._index)

    @torch.compiler.disable
    def normalise(self):
        """Prepares the operation gcn. Raises ValueError if a degree is negative."""
        source, target = self._index
        degree = self._weight.new_zeros(self._num_nodes).scatter_add(0, target, self._weight)
        scale = inverse_root(degree)
        self._weight = scale[source] * self._weight * scale[target]


class _WeightedSum(torch.autograd.Function):
    """Computes y[i] = the sum of weight[e] x[j] over the edges e from j to i."""

    @staticmethod
    def forward(context, x, weight, index):
        context.graph = _graph_of(index, weight, x)
        context.save_for_backward(x, index)
        return ops.aggregate(x, context.graph, True)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context, dy):
        x, (source, target) = context.saved_tensors
        dx = ops.aggregate(dy, context.graph, True, transposed=True)
        if not context.needs_input_grad[1]:
            return dx, None, None
        # Only the rows of some edges are gathered at a time, to limit memory.
        dw = [(dy[t] * x[s]).sum(1)
              for s, t in zip(source.split(_EDGES_AT_ONCE), target.split(_EDGES_AT_ONCE))]
        return dx, torch.cat(dw), None


def _graph_of(index, weight, x):
    batch = batch_graph_if_it_fits(index, weight, x.size(0), x.device)
    return ops.graph_from_edges(index, x.size(0), weight, device=x.device) if batch is None else batch

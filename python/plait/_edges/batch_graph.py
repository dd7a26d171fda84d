"""Graphs of edges on a GPU, which may be the edges of a batch and live for one step.

They are converted on the GPU. The host makes the better plan, which takes longer: edges that are used again and again
get that one.
"""

import collections

import torch

from plait._library import ops
from plait.world import world_size

# Uses of the same edges by one layer before the host makes their plan. Those of a batch have one, or two if activations
# are computed again in the step backward.
_LASTING = 6
_MOST = 2**31 - 1  # edges, and nodes


def on_their_gpu(edge_index, edge_weight, num_nodes, device):
    """Returns whether batch_graph() takes these edges, for rows on the device."""
    tensors = [t for t in (edge_index, edge_weight) if t is not None]
    return (device.type == "cuda" and world_size() == 1 and all(t.device == device for t in tensors)
            and edge_index.layout == torch.strided and edge_index.dim() == 2
            and edge_index.size(1) < _MOST - num_nodes)


def batch_graph(edge_index, edge_weight, num_nodes, loop_weight=None):
    """Returns the handle of a C++ graph. Errors and `loop_weight` as of plait._edges.adjacency.adjacency(), and
    torch.OutOfMemoryError."""
    if loop_weight is not None:
        if edge_weight is None and loop_weight != 1:
            raise ValueError(f"loop_weight is {loop_weight}, but the edges have no weights; give edge_weight")
        ops.check_edges(edge_index, num_nodes, edge_weight)
        if edge_index.dtype not in (torch.int32, torch.int64):  # others need not have room for all nodes
            edge_index = edge_index.long()
        edge_index, edge_weight = one_loop_each(edge_index, edge_weight, num_nodes, loop_weight)
    return ops.batch_graph(edge_index, num_nodes, edge_weight)


def batch_graph_if_it_fits(edge_index, edge_weight, num_nodes, device, loop_weight=None):
    """As batch_graph(); returns None where batch_graph() does not take the edges, or lacks the memory: sorting takes
    several times as much memory as the host's form."""
    if not on_their_gpu(edge_index, edge_weight, num_nodes, device):
        return None
    try:
        return batch_graph(edge_index, edge_weight, num_nodes, loop_weight)
    except torch.OutOfMemoryError:
        return None


def one_loop_each(edge_index, edge_weight, num_nodes, loop_weight):
    """Returns edges and weights in which each node has one loop: its own last loop if it has any, else one of
    `loop_weight`. Gradients flow into the weights. Weights of None stay None."""
    source, target = edge_index
    nodes = torch.arange(num_nodes, device=source.device, dtype=source.dtype)
    others = source != target
    index = torch.cat([edge_index[:, others], nodes.expand(2, -1)], 1)
    if edge_weight is None:
        return index, None
    (loops,) = others.logical_not().nonzero(as_tuple=True)
    last = loops.new_full((num_nodes,), -1).scatter_reduce(0, source[loops].long(), loops, "amax")
    own = last >= 0
    of_loops = edge_weight.new_full((num_nodes,), loop_weight).masked_scatter(own, edge_weight[last[own]])
    return index, torch.cat([edge_weight[others], of_loops])


class Uses:
    """Counts the uses of edges that batch_graph() has converted."""

    def __init__(self):
        self._of = collections.Counter()
        self._ended = False

    def are_many(self, user):
        """Counts one more use by the layer with the id `user`. Returns True once at the most: when it is time for
        a plan of the host. A step that is captured uses the same graph for good: its replays read it."""
        if self._ended:
            return False
        self._of[user] += 1
        captured = torch.cuda.is_current_stream_capturing()
        many = self._of[user] >= _LASTING and not captured
        self._ended = many or captured
        return many

"""Graphs of edges on a GPU, which may be those of a batch and live for one step.

They are converted on the GPU, in less than a millisecond for a batch. The host makes the better plan, in seconds for a
large graph: edges that are used again and again get that one.
"""

import torch

from plait._library import ops
from plait.world import world_size

# Uses of the same edges before the host makes their plan: more than a model has layers, of which each uses the edges
# of its batch once.
_LASTING = 16
_MOST = 2**31 - 1  # edges, and nodes


def on_their_gpu(edge_index, edge_weight, num_nodes, device):
    """Returns whether batch_graph() takes these edges, for rows on the device."""
    tensors = [t for t in (edge_index, edge_weight) if t is not None]
    return (device.type == "cuda" and world_size() == 1 and all(t.device == device for t in tensors)
            and edge_index.layout == torch.strided and edge_index.dim() == 2
            and edge_index.size(1) < _MOST - num_nodes)


def batch_graph(edge_index, edge_weight, num_nodes, loop_weight=None):
    """Returns the handle of a C++ graph. Errors and `loop_weight` as of plait._adjacency.adjacency()."""
    if loop_weight is not None:
        ops.check_edges(edge_index, num_nodes, edge_weight)
        edge_index, edge_weight = one_loop_each(edge_index, edge_weight, num_nodes, loop_weight)
    return ops.batch_graph(edge_index, num_nodes, edge_weight)


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
        self._count = 0

    def are_many(self):
        """Counts one more. Returns True once: when it is time for a plan of the host, which a step that is captured
        cannot wait for."""
        self._count += 1
        if self._count < _LASTING or torch.cuda.is_current_stream_capturing():
            return False
        self._count = -2**62
        return True

"""Graph convolution."""

from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.conv.gcn_conv import GCNConv as theirs
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from plait._edges.adjacency import kept
from plait._library import ops
from plait.graph import Graph
from plait.nn._fast_conv import FastConv, their_errors
from plait.nn._linear import linear_of_neighbours
from plait.nn._neighbours import edges_of, is_linear, is_sparse
from plait.nn._slow import Slow

__all__ = ["GCNConv"]


class GCNConv(FastConv, theirs):
    """Graph convolution, D^-1/2 (A + I) D^-1/2 X W^T + b (Kipf and Welling, ICLR 2017, equation 2), as
    torch_geometric.nn.GCNConv.

    `edge_index` may also be a plait.Graph, which has its own weights, or any object from which one can be
    made. The graph that is made from a tensor is kept for as long as that tensor lives unchanged, so that
    calls with the same tensors convert it once, in every layer; `cached` is not needed for that. Writing
    to a tensor's memory behind torch's back, through NumPy or .data, is not noticed. If edge_weight
    requires a gradient, the graph is made at every call.
    """

    _uses_weights = True

    def _fast(self, x, edge_index, edge_weight=None):
        graph, op = normalised(self, x, edge_index, edge_weight, improved=self.improved)
        if op is None:
            out = linear_of_neighbours(self.lin, x, lambda rows: graph.aggregate(rows, self.aggr_module),
                                       is_linear(self.aggr_module))
        else:
            out = linear_of_neighbours(self.lin, x, lambda rows: graph.reduce(rows, op))
        return out if self.bias is None else out + self.bias


def normalised(conv, x, edge_index, edge_weight, improved=False):
    """Returns the Neighbours of a call by the options normalize, add_self_loops and cached, and the
    operation that sums them; None: the layer's own aggregation sums them."""
    if isinstance(x, (tuple, list)):
        raise Slow("x for sources and targets")
    if not getattr(conv, "normalize", True):
        return conv._neighbours((x, x), edge_index, edge_weight), None
    if type(conv.aggr_module) is not SumAggregation:
        raise Slow("aggr", f"aggr={conv.aggr!r} of normalised edges")
    adds_loops = getattr(conv, "add_self_loops", False)
    with their_errors(x, edge_index):
        if adds_loops and is_sparse(edge_index) and _has_loops(edge_index):
            raise Slow("loops of a sparse tensor")
    if hasattr(conv, "_cached_edge_index") and conv.cached and not isinstance(edge_index, Graph):
        return _cached(conv, x, edge_index, edge_weight, improved), "weighted"
    loops = (1.0, 2.0 if improved else 1.0) if adds_loops else None
    found = conv._neighbours((x, x), edge_index, edge_weight, loop_weights=loops)
    with their_errors(x, edge_index):
        found.adjacency.normalise()
    return found, "gcn"


def _has_loops(matrix):
    """PyTorch Geometric adds to such loops, where loops of an edge_index are kept."""
    source, target = edges_of(matrix, None).index
    return kept(matrix, None, ("has loops",), lambda: bool((source == target).any()))


def _cached(conv, x, edge_index, edge_weight, improved):
    """Keeps the normalised edges of the first call where PyTorch Geometric keeps them."""
    if conv._cached_edge_index is None:
        with their_errors(x, edge_index):
            edges = edges_of(edge_index, edge_weight)
            ops.check_edges(edges.index, x.size(-2),
                            None if edges.weight is None else edges.weight.detach())
        conv._cached_edge_index = gcn_norm(edges.index, edges.weight, x.size(-2), improved,
                                           conv.add_self_loops, conv.flow, x.dtype)
    return conv._neighbours((x, x), *conv._cached_edge_index)

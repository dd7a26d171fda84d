"""Reduces the rows of neighbours by the C++ operations, in the forms that PyTorch Geometric has."""

import dataclasses

import torch
from torch_geometric import EdgeIndex
from torch_geometric.nn.aggr import (MaxAggregation, MeanAggregation, MinAggregation, MultiAggregation,
                                     SoftmaxAggregation, StdAggregation, SumAggregation, VarAggregation)

from plait._edges.adjacency import adjacency, is_learnt, kept
from plait._edges.inputs import Edges, as_edges, is_torch_sparse
from plait._edges.learnt_weights import LearntAdjacency
from plait.graph import Graph
from plait.nn._bare import is_bare
from plait.nn._slow import Slow
from plait.world import world_size

# Name of the operation for each of PyTorch Geometric's aggregations that is one operation.
_OPS = {SumAggregation: "sum", MeanAggregation: "mean", MaxAggregation: "max",
        MinAggregation: "min"}
_MOST_HEADS = 32  # of attention on a GPU
_SCALED = ("gcn", "weighted", "weighted mean")


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """Edges from `sources` nodes to `targets` nodes.

    One C++ graph has both, numbered alike: the larger number of them are its nodes, and rows are padded
    or cut at the end.
    """

    adjacency: object
    sources: int
    targets: int
    weighted: bool
    scale: torch.dtype  # of the factors of edges, which PyTorch Geometric makes of x's type

    def reduce(self, x, op):
        """Returns the rows of x reduced over the edges to each target.

        Args:
            x: (sources, width) or (batch, sources, width), float32, or lower under autocast.
            op: sum, mean, max, min, weighted, weighted mean or gcn (plait._edges.adjacency.Adjacency).

        Returns x's shape with `targets` in place of `sources`.
        """
        dtype = torch.promote_types(x.dtype, self.scale) if op in _SCALED else x.dtype
        if x.dim() == 2:
            return self._of_rows(x, op).to(dtype)
        batch, _, width = x.shape
        y = self._of_rows(x.transpose(0, 1).reshape(self.sources, batch * width), op).to(dtype)
        return y.view(self.targets, batch, width).transpose(0, 1)

    def aggregate(self, x, module):
        """As reduce(), by an aggregation of PyTorch Geometric for which reason_against is None."""
        kind = type(module)
        if kind is MultiAggregation:
            return torch.cat([self.aggregate(x, each) for each in module.aggrs], -1)
        if kind is StdAggregation:
            variance = self.aggregate(x, module.var_aggr)
            # As PyTorch Geometric defines it: variances up to 1e-5 count as 0, without a gradient.
            is_small = variance <= 1e-5
            return variance.masked_fill(is_small, 1).sqrt().masked_fill(is_small, 0)
        if kind is VarAggregation:
            mean, of_squares = self.reduce(torch.cat([x, x * x], -1), "mean").chunk(2, -1)
            return of_squares - mean * mean
        if kind is SoftmaxAggregation:
            return self._softmax(x, module)
        op = _OPS[kind]
        if self.weighted:
            op = {"sum": "weighted", "mean": "weighted mean"}[op]
        return self.reduce(x, op)

    def _softmax(self, x, module):
        """Returns the sum of softmax(t x) x by column: attention of as many heads as columns, whose scores
        are those of sources alone."""
        if module.channels not in (1, x.size(-1)) or module.channels != 1 and x.dim() != 2:
            raise Slow("softmax", f"softmax of {module.channels} channels")
        scores = x * module.t
        if x.dim() == 3:
            rows, scores = (t.transpose(0, 1).flatten(1) for t in (x, scores))
            return self._softmax_of(rows, scores).view(self.targets, *x.shape[::2]).transpose(0, 1)
        return self._softmax_of(x, scores)

    def _softmax_of(self, x, scores):
        # Powers of scores less the greatest of each target are exact to the last bits, however large
        # scores are; the softmax does not depend on what is subtracted.
        greatest = self.reduce(scores.detach(), "max")
        most = _MOST_HEADS if x.is_cuda else max(x.size(1), 1)
        parts = zip(*(rows.split(most, 1) for rows in (x, scores, -greatest)))
        return torch.cat([self.attend(h, own, 1.0, 0.0) for h, *own in parts], 1).to(x.dtype)

    def attend(self, h, scores, slope, dropout):
        """Returns attention over neighbours; see plait._edges.adjacency.Adjacency.

        Args:
            h: (sources, width).
            scores: (sources, heads), as sources, and (targets, heads), as targets.
        """
        nodes = max(self.sources, self.targets)
        of_nodes = torch.cat([_with_rows(score, nodes) for score in scores], 1)
        y = self.adjacency.attend(_with_rows(h, nodes), of_nodes, slope, dropout)
        return y[:self.targets]

    def _of_rows(self, x, op):
        return self.adjacency.aggregate(_with_rows(x, max(self.sources, self.targets)), op)[:self.targets]


def _with_rows(x, rows):
    missing = rows - x.size(0)
    return torch.nn.functional.pad(x, (0, 0, 0, missing)) if missing else x


def reason_against(module, weighted=None):
    """Returns why rows cannot be aggregated by this module of PyTorch Geometric; None if they can.
    `weighted`: the Neighbours whose edges have weights; None if they have none."""
    kind = type(module)
    if not all(map(is_bare, module.modules())):
        return f"hooks of {kind.__name__}"
    if kind is MultiAggregation and module.mode == "cat":
        return next(filter(None, (reason_against(each, weighted) for each in module.aggrs)), None)
    learnt = weighted and isinstance(weighted.adjacency, LearntAdjacency)
    can = (not weighted or kind is SumAggregation or kind is MeanAggregation and not learnt)
    if kind in (StdAggregation, VarAggregation):
        can = can and not getattr(module, "var_aggr", module).semi_grad
    elif kind is SoftmaxAggregation:
        can = not weighted and (module.learn or not module.semi_grad)
    elif kind not in _OPS:
        can = False
    return None if can else f"{kind.__name__}{' of weighted rows' if weighted else ''}"


def is_linear(module):
    """Returns whether sums of rows reduce to sums of results."""
    return type(module) in (SumAggregation, MeanAggregation)


@torch.compiler.disable
def neighbours(conv, x, edge_index, edge_weight=None, size=None, loop_weights=None):
    """Returns the Neighbours of a layer's call.

    Args:
        conv: the layer, for its flow and for whether it uses weights.
        x: the rows of the sources and of the targets; the rows of the targets may be None.
        edge_index, edge_weight, size: the arguments of the call.
        loop_weights: None, or the weight of the one loop that every node that is source and target
            gets: if edges have no weights, the first of the two, else the second.

    Raises Slow where only PyTorch Geometric's own code will do, and ValueError for wrong edges.
    """
    sources, targets = _counts(x, edge_index.sparse_size() if isinstance(edge_index, EdgeIndex) else size)
    one_set, turned = sources == targets, conv.flow != "source_to_target"
    if turned and (isinstance(edge_index, Graph) or not one_set or x[0] is not x[1]):
        raise Slow("flow", f"flow={conv.flow!r} on a plait.Graph, or between two sets of nodes")
    edges = edges_of(edge_index, edge_weight)
    if is_sparse(edge_index):
        _check_sparse(conv, edges.weight)
    index, weight, nodes, layout = edges.index, edges.weight, max(sources, targets), None
    if isinstance(edge_index, Graph):
        edge_index.check_rows(sources)
        nodes, layout = edge_index.num_nodes, edge_index.layout()
    elif edges.num_nodes is not None and (not one_set or edges.num_nodes != sources):
        raise ValueError(f"x has {sources} rows, but the graph has {edges.num_nodes} nodes; give one row "
                         "for each")
    if is_learnt(weight) and not conv._uses_weights:
        weight = None
    if is_learnt(weight) and world_size() > 1:
        raise Slow("gradients of edge weights")
    loop_weight = loop_weights and loop_weights[weight is not None]
    if turned:
        index = _kept_edges(index, "turned", lambda: edges.index.flip(0))
    if not one_set:
        _check_both_sides(index, sources, targets)
        if loop_weights:
            both, given = min(sources, targets), index
            index = _kept_edges(given, both, lambda: _with_loops(given, both))
            weight = loop_weight = None
    if is_learnt(weight):
        made = LearntAdjacency(index, weight, nodes, loop_weight)
    else:
        user = None if isinstance(edge_index, Graph) else id(conv)
        made = adjacency(index, weight, nodes, loop_weight, layout, x[0].device, user)
    weighted = conv._uses_weights and weight is not None
    return Neighbours(made, sources, targets, weighted, weight.dtype if weighted else x[0].dtype)


def edges_of(edge_index, edge_weight):
    """As as_edges; the edges of a sparse tensor or an EdgeIndex are kept for as long as it lives
    unchanged."""
    if is_sparse(edge_index) and edge_weight is None:
        if is_learnt(edge_index):
            raise Slow("gradients of a sparse tensor")
        if edge_index.layout == torch.sparse_coo and not edge_index.is_coalesced():
            raise Slow("a sparse tensor that is not coalesced")
        with torch.inference_mode(False):
            return kept(edge_index, None, ("as edges",), lambda: as_edges(edge_index))
    if is_torch_sparse(edge_index):
        raise Slow("a SparseTensor")
    if isinstance(edge_index, EdgeIndex):
        # It counts its changes, which the tensor in it does not.
        edge_index = kept(edge_index, None, ("as tensor",), lambda: edge_index.as_tensor().detach())
    if isinstance(edge_index, Graph):
        return _edges_of_graph(edge_index, edge_weight)
    return as_edges(edge_index, edge_weight)


def _edges_of_graph(graph, edge_weight):
    if edge_weight is None and graph._asks_for_weight is not None:
        return Edges(graph.edge_index, None, graph.num_nodes)
    if edge_weight is None or (graph.is_weighted and graph._asks_for_weight is None):
        return as_edges(graph, edge_weight)  # which tells if there are two weights
    if world_size() == 1:
        return as_edges(graph.edge_index, edge_weight)
    if graph.is_asked_for(edge_weight):
        return as_edges(graph)
    raise Slow("edge_weight", "an edge_weight that is not data.edge_weight, or was changed")


def _check_sparse(conv, weight):
    """Raises Slow where PyTorch Geometric reduces the rows of a sparse tensor by other rules than those
    of an edge_index: by the values and the name of the aggregation."""
    if not conv._uses_weights and weight is not None:
        if not kept(weight, None, ("ones",), lambda: bool(weight.eq(1).all())):
            raise Slow("weights", "weights of a sparse tensor")
    named = {"add": "sum"}.get(conv.aggr, conv.aggr) if isinstance(conv.aggr, str) else None
    if named in _OPS.values() and named != _OPS.get(type(conv.aggr_module)):
        raise Slow("aggr", f"aggr={conv.aggr!r} beside {type(conv.aggr_module).__name__}")


def is_sparse(edge_index):
    """Returns whether edges are given as an adjacency matrix of torch."""
    return isinstance(edge_index, torch.Tensor) and edge_index.layout != torch.strided


def _counts(x, size):
    """Returns the numbers of sources and of targets, as PyTorch Geometric finds them."""
    sources, targets = (None if rows is None else rows.size(-2) for rows in x)
    asked_sources, asked_targets = size or (None, None)
    if not all(each is None or isinstance(each, int) for each in (asked_sources, asked_targets)):
        raise Slow("size", f"size={size!r}")
    wrong_targets = None not in (targets, asked_targets) and targets != asked_targets
    if wrong_targets or asked_sources not in (None, sources):
        raise Slow("size", f"size={size!r} beside x of {sources} and {targets} rows")
    return sources, next(n for n in (targets, asked_targets, sources) if n is not None)


def _kept_edges(index, name, make):
    with torch.inference_mode(False):
        return kept(index, None, ("edges", name), make)


def _check_both_sides(index, sources, targets):
    """Raises ValueError unless the ids of sources and of targets are in their own ranges; a C++ graph
    has one range for both."""

    def check():
        if index.dim() != 2 or index.size(0) != 2 or index.numel() == 0:
            return True  # the graph's own checks find it
        for row, (side, nodes) in enumerate((("sources", sources), ("targets", targets))):
            most = int(index[row].max())
            if most >= nodes:
                raise ValueError(f"edge_index[{row}] has {most}, but there are {nodes} {side}")
        return True

    kept(index, None, ("checked", sources, targets), check)


def _with_loops(index, nodes):
    """Returns the edges without loops, and then one loop for each of the first `nodes` nodes."""
    loops = torch.arange(nodes, device=index.device, dtype=index.dtype).expand(2, -1)
    return torch.cat([index[:, index[0] != index[1]], loops], 1)

"""Runs any message passing of PyTorch Geometric on a spread graph, by the layer's own code.

A layer gets the edges into own nodes, numbered by slot (plait._spread.local_piece), and own rows. When it
sends messages, rows that message functions read at the source (`x_j`) are brought from their owners.
They are passed as a pair, PyTorch Geometric's own way to say that sources and targets have different
rows. gcn_norm and degree, with which layers find the degrees of sources, are replaced within the layer's
code (plait._spread.degrees).
"""

import copy
import functools
import inspect

import torch

from plait._edges.rows import take
from plait._made_classes import derived
from plait._spread.computing import computing_on
from plait._spread.local_piece import local_piece
from plait._theirs import is_theirs
from plait.graph import Graph
from plait.world import world_size

# Layers whose results depend on more than the edges into a node, and why.
_REFUSED = {
    "ChebConv": "it scales by the largest of all edges' weights",
    "CuGraphGATConv": "it takes a graph of cuGraph",
    "CuGraphRGCNConv": "it takes a graph of cuGraph",
    "CuGraphSAGEConv": "it takes a graph of cuGraph",
    "DynamicEdgeConv": "it searches for nearest nodes",
    "GravNetConv": "it searches for nearest nodes",
    "HANConv": "it takes several kinds of nodes",
    "HGTConv": "it takes several kinds of nodes",
    "HypergraphConv": "its edges join any number of nodes",
    "PANConv": "it follows paths of several edges",
    "SparseLinear": "its weights have a row for each node",
    "SuperGATConv": "it samples pairs of nodes without an edge",
    "XConv": "it searches for nearest nodes",
}

# Aggregations that reduce the messages to each node by themselves: they do not depend on messages to
# other nodes, such as the largest number of them.
_REDUCING = {
    f"{name}Aggregation" for name in
    "Attentional DegreeScaler Fused Max Mean Median Min Mul Multi PowerMean Quantile Softmax Std Sum Var "
    "VariancePreserving".split()
}


def why_not_spread(conv):
    """Returns why a MessagePassing layer cannot be spread; None if it can."""
    for cls in type(conv).__mro__:
        if cls.__name__ in _REFUSED and cls.__module__.startswith("torch_geometric."):
            return f"{cls.__name__}: {_REFUSED[cls.__name__]}"
    if conv.flow != "source_to_target":
        return f"flow={conv.flow!r}; turn the edges round"
    if conv.decomposed_layers != 1:
        return f"decomposed_layers={conv.decomposed_layers}; use 1"
    if conv.explain:
        return "it is being explained"
    others = sorted({type(part).__name__ for part in conv.modules()
                     if is_theirs(part, "Aggregation")} - _REDUCING)
    if others:
        return f"{others[0]} takes the messages to several nodes together"
    functions = ["message", "aggregate", "update", "edge_update"]
    numbers = {"edge_index_j", "size_j"} & {*conv.inspector.get_flat_param_names(functions)}
    if numbers:
        return f"its messages read {min(numbers)}, but sources are numbered anew on each rank"
    for asked in (conv._user_args, conv._edge_user_args):
        both = sorted(name for name in asked if f"{name}_j" in asked)
        if both:
            return f"its messages read {both[0]} at the source and whole; pass it under two names"
    return None


def spread_convolution(conv):
    """Lets the layer, in place, take a plait.Graph as edge_index, and own rows."""
    if not getattr(type(conv), "_is_spread", False):
        conv.__class__ = _spread_class(type(conv))


@functools.cache
def _spread_class(cls):
    """Returns a subclass of the same name; one per class, as PyTorch Geometric keeps code by class."""
    from plait._spread.degrees import find_names, of_whole_graph

    signature = inspect.signature(cls.forward)
    find_names(cls)

    @functools.wraps(cls.forward)
    def forward(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        graph = next((graph for value in given.values() for graph in _graphs_in(value)), None)
        if graph is None:
            return cls.forward(self, *args, **kwargs)
        piece = local_piece(graph, _device_of(self, given))
        if given.get("x") is None and is_theirs(self, "RGCNConv"):
            given["x"] = _ids_of_nodes(self, graph, piece)
        _check(self, graph, piece, given)
        given.update({name: _on_piece(value, piece) for name, value in given.items() if name != "self"})
        if graph.is_weighted and graph._asks_for_weight is None and "edge_weight" in signature.parameters:
            if given.get("edge_weight") is not None:
                raise ValueError(f"{cls.__name__}: edge_weight was given beside a plait.Graph, which "
                                 "has its own; leave it out")
            given["edge_weight"] = piece.edge_weight
        self._plait_piece = piece
        try:
            with computing_on(piece, _edges_of(self, piece), self.node_dim), of_whole_graph():
                return cls.forward(*bound.args, **bound.kwargs)
        finally:
            del self._plait_piece

    def sending(send, asked):
        @functools.wraps(send)
        def sent(self, edge_index, size=None, **kwargs):
            piece = self._plait_piece
            if piece is None:
                return send(self, edge_index, size=size, **kwargs)
            brought = _brought(self, piece, kwargs, getattr(self, asked))
            with computing_on(piece, edge_index, self.node_dim, is_sending=True):
                return send(self, edge_index, size=(piece.num_slots, piece.num_own), **brought)

        return sent

    def index_select(self, src, index):
        return take(functools.partial(cls._index_select, self), self._plait_piece, src, index, self.node_dim)

    return derived(cls, {
        "_is_spread": True,
        "_plait_piece": None,
        "_index_select": index_select,
        "forward": forward,
        "propagate": sending(cls.propagate, "_user_args"),
        "edge_updater": sending(cls.edge_updater, "_edge_user_args"),
    })


def _graphs_in(value):
    """Yields the plait.Graphs of an argument: of further ones in a tuple or a dictionary, or of data."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, (tuple, list)):
        yield from (each for each in value if isinstance(each, Graph))
    elif isinstance(value, dict):
        yield from _graphs_in([*value.values()])
    elif isinstance(getattr(value, "edge_index", None), Graph):
        yield value.edge_index


def _on_piece(value, piece):
    """Returns the argument with the piece's edges in place of its plait.Graphs."""
    if next(_graphs_in(value), None) is None:
        return value
    if isinstance(value, Graph):
        return piece.edge_index
    if isinstance(value, (tuple, list)):
        return type(value)(_on_piece(each, piece) for each in value)
    if isinstance(value, dict):
        return {name: _on_piece(each, piece) for name, each in value.items()}
    data = copy.copy(value)
    data.edge_index = piece.edge_index
    return data


def _edges_of(conv, piece):
    """Returns the edges on which the layer computes at first."""
    kept = getattr(conv, "_cached_edge_index", None)
    return kept[0] if isinstance(kept, tuple) else piece.edge_index


def _device_of(conv, given):
    tensors = (one for value in given.values()
               for one in (value if isinstance(value, (tuple, list)) else (value,))
               if isinstance(one, torch.Tensor))
    return next((tensor.device for tensor in (*tensors, *conv.parameters())), torch.device("cpu"))


def _ids_of_nodes(conv, graph, piece):
    """Returns what RGCNConv computes on if it is given no features: the ids of nodes, which select rows of its
    weights."""
    if conv.in_channels_l != graph.num_nodes:
        raise ValueError(f"{type(conv).__name__}: x is None, which needs weights for each of {graph.num_nodes} nodes, but "
                         f"in_channels is {conv.in_channels_l}; give one for each node")
    return piece.vertices[:piece.num_own]


def _check(conv, graph, piece, given):
    name = type(conv).__name__
    x = given.get("x")
    if isinstance(x, torch.Tensor) and x.dim() > 0 and conv.node_dim in (-2, 0):
        graph.check_rows(x.size(conv.node_dim if x.dim() > 1 else 0))
    if given.get("size") is not None:
        raise ValueError(f"{name}: size={given['size']!r} beside a plait.Graph; leave it out")
    mask = given.get("mask")
    if isinstance(mask, torch.Tensor) and mask.dtype != torch.bool and world_size() > 1:
        raise ValueError(f"{name}: mask lists nodes; give a mask of own nodes, as data.train_mask")
    edges = piece.edges.numel()
    for argument, value in given.items():
        if argument.startswith("edge_") and isinstance(value, torch.Tensor) and (
                value.shape[:1] != (edges,)):
            raise ValueError(
                f"{name}: {argument} has {value.shape[:1].numel()} rows, but {edges} edges lead to this rank's "
                f"nodes; give data.{argument} of the data that plait.parallelize returned"
            )


def _brought(conv, piece, kwargs, asked):
    """Returns the arguments of message functions, with rows of all slots for those that are read at
    the source."""

    def pair(value):
        source, target = value if isinstance(value, (tuple, list)) else (value, value)
        if not isinstance(source, torch.Tensor):
            return value
        dim = conv.node_dim if source.dim() > 1 else 0
        rows = piece.bring(source.movedim(dim, 0))
        return rows.movedim(0, dim), target

    return {name: pair(value) if f"{name}_j" in asked else value for name, value in kwargs.items()}

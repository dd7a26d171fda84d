"""Runs any message passing of PyTorch Geometric on a spread graph, by the layer's own code.

A layer gets the edges into own nodes, numbered by slot (plait._local_piece), and own rows. When it
sends messages, rows that message functions read at the source (`x_j`) are brought from their owners.
They are passed as a pair, PyTorch Geometric's own way to say that sources and targets have different
rows. gcn_norm and degree, by which layers find the degrees of sources, are replaced within the layer's
code.
"""

import functools
import inspect
import sys
import types

import torch
from torch.utils._contextlib import context_decorator

from plait._adjacency import inverse_root
from plait._computing import compute_on_edges, computing_on, current
from plait._local_piece import local_piece
from plait.graph import Graph
from plait.world import counts_of_ranks, world_size

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
                     if isinstance(part, sys.modules["torch_geometric.nn"].Aggregation)} - _REDUCING)
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
    signature = inspect.signature(cls.forward)
    inner = with_degrees_of_sources(cls.forward)
    above = tuple(_with_own_forward(each) for each in cls.__mro__[1:]
                  if "forward" in vars(each) and not issubclass(torch.nn.Module, each))

    @functools.wraps(cls.forward)
    def forward(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        graphs = [name for name, value in given.items() if isinstance(value, Graph)]
        if not graphs:
            return cls.forward(self, *args, **kwargs)
        graph = given[graphs[0]]
        piece = local_piece(graph, _device_of(given))
        _check(self, graph, piece, given)
        given.update(dict.fromkeys(graphs, piece.edge_index))
        if graph.is_weighted and graph._asks_for_weight is None and "edge_weight" in signature.parameters:
            if given.get("edge_weight") is not None:
                raise ValueError(f"{cls.__name__}: edge_weight was given beside a plait.Graph, which "
                                 "has its own; leave it out")
            given["edge_weight"] = piece.edge_weight
        self._plait_piece = piece
        try:
            with computing_on(piece):
                return inner(*bound.args, **bound.kwargs)
        finally:
            del self._plait_piece

    def sending(send, asked):
        @functools.wraps(send)
        def sent(self, edge_index, size=None, **kwargs):
            piece = self._plait_piece
            if piece is None:
                return send(self, edge_index, size=size, **kwargs)
            brought = _brought(self, piece, kwargs, getattr(self, asked))
            with computing_on(piece, edge_index):
                return send(self, edge_index, size=(piece.num_slots, piece.num_own), **brought)

        return sent

    return type(cls.__name__, (cls, *above), {
        "__module__": cls.__module__,
        "__doc__": cls.__doc__,
        "_is_spread": True,
        "_plait_piece": None,
        "forward": forward,
        "propagate": sending(cls.propagate, "_user_args"),
        "edge_updater": sending(cls.edge_updater, "_edge_user_args"),
    })


@functools.cache
def _with_own_forward(cls):
    """Returns a subclass whose forward, which forwards of further subclasses may call, finds degrees of
    sources."""
    return type(cls.__name__, (cls,), {"__module__": cls.__module__,
                                       "forward": with_degrees_of_sources(cls.forward)})


def _device_of(given):
    tensors = (one for value in given.values()
               for one in (value if isinstance(value, (tuple, list)) else (value,))
               if isinstance(one, torch.Tensor))
    return next(tensors).device


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
        if argument.startswith("edge_") and isinstance(value, torch.Tensor) and len(value) != edges:
            raise ValueError(
                f"{name}: {argument} has {len(value)} rows, but {edges} edges lead to this rank's "
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


# --- degrees of sources ---


@functools.cache
def with_degrees_of_sources(function):
    """Returns the function, or a copy of it in which gcn_norm, one_hot and, in a layer of the user, degree
    are those of a piece."""
    if function.__code__ is _NO_GRAD.__code__:  # decorated by torch.no_grad() or the like
        names = function.__code__.co_freevars
        within = dict(zip(names, (cell.cell_contents for cell in function.__closure__)))
        return context_decorator(within["ctx_factory"], with_degrees_of_sources(within["func"]))
    utils = sys.modules["torch_geometric.utils"]
    ours = {"gcn_norm": (sys.modules["torch_geometric.nn.conv.gcn_conv"].gcn_norm, _gcn_norm),
            "one_hot": (utils.one_hot, _one_hot)}
    if not function.__module__.startswith("torch_geometric."):
        ours["degree"] = utils.degree, _degree
    named, own_of = function.__globals__, dict(ours.values())
    changed = {name: own for name, (theirs, own) in ours.items() if named.get(name) is theirs}
    cells = tuple(_cell(cell, own_of) for cell in function.__closure__ or ())
    if not changed and cells == (function.__closure__ or ()):
        return function
    copied = types.FunctionType(function.__code__, {**named, **changed}, function.__name__,
                                function.__defaults__, cells)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


def _cell(cell, own_of):
    """Returns the cell, or one with our function in place of the function in it."""
    try:
        content = cell.cell_contents
    except ValueError:
        return cell  # empty
    own = own_of.get(content) if isinstance(content, types.FunctionType) else None
    return cell if own is None else types.CellType(own)


_NO_GRAD = torch.no_grad()(lambda: None)


def _one_hot(index, num_classes=None, dtype=None):
    """As torch_geometric.utils.one_hot, with the number of classes of all ranks."""
    from torch_geometric.utils import one_hot

    if num_classes is None:
        here = int(index.max()) + 1 if index.numel() else 0
        num_classes = max(counts_of_ranks("one_hot", here))
    return one_hot(index, num_classes, dtype)


def _degree(index, num_nodes=None, dtype=None):
    """As torch_geometric.utils.degree of the targets, for every slot of the current piece."""
    piece, _ = current()
    if num_nodes != piece.num_own:
        raise NotImplementedError(f"degree(..., num_nodes={num_nodes}) on a spread graph; give the "
                                  "number of rows of x, and count edges by their targets")
    ones = torch.ones(index.size(0), dtype=torch.float32, device=index.device)
    degree = ones.new_zeros(piece.num_own).scatter_add(0, index, ones)
    return piece.bring(degree).to(dtype or torch.get_default_dtype())


def _gcn_norm(edge_index, edge_weight=None, num_nodes=None, improved=False, add_self_loops=True,
              flow="source_to_target", dtype=None):
    """As torch_geometric.nn.conv.gcn_conv.gcn_norm, for edges of the current piece: degrees are those
    of the whole graph."""
    from torch_geometric.utils import add_remaining_self_loops

    piece, _ = current()
    if edge_weight is None:
        edge_weight = torch.ones(edge_index.size(1), dtype=dtype, device=edge_index.device)
    if add_self_loops:
        edge_index, edge_weight = add_remaining_self_loops(
            edge_index, edge_weight, 2.0 if improved else 1.0, piece.num_own)
    source, target = edge_index
    degree = edge_weight.new_zeros(piece.num_own).scatter_add(0, target, edge_weight)
    scale = inverse_root(degree)
    if edge_index.size(1) != piece.num_own:
        compute_on_edges(edge_index)  # on which the layer may draw dropout, too
    return edge_index, piece.bring(scale)[source] * edge_weight * scale[target]

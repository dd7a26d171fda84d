"""Rows of edges on the CPU: one row of a node for each edge, and sums of rows over edges.

Layers that compute by their own code select a row for each edge and add rows up at their targets; each is
the gradient of the other. torch adds rows one by one, in one thread. Here edges are sorted by the node
once, and all threads add (plait/kernels/edge_values.h); the bits do not depend on their number.
"""

import collections
import inspect

import torch

from plait._edges.adjacency import kept
from plait._library import ops

_LEAST_WIDTH = 8  # floats of a row, below which torch is as fast
_MOST_PARTS = 8  # slices before the dimension of nodes; a call of its own adds each slice
_MOST_ORDERS = 4  # of a piece's edges: by source and by target, with and without self-loops


class EdgeOrder:
    """The edges of a piece, sorted by the node at one end, for the last few lists of ends. Layers of several
    kinds of edges have more lists, each with a part of the edges, so their lengths are limited together.

    Args:
        edges: number of edges of the piece, one loop per node included.
    """

    def __init__(self, edges):
        self._lists = collections.OrderedDict()
        self._most = _MOST_ORDERS * edges

    def ends(self, index, nodes):
        """Returns the Ends of edges whose nodes, of 0 .. nodes - 1, are `index`, (edges,), int64; the same for
        as long as the index lives unchanged."""
        return kept(index, None, ("end", nodes, id(self)), lambda: Ends(self, index.detach(), nodes))

    def lists(self, index, nodes):
        """Returns the C++ EdgeLists. Raises ValueError for ids out of range."""
        # A layer that adds self-loops makes its index anew in each step, with the same content.
        key = ops.fingerprint(index), index.numel(), nodes
        lists = self._lists.pop(key, None)
        if lists is None:
            lists = ops.edge_lists(index, index, nodes, nodes)
        self._lists[key] = lists
        while len(self._lists) > 1 and sum(edges for _, edges, _ in self._lists) > self._most:
            self._lists.popitem(last=False)
        return lists


class Ends:
    """One end of each edge. Made by EdgeOrder.ends().

    Attributes:
        index: (edges,), int64.
        nodes: the number of nodes.
    """

    def __init__(self, order, index, nodes):
        self.index, self.nodes = index, nodes
        self._order, self._lists = order, None

    @property
    def lists(self):
        """The C++ EdgeLists, made when they are first asked for. Raises ValueError for ids out of range."""
        if self._lists is None:
            self._lists = self._order.lists(self.index, self.nodes)
        return self._lists


def take(theirs, piece, rows, index, dim):
    """Returns theirs(rows, index), rows of the nodes `index` along `dim`, with a faster gradient where there
    is one. piece: the LocalPiece on which a layer computes, or None."""
    if piece is None or not rows.requires_grad or not _is_faster(rows, index, dim):
        return theirs(rows, index)
    dim %= rows.dim()
    return _Take.apply(rows, index, dim, piece.edge_order.ends(index, rows.size(dim)))


def reduce(theirs, piece, *args, **kwargs):
    """Returns theirs(...), torch_geometric.utils.scatter of these arguments, faster for sums and means."""
    if piece is None:
        return theirs(*args, **kwargs)
    given = _SCATTER.bind(*args, **kwargs)
    given.apply_defaults()
    src, index, dim, size, kind = given.arguments.values()
    if (kind not in ("sum", "add", "mean") or size != piece.num_own or not _is_faster(src, index, dim)
            or index.numel() != src.size(dim)):
        return theirs(*args, **kwargs)
    dim %= src.dim()
    ends = piece.edge_order.ends(index, size)
    try:
        ends.lists  # noqa: B018
    except ValueError:
        return theirs(*args, **kwargs)  # whose error users know
    sums = _sum(src, index, dim, ends)
    if kind != "mean":
        return sums
    count = torch.bincount(index, minlength=size).clamp(min=1).to(src.dtype)
    return sums / count.view(-1, *[1] * (src.dim() - dim - 1))


_SCATTER = inspect.Signature([
    inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
    for name, default in (("src", inspect.Parameter.empty), ("index", inspect.Parameter.empty), ("dim", 0),
                          ("dim_size", None), ("reduce", "sum"))])


def _is_faster(rows, index, dim):
    if not (isinstance(rows, torch.Tensor) and isinstance(index, torch.Tensor)
            and rows.device.type == index.device.type == "cpu" and rows.layout == torch.strided
            and rows.dtype == torch.float32 and index.dtype == torch.int64 and index.dim() == 1
            and -rows.dim() <= dim < rows.dim()):
        return False
    dim %= rows.dim()
    return (rows.shape[dim + 1:].numel() >= _LEAST_WIDTH and rows.shape[:dim].numel() <= _MOST_PARTS
            and index.numel() > 0)


def _sum(values, index, dim, ends):
    """Returns the sums of `values` over the edges of each node, along `dim`."""
    before, after = values.shape[:dim], values.shape[dim + 1:]
    parts = values.reshape(before.numel(), index.numel(), after.numel())
    sums = [_Sum.apply(part, index, ends) for part in parts]
    return (sums[0] if len(sums) == 1 else torch.stack(sums)).view(*before, ends.nodes, *after)


class _Take(torch.autograd.Function):

    @staticmethod
    def forward(rows, index, dim, ends):
        return rows.index_select(dim, index)

    @staticmethod
    def setup_context(context, inputs, output):
        _, index, context.dim, context.ends = inputs
        context.save_for_backward(index)

    @staticmethod
    def backward(context, gradient):
        (index,) = context.saved_tensors  # an error if it has changed
        return _sum(gradient, index, context.dim, context.ends), None, None, None


class _Sum(torch.autograd.Function):
    """Of two dimensions: layers change results in place, which a view that is made here would forbid."""

    @staticmethod
    def forward(values, index, ends):
        return ops.edge_sums(ends.lists, "edge", m=values)

    @staticmethod
    def setup_context(context, inputs, output):
        _, index, context.ends = inputs
        context.save_for_backward(index)

    @staticmethod
    def backward(context, gradient):
        (index,) = context.saved_tensors
        return _Take.apply(gradient, index, 0, context.ends), None, None

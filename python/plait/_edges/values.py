"""Scores and messages of single edges by the C++ operations (plait/kernels/edge_values.h), differentiable.

None of them makes a row for each edge, unless the gradient of rows of edges is wanted.
"""

import functools

import torch

from plait._edges.adjacency import kept
from plait._library import ops


class EdgeEnds:
    """The edges from `sources` nodes to `targets` nodes.

    Args:
        edge_index: (2, E), int64. Values of edges are in its order.
        sources, targets: the numbers of nodes.

    Raises ValueError for ids out of range, or 2^31 edges or more.
    """

    def __init__(self, edge_index, sources, targets):
        # A tensor of its own: what is kept for edge_index must not keep it alive. Inference tensors do not
        # record changes.
        index = edge_index.clone() if edge_index.is_inference() else edge_index.detach()
        self._index, self._version = index, index._version
        self._sizes = sources, targets
        self.along = self._lists(self._index, 1, 0)
        self._against = None

    @property
    def against(self):
        """The same edges by their sources, made for the first gradient. Raises RuntimeError if edge_index
        was changed in place before."""
        index = self._index  # another thread may be done before this one has looked
        if self._against is None:
            if index._version != self._version:
                raise RuntimeError("edge_index, needed for the gradient of a layer that used it, has been "
                                   "modified by an inplace operation; change a copy")
            self._against, self._index = self._lists(index, 0, 1), None
        return self._against

    def _lists(self, index, end, other):
        index = index.long()
        return ops.edge_lists(index[end], index[other], self._sizes[end], self._sizes[other])


@torch.compiler.disable
def edge_ends(edge_index, sources, targets):
    """Returns the EdgeEnds of edges, kept for as long as edge_index lives unchanged."""

    with torch.inference_mode(False):
        return kept(edge_index, None, ("ends", sources, targets),
                    lambda: EdgeEnds(edge_index, sources, targets))


@torch.compiler.disable
def leaky_scores(ends, sources, targets, of_edges, factor, slope):
    """Returns, for each edge from j to i, by head k, the sum over c of
    factor[k, c] leaky_relu(targets[i, k, c] + sources[j, k, c] + of_edges[e, k, c]).

    Args:
        sources, targets: (nodes, heads, features).
        of_edges: (E, heads, features), or None.
        factor: (1, heads, features), or None: 1 everywhere, if features is 1.
        slope: of leaky_relu below 0.

    Returns (E, heads)."""
    if of_edges is None and factor is not None:
        sources, targets, factor = map(_in_fours, (sources, targets, factor))
    return _LeakyScores.apply(ends, sources, targets, of_edges, factor, slope)


@torch.compiler.disable
def dot_scores(ends, sources, targets, of_edges=None):
    """Returns, for each edge from j to i, <targets[i, k], sources[j, k] + of_edges[e, k]> by head k.
    Shapes as for leaky_scores."""
    if of_edges is None:
        sources, targets = _in_fours(sources), _in_fours(targets)
    return _DotScores.apply(ends, sources, targets, of_edges)


@torch.compiler.disable
def softmax(ends, scores):
    """Returns the softmax of (E, heads) over the edges to each target."""
    return _Softmax.apply(ends, scores)


@torch.compiler.disable
def weighted_sum(ends, sources, weights, of_edges=None):
    """Returns (targets, heads, features): the sum of weights[e, k] (sources[j, k] + of_edges[e, k]) over
    the edges from j to each target. Shapes as for leaky_scores; weights: (E, heads)."""
    rows = _in_fours(sources) if of_edges is None else sources
    y = _WeightedSum.apply(ends, rows, weights, of_edges).view(-1, *rows.shape[1:])
    return y[..., :sources.size(2)].contiguous()  # as layers take views of it


@torch.compiler.disable
def relu_sum(ends, sources, of_edges):
    """Returns (targets, width): the sum of relu(sources[j] + of_edges[e]) over the edges from j to each
    target. sources: (nodes, width); of_edges: (E, width)."""
    return _ReluSum.apply(ends, sources, of_edges)


@torch.compiler.disable
def sum_of_edges(ends, of_edges):
    """Returns (targets, width): the sum of of_edges[e], (E, width), over the edges to each target."""
    return _SumOfEdges.apply(ends, of_edges)


def _in_fours(rows):
    """Returns (nodes, heads, features) padded by zeros to four features, which a GPU reads at once."""
    missing = -rows.size(2) % 4
    if not rows.is_cuda or missing == 0 or rows.size(2) <= 2:
        return rows
    return torch.nn.functional.pad(rows, (0, missing))


def _flat(rows):
    return None if rows is None else rows.flatten(1)


class _NoSecond(torch.autograd.Function):
    """Returns the first `count` tensors; their derivative for any of the tensors is an error."""

    @staticmethod
    def forward(context, count, *tensors):
        return tensors[:count]

    @staticmethod
    def backward(context, *gradients):
        raise RuntimeError("derivatives of gradients of attention and messages by edge are not implemented; "
                           "use the layer of torch_geometric.nn for them")


def _first_derivative(backward):
    """Makes gradients whose own derivatives are an error. (torch's once_differentiable gives none, silently,
    where only saved tensors require gradients.)"""

    @functools.wraps(backward)
    def first(context, gradient):
        with torch.no_grad():
            gradients = backward(context, gradient)
        if not torch.is_grad_enabled():
            return gradients
        return _NoSecond.apply(len(gradients), *gradients, gradient, *context.saved_tensors)

    return first


class _LeakyScores(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, sources, targets, of_edges, factor, slope):
        heads = sources.size(1)
        if factor is None:
            factor = sources.new_ones(1, *sources.shape[1:])
        given = _flat(sources), _flat(targets), _flat(of_edges), _flat(factor)
        context.save_for_backward(*given)
        context.ends, context.heads, context.slope = ends, heads, slope
        b, a, m, f = given
        per_head = ops.edge_rows if sources.size(2) == 1 else ops.edge_scores
        return per_head(ends.along, "leaky", a, b, m, f, None, heads, slope)

    @staticmethod
    @_first_derivative
    def backward(context, dz):
        sources, targets, m, factor = context.saved_tensors
        ends, rest = context.ends, (context.heads, context.slope)
        wanted = context.needs_input_grad
        d_sources = d_targets = d_edges = d_factor = None
        shape = (-1, context.heads, sources.size(1) // context.heads)
        if wanted[1]:
            d_sources = ops.edge_sums(ends.against, "slope", sources, targets, m, factor, dz, *rest)
            d_sources = d_sources.view(shape)
        if wanted[2]:
            d_targets = ops.edge_sums(ends.along, "slope", targets, sources, m, factor, dz, *rest)
            d_targets = d_targets.view(shape)
        if wanted[3]:
            d_edges = ops.edge_rows(ends.along, "slope", targets, sources, m, factor, dz, *rest)
            d_edges = d_edges.view(shape)
        if wanted[4]:
            ones = torch.ones_like(factor)
            each = ops.edge_sums(ends.along, "leaky", targets, sources, m, ones, dz, *rest)
            d_factor = each.sum(0).view(shape)
        return None, d_sources, d_targets, d_edges, d_factor, None


class _DotScores(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, sources, targets, of_edges):
        given = _flat(sources), _flat(targets), _flat(of_edges)
        context.save_for_backward(*given)
        context.ends, context.heads = ends, sources.size(1)
        b, a, m = given
        return ops.edge_scores(ends.along, "product", a, b, m, None, None, context.heads)

    @staticmethod
    @_first_derivative
    def backward(context, dz):
        sources, targets, m = context.saved_tensors
        ends, heads, wanted = context.ends, context.heads, context.needs_input_grad
        d_sources = d_targets = d_edges = None
        shape = (-1, heads, sources.size(1) // heads)
        if wanted[1]:
            d_sources = ops.edge_sums(ends.against, "plus", None, targets, None, None, dz, heads)
            d_sources = d_sources.view(shape)
        if wanted[2]:
            d_targets = ops.edge_sums(ends.along, "plus", None, sources, m, None, dz, heads)
            d_targets = d_targets.view(shape)
        if wanted[3]:
            d_edges = ops.edge_rows(ends.along, "own", targets, None, None, None, dz, heads).view(shape)
        return None, d_sources, d_targets, d_edges


class _Softmax(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, scores):
        weights = ops.edge_softmax(ends.along, scores)
        context.save_for_backward(weights)
        context.ends = ends
        return weights

    @staticmethod
    @_first_derivative
    def backward(context, d_weights):
        (weights,) = context.saved_tensors
        return None, ops.edge_softmax(context.ends.along, weights, d_weights)


class _WeightedSum(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, sources, weights, of_edges):
        given = _flat(sources), _flat(of_edges)
        context.save_for_backward(*given, weights)
        context.ends = ends
        b, m = given
        context.shape = sources.shape[1:]
        # Of two dimensions: a view that is made here could not be changed in place.
        return ops.edge_sums(ends.along, "plus", None, b, m, None, weights, sources.size(1))

    @staticmethod
    @_first_derivative
    def backward(context, dy):
        sources, m, weights = context.saved_tensors
        ends, heads, wanted = context.ends, weights.size(1), context.needs_input_grad
        shape = context.shape
        d_sources = d_weights = d_edges = None
        if wanted[1]:
            d_sources = ops.edge_sums(ends.against, "plus", None, dy, None, None, weights, heads)
            d_sources = d_sources.view(-1, *shape)
        if wanted[2]:
            d_weights = ops.edge_scores(ends.along, "product", dy, sources, m, None, None, heads)
        if wanted[3]:
            d_edges = ops.edge_rows(ends.along, "own", dy, None, None, None, weights, heads)
            d_edges = d_edges.view(-1, *shape)
        return None, d_sources, d_weights, d_edges


class _ReluSum(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, sources, of_edges):
        context.save_for_backward(sources, of_edges)
        context.ends = ends
        return ops.edge_sums(ends.along, "relu", None, sources, of_edges)

    @staticmethod
    @_first_derivative
    def backward(context, dy):
        sources, m = context.saved_tensors
        against, wanted = context.ends.against, context.needs_input_grad
        d_sources = ops.edge_sums(against, "gate", sources, dy, m) if wanted[1] else None
        d_edges = ops.edge_rows(against, "gate", sources, dy, m) if wanted[2] else None
        return None, d_sources, d_edges


class _SumOfEdges(torch.autograd.Function):

    @staticmethod
    def forward(context, ends, of_edges):
        context.ends = ends
        return ops.edge_sums(ends.along, "edge", None, None, of_edges)

    @staticmethod
    @_first_derivative
    def backward(context, dy):
        return None, ops.edge_rows(context.ends.along, "own", dy)

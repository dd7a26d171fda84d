"""Fast steps of message passing, in front of the steps of PyTorch Geometric.

The code of a layer of PyTorch Geometric calls `edge_updater` for values of edges and `propagate` for sums of
messages; each gathers a row for every edge. A class with `_fast_edge_updater` or `_fast_propagate` computes
the step by edge instead (plait._edges.values), and leaves all else to the layer's own code.
"""

import functools

import torch
from torch_geometric.nn import MessagePassing, SumAggregation

from plait._edges.values import edge_ends
from plait.nn._loops import with_loops
from plait.nn._slow import Slow, left_to_theirs, refuse_if_strict, tell

_NAMES = ("propagate", "edge_updater")
_MOST_WIDTH, _MOST_HEADS = 2**16 - 1, 2**12  # of rows on a GPU


class FastSteps(MessagePassing):
    """The base of layers with fast steps. `_fast_edge_updater` and `_fast_propagate` are called as
    (edge_index, size, **arguments), with the arguments of that step in PyTorch Geometric's class. They return
    the step's result, or raise Slow before they have called a module of the layer."""

    _steps_are_fast = False  # in a copy of the layer, which lives for one call

    def reason_against_steps(self):
        """Returns why no step of the layer is fast, as it stands; None if steps can be."""
        if not any(hasattr(self, f"_fast_{name}") for name in _NAMES):
            return "no fast steps"
        if type(self.aggr_module) is not SumAggregation:
            return f"aggr={self.aggr}"
        return self._reason_against_all()

    def _slow_steps(self, x):
        """Returns why no step of a call is fast, as a Slow; None if steps can be."""
        pair = pair_of(x)
        reason = self.reason_against_steps() or self._reason_against_rows(*pair)
        if reason is None and any(rows is not None and rows.dim() != 2 for rows in pair):
            reason = "x of 3 dimensions"
        if reason is None and torch.is_autocast_enabled(pair[0].device.type):
            reason = "autocast"
        return reason and Slow(reason)

    def _run_theirs(self, given, slow_steps):
        """Runs their code, with fast steps unless there is a reason against them."""
        if slow_steps is not None:
            return self._theirs.forward(**given)
        # A copy, because other threads may call the layer. Its parts are the parts of the layer.
        conv = object.__new__(type(self))
        conv.__dict__.update(self.__dict__, _steps_are_fast=True)
        for name in _NAMES:
            conv.__dict__.pop(name, None)  # the class's own, but bound to the layer
        given = {**given, "self": conv}
        looped = None
        try:
            if getattr(self, "add_self_loops", False):
                looped = with_loops(given, pair_of(given["x"]), self.fill_value,
                                    self._plait_piece)
                conv.__dict__["add_self_loops"] = False
        except Slow as error:
            slow = Slow(error.kind, str(error))
            refuse_if_strict(self, slow)
            tell(self, slow)
            return self._theirs.forward(**{**given, "self": self})
        return without_kept(self._theirs.forward(**given), looped)

    def _ends(self, edge_index, sources, targets):
        """Returns the EdgeEnds of a step, between the rows of sources and `targets` nodes."""
        if self.flow != "source_to_target":
            raise Slow("flow", f"flow={self.flow!r}")
        plain = type(edge_index) is torch.Tensor and edge_index.layout == torch.strided
        if not plain or edge_index.dim() != 2 or edge_index.size(0) != 2 or (
                edge_index.dtype not in (torch.int64, torch.int32)):
            raise Slow("edges", "edges that are no tensor (2, E) of ids")
        if edge_index.device != sources.device:
            raise Slow("edges", f"edges on {edge_index.device}")
        if sources.is_cuda and (sources[:1].numel() > _MOST_WIDTH or sources.size(1) > _MOST_HEADS):
            raise Slow("width", f"rows of shape {tuple(sources.shape[1:])}")
        with left_to_theirs(not sources.is_cuda and self._plait_piece is None):
            return edge_ends(edge_index, sources.size(0), targets)

    def _set_jittable_templates(self, raise_on_error=False):
        super()._set_jittable_templates(raise_on_error)
        for name in _NAMES:
            if hasattr(self, f"_fast_{name}"):
                _put_in_front(type(self), name)


def _put_in_front(cls, name):
    """Puts the fast step in front of the one that PyTorch Geometric made for the class."""
    their = getattr(cls, name)
    if hasattr(their, "_is_fast"):
        return

    @functools.wraps(their)
    def step(self, edge_index, size=None, **arguments):
        if not self._steps_are_fast:
            return their(self, edge_index, size=size, **arguments)
        try:
            return getattr(self, f"_fast_{name}")(edge_index, size, **arguments)
        except Slow as error:
            slow = Slow(error.kind, str(error))
            refuse_if_strict(self, slow)
        result = their(self, edge_index, size=size, **arguments)
        tell(self, slow)
        return result

    step._is_fast = True
    setattr(cls, name, step)
    setattr(cls, f"_jinja_{name}", step)  # to which a layer returns after explanations


def without_kept(out, index):
    """Returns the result of a layer, with a copy of the edges in it if they are `index`, which is kept."""
    if index is None or not isinstance(out, tuple) or out[1][0] is not index:
        return out
    return out[0], (index.clone(), out[1][1])


def pair_of(x):
    """Returns the rows of sources and of targets, as PyTorch Geometric takes them."""
    return tuple(x) if isinstance(x, (tuple, list)) else (x, x)


def count_targets(source, target, size):
    """Returns the number of targets of a step, from rows of sources and targets and the sizes of both, as
    PyTorch Geometric finds it."""
    sources, targets = size or (None, None)
    if sources not in (None, source.size(0)) or target is not None and targets not in (None, target.size(0)):
        raise Slow("size", f"size={size!r} beside rows of another number")
    return next(n for n in (targets, None if target is None else target.size(0), source.size(0))
                if n is not None)


def features_of_edges(edge_attr, edge_index):
    """Returns (E, features) of a step's edge_attr."""
    if not isinstance(edge_attr, torch.Tensor) or edge_attr.layout != torch.strided or (
            edge_attr.dtype != torch.float32 or edge_attr.dim() != 2
            or edge_attr.size(0) != edge_index.size(1)):
        raise Slow("edge_attr", "edge_attr that is no tensor (E, D) of float32")
    return edge_attr

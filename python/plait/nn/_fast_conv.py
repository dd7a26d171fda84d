"""A fast way in front of a layer of PyTorch Geometric.

A class is derived from FastConv and from PyTorch Geometric's class, and computes a call in `_fast`. What
`_fast` cannot compute, by its options or its arguments, PyTorch Geometric's own code does, with fast steps
where the class has them (plait.nn._fast_steps). If no step is fast either, a warning names the cause
(PLAIT_STRICT=1: an error). On a graph that is spread over ranks, their code runs on the edges into own
nodes (plait._spread.conv).
"""

import copy
import functools
import inspect

import torch
from torch.autograd import forward_ad
from torch_geometric.nn import MessagePassing

from plait._edges.adjacency import NEEDS_GRAPH, kept
from plait._edges.inputs import UnsupportedType, as_tensor, is_torch_sparse
from plait._spread.conv import spread_convolution, why_not_spread
from plait._spread.dropout import graph_of_model
from plait.graph import Graph
from plait.nn._fast_steps import FastSteps, pair_of, without_kept
from plait.nn._neighbours import edges_of, neighbours, reason_against
from plait.nn._slow import Slow, left_to_theirs, refuse_if_strict, refuse_mixed_types, tell
from plait.reduce import require_shared
from plait.world import world_size

_STEPS = ("message", "aggregate", "message_and_aggregate", "update", "edge_update", "edge_updater",
          "propagate", "_check_input", "_lift", "_index_select")
_HOOKS = tuple(f"_{step}_forward_{when}hooks" for when in ("", "pre_")
               for step in ("propagate", "message", "aggregate", "message_and_aggregate", "edge_update"))

__all__ = ["FastConv"]  # PyTorch Geometric's templates import all names of this module


class FastConv(FastSteps):
    """The base of layers with a fast way. A derived class has PyTorch Geometric's class as its second
    base. It has the method `_fast` with the arguments of that class's forward, or fast steps, or both.
    `_fast` returns the result, or raises Slow; edges that are wrong raise ValueError."""

    _plait_piece = None  # of a spread graph, on which their own code computes now
    _uses_weights = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if FastConv in cls.__bases__:
            cls._theirs = cls.__bases__[1]
            cls._signature = inspect.signature(cls._theirs.forward)
            # Not what PyTorch Geometric has made of its class's, which cannot be explained.
            cls.propagate, cls.edge_updater = MessagePassing.propagate, MessagePassing.edge_updater
            cls._steps = {name: getattr(cls, name) for name in _STEPS}
            cls._their_forward = cls._theirs.forward

            @functools.wraps(cls._theirs.forward)
            def forward(self, *args, **kwargs):
                try:
                    return self._forward(*args, **kwargs)
                except UnsupportedType as error:
                    raise self._in_their_type(error, args, kwargs) from None
                except RuntimeError as error:
                    refuse_mixed_types(self, args[0] if args else kwargs.get("x"), error)
                    raise

            cls.forward = forward

    def _in_their_type(self, error, args, kwargs):
        """Returns the error about an argument that is no tensor, of the type of the error that PyTorch Geometric's own
        code raises for it."""
        if world_size() > 1:
            return error
        try:
            self._theirs.forward(self, *args, **kwargs)
        except (AssertionError, AttributeError, TypeError, ValueError) as theirs:
            return type(theirs)(str(error))
        except Exception:
            pass
        return error

    def reason_against(self):
        """Returns why `_fast` computes no call of the layer, as it stands; None if it can."""
        return self._reason_against_all() if hasattr(self, "_fast") else "messages that are no weighted rows"

    def _reason_against_all(self):
        """Returns why only PyTorch Geometric's own code computes the layer; None if there is no reason."""
        if _has_own_steps(self):
            return "messages of your own"
        if any(getattr(self, hooks) for hooks in _HOOKS):
            return "hooks within message passing"
        if self.explain:
            return "explanations"
        if self.decomposed_layers != 1:
            return "decomposed_layers"
        if self.node_dim not in (-2, 0):
            return "node_dim"
        return reason_against(self.aggr_module)

    def _reason_against_rows(self, *pair):
        """Returns why only PyTorch Geometric's own code takes such rows; None if there is no reason."""
        if len(pair) != 2:
            return f"x of {len(pair)} tensors"
        if torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0:
            return "torch.func or forward-mode derivatives"
        for rows in pair if pair[1] is not None else pair[:1]:
            if not isinstance(rows, torch.Tensor):
                return f"x as a {type(rows).__name__}"
            if type(rows).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return f"x as a {type(rows).__name__}"  # without data of its own, as a FakeTensor
            if rows.layout != torch.strided:
                return "sparse x"
            if rows.device.type not in ("cpu", "cuda"):
                return f"x on {rows.device.type}"
            lowered = rows.dtype in (torch.float16, torch.bfloat16)
            if rows.dtype != torch.float32 and not (lowered and torch.is_autocast_enabled(rows.device.type)):
                return f"x of {rows.dtype}"
            if rows.dim() != 2 and not (rows.dim() == 3 and self.node_dim == -2):
                return f"x of {rows.dim()} dimensions"
        return None

    def _forward(self, *args, **kwargs):
        try:
            given = self._signature.bind(self, *args, **kwargs).arguments
        except TypeError:
            return self._theirs.forward(self, *args, **kwargs)  # tells the mistake
        if self._plait_piece is not None:
            return self._run_theirs(given, self._slow_steps(given["x"]))
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            return self._theirs.forward(**given)
        x, edge_index = given["x"], given["edge_index"]
        if world_size() == 1 and _is_for_theirs(edge_index, given.get("size")):
            return self._theirs.forward(**given)
        if world_size() > 1:
            require_shared(self)
            if not isinstance(edge_index, Graph):
                raise ValueError(NEEDS_GRAPH)
        if not isinstance(x, (tuple, list)):
            given["x"] = x = as_tensor("x", x, "give one tensor (N, in_channels)")
        try:
            reason = self.reason_against() or self._reason_against_rows(*pair_of(x))
            if reason:
                raise Slow(reason)
            return self._fast(**{name: value for name, value in given.items() if name != "self"})
        except Slow as error:
            slow = Slow(error.kind, str(error))  # without the traceback, which holds x
        return self._slow(slow, given)

    def _slow(self, slow, given):
        steps = self._slow_steps(given["x"])
        if steps is not None:
            slow = steps if hasattr(type(self), "_fast_propagate") else slow
            refuse_if_strict(self, slow)
        source = given["edge_index"]
        if world_size() > 1 or isinstance(source, Graph) and graph_of_model() is not None:
            result = self._on_piece(slow, given)
        else:
            rows = next(iter(pair_of(given["x"])), None)
            if not _is_theirs(source):
                edges = edges_of(source, given.get("edge_weight"))
                if isinstance(source, Graph) and isinstance(rows, torch.Tensor) and rows.dim() > 1:
                    source.check_rows(rows.size(self.node_dim))
                source = edges.index
                if "edge_weight" in self._signature.parameters:
                    given["edge_weight"] = _on_device_of(rows, edges.weight)
            if _is_uncoalesced(source):
                source = source.detach()  # their code may mark it as coalesced, though it is not
            source = _on_device_of(rows, source)
            result = self._run_theirs({**given, "edge_index": source}, steps)
            result = without_kept(result, None if source is given["edge_index"] else source)
        if steps is not None:
            tell(self, slow)
        return result

    def _on_piece(self, slow, given):
        """Runs their code on the edges into own nodes of a spread graph."""
        refused = why_not_spread(self)
        if getattr(type(self), "_is_spread", False):
            refused = "forward is given no plait.Graph by name"
        if refused:
            raise NotImplementedError(f"{type(self).__name__} with {slow}: on a spread graph: {refused}")
        fast = type(self)
        spread_convolution(self)
        try:
            return type(self).forward(**given)
        finally:
            self.__class__ = fast

    def _neighbours(self, x, edge_index, edge_weight=None, size=None, loop_weights=None):
        """Returns the plait.nn._neighbours.Neighbours of a call."""
        with their_errors(x, edge_index):
            found = neighbours(self, x, edge_index, edge_weight, size, loop_weights)
        reason = found.weighted and reason_against(self.aggr_module, found)
        if reason:
            raise Slow(reason)
        return found

    def _set_jittable_templates(self, raise_on_error=False):
        self.inspector._source_dict = _NothingKept()
        super()._set_jittable_templates(raise_on_error)

    def __prepare_scriptable__(self):
        """Returns the layer of PyTorch Geometric with the same state, for torch.jit.script."""
        if FastConv not in type(self).__bases__:
            raise NotImplementedError(
                f"torch.jit.script of {type(self).__name__}, which is derived from plait.nn."
                f"{self._theirs.__name__}; derive it from torch_geometric.nn.{self._theirs.__name__}")
        plain = copy.copy(self)
        plain.__class__ = self._theirs
        plain.__dict__.pop("propagate", None)  # of our class, which decomposed_layers may have set
        plain._set_jittable_templates(raise_on_error=True)
        return plain


def their_errors(x, edge_index):
    """Lets PyTorch Geometric's own code tell what is wrong with its forms of edges."""
    return left_to_theirs(world_size() == 1 and _is_theirs(edge_index) and not _on_gpu(x))


class _NothingKept(dict):
    """Sources of classes. PyTorch Geometric's inspector keeps them by the class's name, which its class
    and ours share."""

    def __contains__(self, name):
        return False


def _has_own_steps(conv):
    """Returns whether a step of message passing was replaced: in a class derived from ours, in one of
    PyTorch Geometric's, or in the layer itself."""
    cls, own = type(conv), vars(conv)
    if "_is_spread" in vars(cls):
        cls = cls.__base__
    if cls._theirs.forward is not cls._their_forward:
        return True
    for name, plain in cls._steps.items():
        step = getattr(own[name], "__func__", own[name]) if name in own else getattr(cls, name)
        if step is not plain and not _is_made(cls, name, step):
            return True
    return False


def _is_made(cls, name, step):
    """Returns whether PyTorch Geometric made this step of a class from its template."""
    module = getattr(step, "__module__", None)
    return any(module == f"{each.__module__}_{each.__name__}_{name}" for each in cls.__mro__)


def _is_theirs(edge_index):
    """Returns whether PyTorch Geometric's own code takes such edges."""
    return isinstance(edge_index, torch.Tensor) or is_torch_sparse(edge_index)


def _is_for_theirs(edge_index, size):
    """Returns whether edges are of a device, or sizes of a form, about which PyTorch Geometric's own code decides."""
    is_pair = size is None or isinstance(size, (tuple, list)) and len(size) == 2
    return not is_pair or isinstance(edge_index, torch.Tensor) and edge_index.device.type not in ("cpu", "cuda")


def _is_uncoalesced(edge_index):
    return (isinstance(edge_index, torch.Tensor) and edge_index.layout == torch.sparse_coo
            and not edge_index.is_coalesced() and not edge_index.requires_grad)


def _on_device_of(rows, tensor):
    """Returns edges where the rows are; a copy is kept for as long as the tensor lives unchanged."""
    if type(tensor) is not torch.Tensor or not isinstance(rows, torch.Tensor) or tensor.device == rows.device:
        return tensor
    with torch.inference_mode(False):
        return kept(tensor, None, ("on", rows.device), lambda: tensor.to(rows.device))


def _on_gpu(x):
    return any(isinstance(rows, torch.Tensor) and rows.is_cuda for rows in pair_of(x))

"""Dropout that draws random numbers by node, so that the result does not depend on which rank has
which nodes (see plait/kernels/dropout.h)."""

import hashlib

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from plait._draws import current_source, exchange_source
from plait._library import ops
from plait._spread.computing import current, has_stacks, is_preparing, refuse_other_nodes
from plait.world import numbers_of_ranks, world_size


def graph_of_model():
    """Returns the plait.Graph with which a spread model computes in this thread, or None."""
    mode = current_source()
    return None if mode is None else mode._graph


def is_apart():
    """Returns whether a model that is spread over several ranks computes in this thread by this process alone. It
    must not change then: each rank has the same weights and buffers."""
    mode = current_source()
    return mode is not None and mode._is_apart


class VertexDropout(TorchFunctionMode):
    """Within this mode, torch.nn.functional.dropout of tensors with one row per own node of the
    graph is a function of the seed, the step, the number of earlier calls in the step, and the
    nodes' ids. Other random functions that work by row are refused."""

    _MOST_CALLS = 256

    def __init__(self, graph, seed, model_calls, is_apart=False):
        """`model_calls`: plait.parallel.ModelCalls. `is_apart`: whether the graph's model is spread over several ranks,
        but computes on this one alone."""
        super().__init__()
        self._graph, self._seed, self._model_calls, self._is_apart = graph, seed, model_calls, is_apart
        self._steps = {}  # by device
        self._calls = 0
        self._is_agreed = False  # all ranks draw for the same call

    def __enter__(self):
        self._outer = exchange_source(self)
        return super().__enter__()

    def __exit__(self, *error):
        exchange_source(self._outer)
        return super().__exit__(*error)

    def draw(self, device):
        """As draw(). Collective on several ranks: the owner of a row draws again, in the step backward, what the
        readers of the row have drawn, so ranks compare their calls. Raises ValueError, on every rank, if they differ."""
        if not self._is_agreed and world_size() > 1:
            self._compare_calls()
            self._is_agreed = True
        text = f"{self._seed} {self._next_call()}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
        return seed, self._step(device)

    def _compare_calls(self):
        """Raises ValueError, on every rank, if ranks have called the model differently often, as where a call has
        failed on one. All of them count alike from then on."""
        calls = self._model_calls
        counts, compared = numbers_of_ranks("dropout of attention in a model in training", calls.steps.calls,
                                            float(calls.compared))
        uneven = [(numbers, how) for numbers, how in ((counts, "in training"), (compared, "in training with gradients"))
                  if min(numbers) < max(numbers)]
        if not uneven:
            return
        calls.catch_up(max(counts), int(max(compared)))
        numbers, how = uneven[0]
        most, least = max(numbers), min(numbers)
        raise ValueError(f"rank {numbers.index(most)} has called the model {int(most)} times {how}, but rank "
                         f"{numbers.index(least)} {int(least)} times; leave this batch out on every rank: from the next "
                         "call on, all count alike")

    def _step(self, device):
        if device not in self._steps:
            self._steps[device] = self._model_calls.steps.on(device)
        return self._steps[device]

    def _next_call(self):
        if self._calls == self._MOST_CALLS:
            raise NotImplementedError(f"more than {self._MOST_CALLS} dropouts in one call")
        self._calls += 1
        return self._calls - 1

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._drop(*args, **kwargs)
        if func is torch.dropout:
            return self._drop(*args, **_renamed(kwargs, "train", "training"))
        if func in _OTHER_KINDS and _is_training(*args, **kwargs):
            raise NotImplementedError(
                f"{func.__name__} is not supported in a spread model, because ranks would draw "
                "differently; use torch.nn.functional.dropout"
            )
        if func in _SCATTERING:
            dim = args[1] if len(args) > 1 else kwargs.get("dim")
            refuse_other_nodes(args[0] if args else kwargs["input"], dim)
        result = func(*args, **kwargs)
        if func in _COUNTING or func in _PUTTING and (kwargs.get("accumulate") or len(args) > 3 and args[3]):
            refuse_other_nodes(result, 0)
        return result

    def _drop(self, input, p=0.5, training=True, inplace=False):
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability is {p}, but must be in 0..1")
        if not training or p == 0:
            return input
        by_node = input.transpose(0, 1) if has_stacks(input) else input
        vertices = self._ids_of_rows(by_node)
        rows = by_node.flatten(1) if input.dim() > 1 else input.unsqueeze(1)
        call = self._next_call()
        if p == 1:
            dropped = rows * 0
        else:
            step = self._step(rows.device)
            dropped = ops.drop_by_vertex(rows, vertices, self._seed, p, step, call)
        dropped = dropped.view(by_node.shape)
        dropped = dropped if by_node is input else dropped.transpose(0, 1)
        return input.copy_(dropped) if inplace else dropped

    def _ids_of_rows(self, input):
        """Returns a number for each row, which keys its draw: the number of a node, or where a layer sends
        messages, the number of an edge."""
        rows = input.size(0) if input.dim() > 0 else -1
        piece, edges = current()
        # Numbers that a layer prepares for edges, such as weights, have one dimension; nodes have rows.
        if edges is not None and rows == edges.size(1) and (input.dim() == 1 or not is_preparing()):
            return piece.edge_ids(edges)
        vertices = self._graph.vertices_on(input.device)
        if rows != vertices.numel():
            raise NotImplementedError(
                f"dropout of a tensor of shape {tuple(input.shape)}: in a spread model it must "
                f"have a row for each of this rank's {vertices.numel()} nodes"
            )
        return vertices


def _renamed(kwargs, old, new):
    return {new if name == old else name: value for name, value in kwargs.items()}


def _is_training(input, p=0.5, training=False, inplace=False, train=False):
    return training or train


# All these functions take (input, p, training or train, ...).
_OTHER_KINDS = {
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    torch.alpha_dropout,
    torch.feature_dropout,
    torch.feature_alpha_dropout,
    torch.dropout_,
    torch.alpha_dropout_,
    torch.feature_dropout_,
    torch.feature_alpha_dropout_,
}



def _of_both(*names):
    return {getattr(of, name) for of in (torch, torch.Tensor) for name in names if hasattr(of, name)}


# All these functions take (tensor to add to, dim, index, ...).
_SCATTERING = _of_both("index_add", "index_add_", "index_reduce", "index_reduce_", "scatter", "scatter_",
                       "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_")
_COUNTING = _of_both("bincount")
_PUTTING = _of_both("index_put", "index_put_")  # (tensor to add to, indices, values, accumulate)

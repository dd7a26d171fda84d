"""Sums and means over the rows of all ranks, and the flow of gradients through them.

There are two kinds of tensors: tensors that are the same on every rank (weights, a loss) and tensors
with each rank's own rows on that rank (features, scores). `sum` and `mean` turn the second kind into the
first; a row's gradient then needs no data of other ranks. Using weights turns the first kind into
the second: `of_all_ranks` sums the contributions of all ranks' rows to the weights' gradients.

A gradient that passes one of the two without the other would come from one rank's rows only. On
several ranks this is an error: each backward pass looks at all paths from the loss to the weights. It
cannot see whether the loss itself is the same on every rank: a sum over ranks that is then multiplied
by a number of this rank alone gives gradients that differ.
"""

import zlib

import torch
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakIdKeyDictionary

from plait._library import ops
from plait.world import agree, all_reduce, require_ranks, world_size


_REMEDY = (
    "make it part of the model, and name the methods that use it: "
    'plait.parallelize(model, data, methods=("forward", ...))'
)


def sum(values):
    """Returns the sum of all elements on all ranks, a scalar that is the same on each;
    differentiable.

    Args:
        values: a tensor of any shape, which may differ between ranks; the sum of bools and integers
            is exact, an int64.

    Raises TypeError for anything but a tensor of real numbers, and OverflowError, on every rank, for
    a sum of integers outside int64.
    """
    _require_real(values, "plait.sum")
    if not values.is_floating_point():
        return _exact_sum(values)
    return _SumOverRanks.apply(_checked(values), False)


def mean(values):
    """Returns the mean of all elements on all ranks, a scalar that is the same on each;
    differentiable.

        loss = plait.mean(F.cross_entropy(out[mask], y[mask], reduction="none"))
        accuracy = plait.mean(out.argmax(1)[mask] == y[mask])

    Every element has the same weight, so the result is the mean that one rank with all rows would
    compute. Raises TypeError for anything but a tensor of real numbers, and ValueError if no rank has
    any element.
    """
    _require_real(values, "plait.mean")
    if values.dim() == 0:
        raise ValueError(
            "plait.mean takes the values of all own rows, not their mean; pass "
            'reduction="none" to the loss'
        )
    if values.dtype in _WIDE_UNSIGNED:
        values = values.double()  # PyTorch cannot sum these
    return _SumOverRanks.apply(_checked(values), True)


def require_shared(layer):
    """Refuses, on several ranks, weights whose gradient would come from this rank's rows only."""
    if world_size() == 1 or not torch.is_grad_enabled():
        return
    for name, parameter in layer.named_parameters():
        if isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad:
            raise RuntimeError(
                f"{type(layer).__name__}: the gradient of {name} would be of this rank's rows "
                f"alone; {_REMEDY}"
            )


def of_all_ranks(parameters, frozen=()):
    """Returns the same values; their gradients are summed over ranks, all at once. `frozen`: names
    of the model's other parameters, the same on every rank."""
    return _ShareGradients.apply(tuple(frozen), *parameters)


_WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def _require_real(values, name):
    if not isinstance(values, torch.Tensor):
        kind = type(values).__name__
        raise TypeError(f"{name} takes a tensor, not a {kind}; use torch.as_tensor")
    if values.is_complex():
        raise TypeError(f"{name} takes real numbers, not {values.dtype}; sum .real and .imag")


def _exact_sum(values):
    """Sums integers, on the host, where a lost rank raises an error: integers have no NaN. Numbers
    of 64 bits are summed by their upper and lower halves, so that no sum of one rank overflows."""
    call = f"plait.sum of {values.dtype}"
    if values.dtype in (torch.int64, torch.uint64):
        bits = values.detach().view(torch.int64)
        upper, lower = bits >> 32, bits & 0xFFFFFFFF
        if values.dtype == torch.uint64:
            upper = upper & 0xFFFFFFFF
        total = (agree(call, _read(upper.sum()))[0] << 32) + agree(call, _read(lower.sum()))[0]
    else:
        total, _ = agree(call, _read(values.detach().long().sum()))
    if not -(2**63) <= total < 2**63:
        raise OverflowError(f"plait.sum: the sum over all ranks, {total}, is outside of int64")
    return torch.tensor(total, device=values.device)


def _read(number):
    """Returns a number of a GPU on the host, where a GPU that stands still raises an error."""
    ops.wait_for(number)
    return int(number)


class _SumOverRanks(torch.autograd.Function):
    """Computes the sum over ranks, or the mean."""

    @staticmethod
    def forward(context, values, is_mean):
        call = f"plait.{'mean' if is_mean else 'sum'} of {values.dtype} on {values.device.type}"
        total = values.sum(dtype=torch.float64)
        if values.is_cuda:
            # Hosts meet for the count alone, and compare their calls with it.
            count = agree(call, values.numel())[0] if is_mean else None
            total = all_reduce(total, "" if is_mean else call)
        else:
            count, total = agree(call, values.numel(), total.item())
            total = torch.tensor(total, dtype=torch.float64)
        if is_mean and count == 0:
            raise ValueError("plait.mean was given no values on any rank; does a mask select none?")
        context.shape, context.count = values.shape, count if is_mean else 1
        total = total / context.count
        if values.is_floating_point():
            return total.to(values.dtype)
        return total.float()

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        _backward.enter()
        return (gradient / context.count).expand(context.shape), None


class _ShareGradients(torch.autograd.Function):
    @staticmethod
    def forward(context, frozen, *parameters):
        context.set_materialize_grads(False)  # unused parameters get no gradient
        context.ranks = world_size()
        context.like = [(p.shape, p.dtype, p.device) for p in parameters]
        context.used_before = _used_before.setdefault(parameters[0], {}) if parameters else {}
        context.call = f"gradients of {len(parameters)} parameters"
        if frozen:
            names = ", ".join(frozen)  # ranks compare the beginning of this text
            context.call += f", not of {len(frozen)} ({zlib.crc32(names.encode()):08x}): {names}"
        return tuple(p.view_as(p) for p in parameters)

    @staticmethod
    @once_differentiable
    def backward(context, *gradients):
        if context.ranks == 1:
            return None, *gradients
        require_ranks(context.ranks, "the model was called")
        if _backward.is_of_own_rows():
            raise RuntimeError(
                "the loss, or a part of it, is of this rank's rows alone, so its gradients would "
                'be wrong; use plait.mean(F.cross_entropy(out, y, reduction="none")), or '
                "plait.sum, for each part"
            )
        return None, *_sum_gradients(gradients, context)


def _sum_gradients(gradients, context):
    """Returns the sums of the gradients over ranks; None if no rank has a gradient. Every rank sums
    equally many numbers: zeros for a gradient that it lacks, and 1 or 0 for having it or not."""
    like = context.like
    has = tuple(g is not None for g in gradients)
    flat = [
        torch.zeros(shape.numel(), dtype=dtype, device=device) if g is None else g.to_dense().flatten()
        for g, (shape, dtype, device) in zip(gradients, like)
    ]
    counts = _counts(has, flat[0].device)
    total = all_reduce(torch.cat([counts, *flat]), context.call)
    counts, *sums = total.split([len(flat), *(f.numel() for f in flat)])
    used = _used(has, counts, context.used_before)
    return [s.view(shape) if u else None for s, u, (shape, _, _) in zip(sums, used, like)]


def _counts(has, device):
    """Returns 1 for each gradient that this rank has and 0 for others. Kernels write the numbers: a step under
    capture must neither copy them from the host nor read memory that may be freed before a replay."""
    counts = torch.ones(len(has), device=device)
    for i in (i for i, there in enumerate(has) if not there):
        counts[i] = 0
    return counts


# The gradients that any rank has, by the gradients that this rank has, for steps under capture. Each
# model, for which its first parameter stands, has its own.
_used_before = WeakIdKeyDictionary()


def _used(has, counts, before):
    """Returns which gradients any rank has. If some are missing here, the sums tell, and on a GPU
    the host waits for them. A step under capture cannot wait and does as the last one before."""
    if all(has):
        return has
    if counts.is_cuda and torch.cuda.is_current_stream_capturing():
        if has not in before:
            raise RuntimeError("a step is captured whose gradients have not been summed before; do a "
                               "few steps before capturing")
        return before[has]
    before[has] = tuple((counts > 0).tolist())
    return before[has]


class _Backward:
    """Knows the current backward pass, which has a number that all of its threads share."""

    def __init__(self):
        self._entered = self._begun = None

    def enter(self):
        """Notes that the pass has come through plait.sum or plait.mean."""
        self._entered = torch._C._current_graph_task_id()
        if ops.backward_begins_here():
            self._begun = self._entered

    def is_of_own_rows(self):
        """Returns whether a path without a sum over ranks leads from the loss to the node that asks."""
        now = torch._C._current_graph_task_id()
        if self._begun == now:
            return False
        return self._entered != now or ops.backward_bypasses(_SumOverRanks._backward_cls.__name__)


_backward = _Backward()


_summing = [_ShareGradients._backward_cls]


def sums_over_ranks(function):
    """Notes that the gradients of this torch.autograd.Function for weights are sums over ranks."""
    _summing.append(function._backward_cls)


def _checked(values):
    """Returns the values. On several ranks it refuses values that depend on a weight that is not
    shared, because the weight's gradient would come from own rows only."""
    if world_size() == 1 or not values.requires_grad:
        return values
    seen, ahead = set(), [values.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen or isinstance(node, tuple(_summing)):
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.nn.Parameter):
            raise RuntimeError(
                f"a parameter of shape {tuple(leaf.shape)} was used outside the model that "
                "plait.parallelize returned, so that its gradient would be of this rank's rows "
                f"alone; {_REMEDY}"
            )
        ahead += [after for after, _ in node.next_functions]
    return values

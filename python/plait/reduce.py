"""Sums and means over the rows of all ranks, and how gradients go through them.

Two kinds of tensors are told apart: those that are the same on every rank (weights, a loss) and
those of which a rank has its own rows (features, scores). `sum` and `mean` lead from the second
kind to the first, and a row's gradient needs nothing of other ranks then. Weights lead from the
first to the second: `of_all_ranks` adds up what the rows of each rank contribute to their
gradients.

Where a gradient passes one of the two without the other, it would be of one rank's rows alone. That
is an error, on several ranks.
"""

import torch
from torch.autograd.function import once_differentiable

from plait.world import all_reduce, world_size


_REMEDY = (
    "make it part of the model, and name the methods that use it: "
    'plait.parallelize(model, data, methods=("forward", ...))'
)


def sum(values):
    """The sum of all elements on all ranks, a scalar that is the same on each; differentiable.

    Args:
        values: any shape, which may differ between ranks; of bools and integers, the exact count.
    """
    return _Sum.apply(_checked(values), None)


def mean(values):
    """The mean of all elements on all ranks, a scalar that is the same on each; differentiable.

        loss = plait.mean(F.cross_entropy(out[mask], y[mask], reduction="none"))
        accuracy = plait.mean(out.argmax(1)[mask] == y[mask])

    Ranks count by their numbers of elements, so it is what one rank with all rows would find.
    Raises ValueError where no rank has any.
    """
    if values.dim() == 0:
        raise ValueError(
            "plait.mean takes the values of all own rows, not their mean; pass "
            'reduction="none" to the loss'
        )
    count = all_reduce(torch.tensor([values.numel()], dtype=torch.float64)).item()
    if count == 0:
        raise ValueError("plait.mean was given no values on any rank; does a mask select none?")
    return _Sum.apply(_checked(values), count)


def require_shared(layer):
    """Refuses to use, on several ranks, weights that get a gradient of this rank's rows alone."""
    if world_size() == 1 or not torch.is_grad_enabled():
        return
    for name, parameter in layer.named_parameters():
        if isinstance(parameter, torch.nn.Parameter) and parameter.requires_grad:
            raise RuntimeError(
                f"{type(layer).__name__}: the gradient of {name} would be of this rank's rows "
                f"alone; {_REMEDY}"
            )


def of_all_ranks(parameters):
    """The same values, through which gradients are summed over ranks: at once for all of them."""
    return _ShareGradients.apply(*parameters)


class _Sum(torch.autograd.Function):
    """The sum over ranks, divided by `count` if there is one."""

    @staticmethod
    def forward(context, values, count):
        context.shape, context.count = values.shape, count
        total = values.sum(dtype=torch.float64)
        if count is None and not values.is_floating_point():
            # On the host, where the loss of a rank is an error: whole numbers have no NaN.
            return all_reduce(total.cpu()).long().to(values.device)
        total = all_reduce(total)
        if count is not None:
            total = total / count
        if values.is_floating_point():
            return total.to(values.dtype)
        return total.float()

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        _backward.enter()
        return (gradient / (context.count or 1)).expand(context.shape), None


class _ShareGradients(torch.autograd.Function):
    @staticmethod
    def forward(context, *parameters):
        context.set_materialize_grads(False)  # what is not used gets no gradient
        return tuple(p.view_as(p) for p in parameters)

    @staticmethod
    @once_differentiable
    def backward(context, *gradients):
        if world_size() == 1:
            return gradients
        if not _backward.entered():
            raise RuntimeError(
                "the loss is of this rank's rows alone, so its gradients would be wrong; use "
                'plait.mean(F.cross_entropy(out, y, reduction="none")), or plait.sum'
            )
        mine = [g for g in gradients if g is not None]
        flat = all_reduce(torch.cat([g.flatten() for g in mine]))
        parts = iter(flat.split([g.numel() for g in mine]))
        return tuple(g if g is None else next(parts).view(g.shape) for g in gradients)


class _Backward:
    """Whether the backward pass under way has come through plait.sum or plait.mean. It has a number
    that all its threads know."""

    def __init__(self):
        self._entered = None

    def enter(self):
        self._entered = torch._C._current_graph_task_id()

    def entered(self):
        return self._entered == torch._C._current_graph_task_id()


_backward = _Backward()


def _checked(values):
    """The values. Refused on several ranks: where a weight that is not shared was used on own rows,
    because its gradient would be of those alone."""
    if world_size() == 1 or not values.requires_grad:
        return values
    seen, ahead = set(), [values.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen or isinstance(node, _ShareGradients._backward_cls):
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

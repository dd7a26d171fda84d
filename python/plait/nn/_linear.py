"""Products with weights, before or after rows of neighbours are reduced."""

import torch
from torch_geometric.nn.dense.linear import Linear, is_uninitialized_parameter

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _settle(lin, x):
    """Lets a lazy linear map become a plain one, of the width of x, so that its first product is
    computed in the same way as all later ones."""
    if is_uninitialized_parameter(getattr(lin, "weight", None)):
        lin(x[:0])


def linear_of_neighbours(lin, x, reduce, linear=True, sums_first=False):
    """Returns lin(reduce(x)), reducing the narrower rows: a reduction that is `linear` may come after
    the product with the weight, which adds the bias once.

    Args:
        lin: a linear map, perhaps lazy, with hooks or another module in its place.
        x: (..., N, width).
        reduce: a function of (..., N, any width) that returns (..., M, that width).
        sums_first: False: where lin is no plain product, returns reduce(lin(x)) instead of
            lin(reduce(x)).
    """
    if not linear:
        return lin(reduce(x))
    _settle(lin, x)
    if not _is_plain(lin):
        return lin(reduce(x)) if sums_first else reduce(lin(x))
    outputs, inputs = lin.weight.shape
    if outputs > inputs:
        return lin(reduce(x))
    y = _product_and_sum(x, lin.weight, reduce)
    return y if lin.bias is None else y + lin.bias


def _product_and_sum(x, weight, reduce):
    """Returns reduce(x W^T). Rows are padded by columns of 0 to a multiple of 16 bytes, at which
    products and sums are fastest, and the padding is cut off again."""
    width = weight.size(0)
    missing = -width % 4 if width > 2 else 0
    if missing:
        weight = torch.nn.functional.pad(weight, (0, 0, 0, missing))
    y = reduce(torch.nn.functional.linear(x, weight))
    return y[..., :width].contiguous() if missing else y


def _is_plain(lin):
    """Returns whether a call of the linear map is just the product with its weight: it has no hooks
    (as pruning adds), no parametrization, and no wrapper in its place."""
    return type(lin) in (torch.nn.Linear, Linear) and not any(getattr(lin, name) for name in _HOOKS)

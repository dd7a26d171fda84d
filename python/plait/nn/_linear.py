"""Products with weights, before or after rows of neighbours are reduced."""

import torch
from torch_geometric.nn.dense.linear import Linear, is_uninitialized_parameter

from plait.nn._bare import is_bare


def linear_of_neighbours(lin, x, reduce, linear=True, sums_first=False):
    """Returns reduce(lin(x)), or with `sums_first` lin(reduce(x)). Where the two are equal, the narrower
    rows are reduced.

    Args:
        lin: a linear map, perhaps lazy, with hooks or another module in its place.
        x: (..., N, width).
        reduce: a function of (..., N, any width) that returns (..., M, that width).
        linear: whether the reduction is linear.
    """
    if linear:
        _settle(lin, x)
    if not linear or not _is_product(lin, x) or not (sums_first or lin.bias is None):
        return lin(reduce(x)) if sums_first else reduce(lin(x))
    outputs, inputs = lin.weight.shape
    # At equal widths, rows that need no gradient are reduced once; their product would be reduced
    # backward too.
    if outputs > inputs or outputs == inputs and not x.requires_grad:
        return lin(reduce(x))
    y = _product_and_sum(x, lin.weight, reduce)
    return y if lin.bias is None else y + lin.bias


def _settle(lin, x):
    """Lets a lazy linear map become a plain one, of the width of x, so that its first product is
    computed in the same way as all later ones."""
    if is_uninitialized_parameter(lin._parameters.get("weight")) and is_bare(lin, but=1):
        lin(x[:0])


def _product_and_sum(x, weight, reduce):
    """Returns reduce(x W^T). Rows are padded by columns of 0 to a multiple of 16 bytes, at which
    products and sums are fastest, and the padding is cut off again."""
    width = weight.size(0)
    missing = -width % 4 if width > 2 else 0
    if missing:
        weight = torch.nn.functional.pad(weight, (0, 0, 0, missing))
    y = reduce(torch.nn.functional.linear(x, weight))
    return y[..., :width].contiguous() if missing else y


def _is_product(lin, x):
    """Returns whether a call of the linear map is just the product with its weight, in float32."""
    if type(lin) not in (torch.nn.Linear, Linear) or not is_bare(lin):
        return False
    return not torch.is_autocast_enabled(x.device.type)

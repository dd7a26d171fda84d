"""Indices of rows, as torch_geometric.data.TensorAttr has them."""

import operator

import torch

from plait._edges.ids import check_ids


def checked_index(name, index, rows):
    """Returns the ids of the rows that an index means: None for all, an int for one row without its dimension,
    or a tensor (n,) of integers. Raises ValueError that names the first wrong id, and TypeError for other types.

    Args:
        name: of the tensor, for messages.
        rows: the number of its rows.
    """
    if index is None or (isinstance(index, slice) and index == slice(None)):
        return None
    if isinstance(index, slice):
        part = range(rows)[index]
        return torch.arange(part.start, part.stop, part.step) if part else torch.empty(0, dtype=torch.long)
    try:
        if hasattr(index, "__len__") and not isinstance(index, str) and getattr(index, "ndim", 1) > 0:
            ids = torch.as_tensor(index)
            return _checked_ids(name, ids if ids.dim() != 1 or len(ids) > 0 else ids.long(), rows)
        number = operator.index(None if isinstance(index, bool) else index)
    except (TypeError, RuntimeError):
        raise TypeError(f"{name}: the index is a {type(index).__name__}; give None, an integer, a slice, or a tensor "
                        "of integers or bools") from None
    if not 0 <= number < rows:
        raise ValueError(f"{name}: the index is {number}, outside 0..{rows - 1}; correct it")
    return number


def _checked_ids(name, ids, rows):
    if ids.dim() != 1:
        raise ValueError(f"{name}: the index has shape {tuple(ids.shape)}; give one dimension")
    if ids.dtype == torch.bool:
        if ids.numel() != rows:
            raise ValueError(f"{name}: the index has {ids.numel()} bools for {rows} rows; give one for each")
        return ids.nonzero().view(-1)
    check_ids(f"{name}: index", ids, rows)
    return ids.long()  # PyTorch takes uint8 as a mask


def shape_of(ids, shape):
    """Returns the shape of the rows that a checked index means, of a tensor of this shape."""
    rows, *rest = shape
    return tuple(rest) if isinstance(ids, int) else (rows if ids is None else ids.numel(), *rest)

"""Checks of ids. Each error is one line that names the argument, the first wrong place in it, and what is
allowed."""

import torch

from plait._edges.inputs import as_tensor


def whole_ids(name, ids):
    """Returns ids of nodes as int64; ids below 0 or too large are found later. Raises ValueError unless they are
    integers."""
    ids = as_tensor(name, ids, "give a tensor of node ids")
    check_integers(name, ids)
    return ids.long()


def check_ids(name, ids, count, row=None):
    """Raises ValueError unless all ids are integers in 0 .. count - 1. `row`: of the argument, if it has two
    dimensions."""
    check_integers(name, ids)
    if ids.numel() == 0:
        return
    if ids.dtype in (torch.uint16, torch.uint32, torch.uint64):  # whose bounds PyTorch does not find
        ids = ids.long()
    least, most = (int(bound) for bound in torch.aminmax(ids))
    if least < 0 or most >= count:
        place = first_where((ids < 0) | (ids >= count))
        where = place if row is None else f"{row}, {place}"
        allowed = f"outside 0..{count - 1}" if count else "but there are no nodes"
        raise ValueError(f"{name}[{where}] is {int(ids[place])}, {allowed}; correct it")


def check_integers(name, tensor):
    """Raises ValueError unless the tensor holds integers."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool:
        raise ValueError(f"{name} holds {tensor.dtype}; use integers (torch.long)")


def check_sorted(name, targets, row=None):
    """Raises ValueError unless the targets of edges ascend, as is_sorted=True promises. `row`: as above."""
    place = first_where(targets[1:] < targets[:-1])
    if place is not None:
        before, after = targets[place:place + 2].tolist()
        where = place + 1 if row is None else f"{row}, {place + 1}"
        raise ValueError(f"is_sorted=True, but {name}[{where}] is {after}, after {before}; sort edges by "
                         "target, or leave is_sorted out")


def first_where(wrong):
    """Returns the first place where a bool tensor holds True; None if there is none."""
    return int(wrong.to(torch.uint8).argmax()) if bool(wrong.any()) else None

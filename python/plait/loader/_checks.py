"""Checks of what samplers and loaders are given. Each error is one line that names the argument, the first
wrong place in it, and what is allowed."""

import operator

import torch


def first_where(wrong):
    """Returns the first place where a bool tensor holds True; None if there is none."""
    return int(wrong.to(torch.uint8).argmax()) if bool(wrong.any()) else None


def check_ids(name, ids, count, row=None):
    """Raises ValueError unless all ids are integers in 0 .. count - 1. `row`: of the argument, if it has two
    dimensions."""
    _check_integers(name, ids)
    if ids.numel() == 0:
        return
    least, most = (int(bound) for bound in torch.aminmax(ids))
    if least < 0 or most >= count:
        place = first_where((ids < 0) | (ids >= count))
        where = place if row is None else f"{row}, {place}"
        allowed = f"outside 0..{count - 1}" if count else "but there are no nodes"
        raise ValueError(f"{name}[{where}] is {int(ids[place])}, {allowed}; correct it")


def check_edges(name, index, sources, targets, is_sorted):
    """Raises ValueError unless `index` (2, E) holds edges between so many nodes, by ascending target if the
    caller has promised it."""
    for end, count in enumerate((sources, targets)):
        check_ids(name, index[end], count, end)
    place = first_where(index[1, 1:] < index[1, :-1]) if is_sorted else None
    if place is not None:
        before, after = index[1, place:place + 2].tolist()
        raise ValueError(f"is_sorted=True, but {name}[1, {place + 1}] is {after}, after {before}; sort edges by "
                         "target, or leave is_sorted out")


def checked_fanouts(name, fanouts):
    """Returns fan-outs as a list of integers. Raises ValueError unless each is 0 or more, or -1."""
    try:
        found = [operator.index(fanout) for fanout in fanouts]
    except TypeError:
        found = None
    if found is None or isinstance(fanouts, dict):
        raise ValueError(f"{name} is {fanouts!r}; give a list of integers, one for each hop")
    for hop, fanout in enumerate(found):
        if fanout < -1:
            raise ValueError(f"{name}[{hop}] is {fanout}; give 0 or more, or -1 for all neighbours")
    return found


def check_length(name, values, count, of):
    """Raises ValueError unless there are `count` values, if there are any."""
    if values is not None and values.size(0) != count:
        raise ValueError(f"{name} has {values.size(0)} values for {count} {of}; give one for each")


def check_weights(name, weights, edges, places):
    """Raises ValueError unless there is one number per edge, finite and 0 or more. `places`: the number of
    each edge in `edge_index`; None if weights are in that order."""
    _check_shape(name, weights, edges, "weight", "edge")
    wrong = first_where(~(weights.isfinite() & (weights >= 0)))
    if wrong is not None:
        place = wrong if places is None else int(places[wrong])
        raise ValueError(f"{name}[{place}] is {weights[wrong].item():g}; weights must be finite and 0 or more")


def check_times(name, times, count):
    """Raises ValueError unless times are `count` integers."""
    _check_integers(name, times)
    _check_shape(name, times, count, "time", "value")


def _check_integers(name, tensor):
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool:
        raise ValueError(f"{name} holds {tensor.dtype}; use integers (torch.long)")


def _check_shape(name, tensor, count, what, owner):
    if tuple(tensor.shape) != (count,):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; give one {what} for each of {count} {owner}s")

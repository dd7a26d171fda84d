"""Checks of what samplers and loaders are given. Each error is one line that names the argument, the first
wrong place in it, and what is allowed."""

import operator

import torch
from torch_geometric.data import Data, HeteroData

from plait._ids import check_ids, check_integers, check_sorted, first_where
from plait.store._pair import check_pair


def check_length(name, values, count, of):
    """Raises ValueError unless there are `count` values, if there are any."""
    if values is not None and values.size(0) != count:
        raise ValueError(f"{name} has {values.size(0)} values for {count} {of}; give one for each")


def check_times(name, times, count, of):
    """Raises ValueError unless there are `count` integers, if there are any."""
    if times is not None:
        check_integers(name, times)
        check_length(name, times, count, of)


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


def check_data(data, is_sorted, time_attr, weight_attr):
    """Raises ValueError for wrong edges, times and weights of a graph, before PyTorch Geometric sorts them,
    which does not check them; and for stores that do not belong together."""
    if isinstance(data, Data):
        _check_edges("", data, (data.num_nodes, data.num_nodes), is_sorted)
        of_nodes = time_attr in data and data.is_node_attr(time_attr)
        if of_nodes:
            _check_times_of(time_attr, data[time_attr], data.num_nodes, "node")
        of_edges = time_attr in data and data.is_edge_attr(time_attr)
        _check_values("", data, time_attr if of_edges else None, weight_attr)
    elif isinstance(data, HeteroData):
        for kind, store in data.node_items():
            _check_times_of(f"data[{kind!r}].{time_attr}", store.get(time_attr), store.num_nodes, "node")
        for kind, store in data.edge_items():
            name = f"data[{', '.join(map(repr, kind))}]."
            _check_edges(name, store, store.size(), is_sorted)
            _check_values(name, store, time_attr, weight_attr)
    elif isinstance(data, (list, tuple)) and len(data) == 2:
        check_pair(*data)


def _check_edges(name, store, sizes, is_sorted):
    """`sizes`: the numbers of sources and of targets."""
    index = store.get("edge_index")
    if not isinstance(index, torch.Tensor):
        return
    for end, count in enumerate(sizes):
        check_ids(f"{name}edge_index", index[end], count, end)
    if is_sorted:
        check_sorted(f"{name}edge_index", index[1], 1)


def _check_values(name, store, time_attr, weight_attr):
    """Checks times and weights of edges."""
    _check_times_of(f"{name}{time_attr}", store.get(time_attr), store.num_edges, "edge")
    weights = store.get(weight_attr)
    if weights is None:
        return
    _check_shape(f"{name}{weight_attr}", weights, store.num_edges, "weight", "edge")
    place = first_where(~(weights.isfinite() & (weights >= 0)))
    if place is not None:
        raise ValueError(f"{name}{weight_attr}[{place}] is {weights[place].item():g}; weights must be finite and 0 "
                         "or more")


def _check_times_of(name, times, count, owner):
    if times is not None:
        check_integers(name, times)
        _check_shape(name, times, count, "time", owner)


def _check_shape(name, tensor, count, what, owner):
    if tuple(tensor.shape) != (count,):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; give one {what} for each of {count} {owner}s")

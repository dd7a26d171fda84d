"""Checks of the arguments of samplers and loaders. Each error is one line that names the argument, the first
wrong place in it, and what is allowed."""

import operator

import torch
from torch_geometric.data import HeteroData
from torch_geometric.sampler.base import DataType

from plait._edges.ids import check_ids, check_integers, check_sorted, first_where
from plait._edges.inputs import as_tensor
from plait.loader._store_checks import check_stores


_MOST_FANOUT = 2**24  # that plait::kMostFanout allows


def check_length(name, values, count, of):
    """Raises ValueError unless there are `count` values, if there are any."""
    if values is not None and values.shape[:1] != (count,):
        has = f"{values.size(0)} values" if values.dim() > 0 else "one value"
        raise ValueError(f"{name} has {has} for {count} {of}; give one for each")


def check_times(name, times, count, of):
    """Raises ValueError unless there are `count` integers, if there are any."""
    if times is not None:
        _check_tensor(name, times)
        check_integers(name, times)
        check_length(name, times, count, of)


def checked_seeds(given, sampler):
    """Returns `input_nodes` as PyTorch Geometric takes them: ids or bools as a tensor, and behind a type if there are
    types. Raises ValueError for a type that is missing or unknown, and for bools that are not one for each node."""
    if isinstance(given, str):
        given = given, None
    if isinstance(given, (list, tuple)) and len(given) == 2 and (given[0] is None or isinstance(given[0], str)):
        kind, nodes = given
    else:
        kind, nodes = None, given
    known = list(sampler.node_types) if sampler.is_hetero else [None]
    if kind not in known:
        raise ValueError(f"input_nodes are of type {kind!r}; give " + (
            f"(type, ids), with one of the types {known}" if sampler.is_hetero else "ids alone, as nodes have no types"))
    if nodes is None:
        return torch.arange(sampler.count()) if kind is None else kind
    nodes = _ids_or_bools(nodes, sampler.count, kind)
    return nodes if kind is None else (kind, nodes)


def _ids_or_bools(nodes, count, kind):
    if hasattr(nodes, "__dlpack__"):
        nodes = as_tensor("input_nodes", nodes, "give ids or bools of nodes")
    else:
        try:
            nodes = torch.as_tensor(nodes)
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"input_nodes is a {type(nodes).__name__} without ids ({error}); give ids or bools of "
                             "nodes") from None
    if nodes.dim() != 1:
        raise ValueError(f"input_nodes has shape {tuple(nodes.shape)}; give one dimension")
    if nodes.dtype == torch.bool:
        check_length("input_nodes", nodes, count(kind), "nodes")
    return nodes if nodes.numel() > 0 else nodes.long()  # an empty list has no type of its own


def checked_pairs(given, sampler, data):
    """Returns `edge_label_index` as PyTorch Geometric takes it: of stores, behind a type, and all edges if none are
    given. Raises ValueError unless ends of edges have two rows."""
    if sampler.is_hetero and (given is None or isinstance(given, torch.Tensor)):
        raise ValueError("edge_label_index is of no type of edges; give (type, pairs), with one of the types "
                         f"{sampler.edge_types_of_graph()}")
    if isinstance(data, (list, tuple)) and not sampler.is_hetero:
        if given is None or isinstance(given, torch.Tensor):
            given = None, given
        if not isinstance(given, (list, tuple)) or len(given) != 2 or given[0] is not None:
            raise ValueError("edge_label_index has a type, but the graph has none; give a tensor (2, number of edges)")
        if given[1] is None:
            given = None, torch.stack(data[1].coo()[:2])
    typed = isinstance(given, (list, tuple)) and len(given) == 2 and not isinstance(given[0], (str, torch.Tensor))
    pairs = given[1] if typed else given
    if sampler.is_hetero:
        kind = _whole_type(given[0] if typed else given, data)
        known = sampler.edge_types_of_graph()
        if kind is None or (not isinstance(pairs, torch.Tensor) and kind not in known):
            raise ValueError(f"edge_label_index is of type {given[0] if typed else given!r}; give one of the types {known}, "
                             "alone or as (type, pairs)")
    if isinstance(pairs, torch.Tensor) and (pairs.dim() != 2 or pairs.size(0) != 2):
        raise ValueError(f"edge_label_index has shape {tuple(pairs.shape)}; give (2, number of edges)")
    return given


def _whole_type(kind, data):
    """Returns a type of edges by its three names; HeteroData knows it by fewer. Returns None for anything else."""
    of_data = isinstance(data, HeteroData)
    if not isinstance(kind, (list, tuple) if of_data else tuple) or not all(isinstance(name, str) for name in kind):
        return None
    kind = data._to_canonical(*kind) if of_data and kind else kind
    return kind if len(kind) == 3 else None


def checked_fanouts(name, fanouts):
    """Returns fan-outs as a list of integers. Raises ValueError unless each is 0 or more, or -1."""
    try:
        found = [operator.index(None if isinstance(fanout, bool) else fanout) for fanout in fanouts]
    except TypeError:
        found = None
    if found is None or isinstance(fanouts, dict):
        raise ValueError(f"{name} is {fanouts!r}; give a list of integers, one for each hop")
    for hop, fanout in enumerate(found):
        if not -1 <= fanout <= _MOST_FANOUT:
            raise ValueError(f"{name}[{hop}] is {fanout}; give 0 to {_MOST_FANOUT}, or -1 for all neighbours")
    return found


def check_data(data, is_sorted, time_attr, weight_attr):
    """Raises ValueError for wrong edges, times and weights of a graph, before PyTorch Geometric sorts them,
    which does not check them; for stores that do not belong together; and for data of another class."""
    has = DataType.from_data(data)
    if has == DataType.homogeneous:
        if data.num_nodes is None:
            raise ValueError("the graph has no edges and no rows of nodes; set its num_nodes")
        _check_edges("", data, (data.num_nodes, data.num_nodes), is_sorted)
        of_nodes = time_attr in data and data.is_node_attr(time_attr)
        if of_nodes:
            check_times_of(time_attr, data[time_attr], data.num_nodes, "node")
        of_edges = time_attr in data and data.is_edge_attr(time_attr)
        _check_values("", data, time_attr if of_edges else None, weight_attr)
    elif has == DataType.heterogeneous:
        for kind, store in data.node_items():
            check_times_of(f"data[{kind!r}].{time_attr}", store.get(time_attr), store.num_nodes, "node")
        for kind, store in data.edge_items():
            name = f"data[{', '.join(map(repr, kind))}]."
            _check_edges(name, store, store.size(), is_sorted)
            _check_values(name, store, time_attr, weight_attr)
    else:
        check_stores(*data)


def _check_edges(name, store, sizes, is_sorted):
    """`sizes`: the numbers of sources and of targets."""
    index = store.get("edge_index")
    if index is None:
        return
    _check_tensor(f"{name}edge_index", index)
    if index.dim() != 2 or index.size(0) != 2:
        raise ValueError(f"{name}edge_index has shape {tuple(index.shape)}; give (2, number of edges)")
    for end, count in enumerate(sizes):
        if count is None:
            raise ValueError(f"{name}edge_index has {'sources' if end == 0 else 'targets'} of a type whose number of "
                             "nodes is not known; set its num_nodes")
        check_ids(f"{name}edge_index", index[end], count, end)
    if is_sorted:
        check_sorted(f"{name}edge_index", index[1], 1)


def _check_values(name, store, time_attr, weight_attr):
    """Checks times and weights of edges."""
    check_times_of(f"{name}{time_attr}", store.get(time_attr), store.num_edges, "edge")
    check_weights(f"{name}{weight_attr}", store.get(weight_attr), store.num_edges)


def check_weights(name, weights, count):
    """Raises ValueError for weights, if there are any, that are not one for each of `count` edges, or are wrong."""
    if weights is None:
        return
    _check_tensor(name, weights)
    _check_shape(name, weights, count, "weight", "edge")
    narrow = weights.float()  # as they are used
    place = first_where(~(narrow.isfinite() & (narrow >= 0) & ((narrow > 0) | (weights == 0))))
    if place is not None:
        raise ValueError(f"{name}[{place}] is {weights[place].item():g}; weights must be 0 or more, and as float32 "
                         "neither infinite nor rounded to 0")


def check_times_of(name, times, count, owner):
    """Raises ValueError for times, if there are any, that are no integers, or not one for each of `count` nodes or
    edges (`owner`)."""
    if times is not None:
        _check_tensor(name, times)
        check_integers(name, times)
        _check_shape(name, times, count, "time", owner)


def _check_tensor(name, value):
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name} is a {type(value).__name__}; give a tensor")


def _check_shape(name, tensor, count, what, owner):
    if tuple(tensor.shape) != (count,):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; give one {what} for each of {count} {owner}s")

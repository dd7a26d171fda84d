"""Weights and times of a graph, which decide how edges are drawn: by type, None in a graph without types, and in the
order of ids. PyTorch Geometric's sampler takes no weights of stores, finds times of edges there by their name alone,
and mixes types up where edges are drawn backward."""

import copy

from torch_geometric.data import Data, HeteroData, TensorAttr

from plait.store.features import EDGES, FeatureStore


def weights_of(data, name, has_types):
    """Returns weights by type of edges. Raises ValueError if a feature store has none of this name."""
    if name is None:
        return {}
    if isinstance(data, Data):
        return {None: data[name]}
    if isinstance(data, HeteroData):
        found = _of_types(data, name)
        if not found:
            raise KeyError(name)  # as PyTorch Geometric
        return found
    of_nodes, of_edges = _of_store(data[0], name, has_types)
    if of_nodes or not of_edges:
        raise ValueError(f"weight_attr is {name!r}, of which the feature store has no tensor for edges")
    return of_edges


def times_of(data, name, has_types):
    """Returns times by type of nodes, and times by type of edges; one of the two is empty. Raises ValueError if a
    feature store has neither or both of them; other kinds of data have been checked."""
    if name is None:
        return {}, {}
    if isinstance(data, Data):
        return ({None: data[name]}, {}) if data.is_node_attr(name) else ({}, {None: data[name]})
    if isinstance(data, HeteroData):
        return {kind: store[name] for kind, store in data.node_items() if name in store}, _of_types(data, name)
    of_nodes, of_edges = _of_store(data[0], name, has_types)
    if bool(of_nodes) == bool(of_edges):
        has = "both nodes and edges" if of_nodes else "neither nodes nor edges"
        raise ValueError(f"time_attr is {name!r}, of which the feature store has tensors for {has}")
    return of_nodes, of_edges


def in_order(values, ids):
    """Returns the values of edges that are ordered by these ids; None: as they are."""
    return values if values is None or ids is None else values[ids.to(values.device)]


def _of_types(data, name):
    return {kind: store[name] for kind, store in data.edge_items() if name in store}


def _of_store(features, name, has_types):
    attrs = [copy.copy(attr) for attr in features.get_all_tensor_attrs() if attr.attr_name == name]
    own = isinstance(features, FeatureStore)
    if own and not has_types and features.get_tensor_size(EDGES, name) is not None:
        attrs.append(TensorAttr(EDGES, name))
    for attr in attrs:
        attr.index = None
    found = {attr.group_name: features.get_tensor(attr) for attr in attrs}
    of_nodes = {group: values for group, values in found.items() if not isinstance(group, tuple)}
    of_edges = {group: values for group, values in found.items() if isinstance(group, tuple)}
    if has_types:
        return of_nodes, of_edges
    if not own and name != "time":  # PyTorch Geometric's rule for values without a group
        of_nodes, of_edges = {}, of_nodes | of_edges
    return ({None: values} if (values := next(iter(of.values()), None)) is not None else {}
            for of in (of_nodes, of_edges))

"""Checks of a FeatureStore and a GraphStore that are given to samplers and loaders."""

from torch_geometric.data import Data

from plait.store._pair import check_pair
from plait.store.edges import GraphStore, check_index, size_of


def check_stores(features, edges):
    """Raises ValueError for stores that do not belong together, and for edges of a GraphStore that contradict their
    sizes or are of types beside edges of none: PyTorch Geometric converts them without checks. Plait's own store has
    checked its edges one by one."""
    check_pair(features, edges)
    attrs = list(edges.get_all_edge_attrs())
    if len({attr.edge_type is None for attr in attrs}) > 1:
        raise ValueError("the graph store has edges of types beside edges without a type; give all of them a type")
    if isinstance(edges, GraphStore):
        return
    for attr in attrs:
        name = f"edges of type {attr.edge_type!r}: "
        if size_of(name, attr, inferred=attr.edge_type is not None or attr is not attrs[0]) is not None:
            check_index(name, edges.get_edge_index(attr), attr)


def check_rows(batch, features):
    """Raises ValueError if a FeatureStore has given another number of rows than a batch has nodes, as stores do that
    drop the nodes which they do not have."""
    types = None if isinstance(batch, Data) else batch.node_types
    for attr in features.get_all_tensor_attrs():
        if types is not None and attr.group_name not in types:
            continue
        nodes = batch if types is None else batch[attr.group_name]
        shape = getattr(nodes.get(attr.attr_name), "shape", ())
        if len(shape) > 0 and shape[0] != nodes.num_nodes:
            raise ValueError(f"the feature store has given {attr.attr_name!r} of {shape[0]} nodes, but the batch has "
                             f"{nodes.num_nodes}; it must have a row for each node of the graph")

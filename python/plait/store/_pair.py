"""Whether a FeatureStore and a GraphStore belong together."""

from plait.store.edges import GraphStore
from plait.store.features import FeatureStore


def check_pair(features, edges):
    """Raises ValueError if the stores have other numbers of nodes of a type. Stores of other classes are not
    asked."""
    if not isinstance(features, FeatureStore) or not isinstance(edges, GraphStore):
        return
    for attr in features.get_all_tensor_attrs():
        group = attr.group_name
        rows, nodes = features.num_rows(group), None if isinstance(group, tuple) else edges.num_nodes(group)
        if nodes not in (None, rows):
            of = "the feature store" if group is None else f"the feature store's group {group!r}"
            raise ValueError(f"{of} has {rows} rows, but the graph store has {nodes} nodes; give as many")

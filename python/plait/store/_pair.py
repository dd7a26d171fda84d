"""Whether a FeatureStore and a GraphStore belong together."""

from plait.store.edges import GraphStore, types_of_ends
from plait.store.features import FeatureStore


def check_pair(features, edges):
    """Raises ValueError if a type of nodes has fewer rows in a FeatureStore than nodes in a GraphStore: batches would
    lack rows. Two stores of Plait must have as many."""
    nodes = {}
    for attr in edges.get_all_edge_attrs():
        for kind, count in zip(types_of_ends(attr.edge_type), attr.size or ()):
            nodes[kind] = max(nodes.get(kind, 0), count or 0)
    may_have_more = not (isinstance(features, FeatureStore) and isinstance(edges, GraphStore))
    for attr in features.get_all_tensor_attrs():
        group = attr.group_name
        size = features.get_tensor_size(attr) if group in nodes else None
        if not size or size[0] == nodes[group] or (may_have_more and size[0] > nodes[group]):
            continue
        of = "the feature store" if group is None else f"the feature store's group {group!r}"
        raise ValueError(f"{of} has {size[0]} rows, but the graph store has {nodes[group]} nodes; give as many")

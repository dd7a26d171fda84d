"""Graphs whose edges are plain tensors, as samplers read them."""

import copy

from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData


def with_plain_edges(data):
    """Returns `data` with a tensor for each EdgeIndex of it, which shares its memory. Without an EdgeIndex, and
    for stores, it is `data` itself."""
    if not isinstance(data, (Data, HeteroData)):
        return data
    if not any(isinstance(store.get("edge_index"), EdgeIndex) for store in data.edge_stores):
        return data
    data = copy.copy(data)
    for store in data.edge_stores:
        index = store.get("edge_index")
        if isinstance(index, EdgeIndex):
            store["edge_index"] = index.as_tensor()
    return data

"""Graphs and seeds as plain tensors, as samplers read them."""

import copy

from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Data, HeteroData


def with_plain_edges(data):
    """Returns `data` with a tensor for each EdgeIndex of it, which shares its memory, and with the number of nodes
    that the EdgeIndex may tell. Without an EdgeIndex, and for stores, it is `data` itself."""
    if not isinstance(data, (Data, HeteroData)):
        return data
    if not any(isinstance(store.get("edge_index"), EdgeIndex) for store in data.edge_stores):
        return data
    nodes = data.num_nodes
    data = copy.copy(data)
    for store in data.edge_stores:
        index = store.get("edge_index")
        if isinstance(index, EdgeIndex):
            store["edge_index"] = index.as_tensor()
    if isinstance(data, Data) and data.num_nodes != nodes:
        data.num_nodes = nodes
    return data


def plain_seeds(seeds):
    """Returns a tensor for an Index, as a row of an EdgeIndex is one; else `seeds`."""
    return seeds.as_tensor() if isinstance(seeds, Index) else seeds

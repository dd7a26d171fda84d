"""Graphs and seeds as plain tensors, as samplers read them."""

import copy

import torch
from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Data, HeteroData

from plait._edges.inputs import is_sparse_tensor

_VALUES = "edge_value_of_adj_t"  # the name of a matrix's entries beside its edges


def with_plain_edges(data):
    """Returns `data` with a tensor (2, E) for each EdgeIndex of it, which shares its memory, and for each adj_t that
    is a sparse tensor, and with the numbers of nodes that these may tell. Without any, and for stores, it is `data`
    itself. Raises ValueError for edges that are there in both forms."""
    if not isinstance(data, (Data, HeteroData)):
        return data
    if not any(isinstance(store.get("edge_index"), EdgeIndex) or is_sparse_tensor(store.get("adj_t"))
               for store in data.edge_stores):
        return data
    nodes = data.num_nodes if isinstance(data, Data) else _counts_by_matrices(data)
    data = copy.copy(data)
    for store in data.edge_stores:
        index = store.get("edge_index")
        if isinstance(index, EdgeIndex):
            store["edge_index"] = index.as_tensor()
        if is_sparse_tensor(store.get("adj_t")):
            if index is not None:
                raise ValueError("data has both edge_index and adj_t; delete one of them")
            _replace_matrix(store)
    if isinstance(data, HeteroData):
        for kind, count in nodes.items():
            if data[kind].num_nodes != count:
                data[kind].num_nodes = count
    elif data.num_nodes != nodes:
        data.num_nodes = nodes
    return data


def matrices_of(data):
    """Returns (layout, names of attributes of edges) by type, None in a graph without types, of each adj_t that
    with_plain_edges replaces."""
    if not isinstance(data, (Data, HeteroData)):
        return {}
    return {_type_of(store): (store["adj_t"].layout, [*_edge_attrs(store), _VALUES, "e_id"])
            for store in data.edge_stores if is_sparse_tensor(store.get("adj_t"))}


def with_matrices(batch, matrices):
    """Returns a batch with an adj_t, again, for edges that came from one: coordinates if it had those, else rows.
    Attributes of edges have the order of its entries."""
    for store in batch.edge_stores:
        if _type_of(store) in matrices:
            layout, names = matrices[_type_of(store)]
            _restore_matrix(store, store.size()[::-1], layout, names)
    return batch


def _type_of(store):
    return getattr(store, "_key", None)


def _edge_attrs(store):
    return [name for name in store.keys() if name not in ("adj_t", "edge_index") and store.is_edge_attr(name)]


def _counts_by_matrices(data):
    counts = {}
    for kind, store in data.edge_items():
        if is_sparse_tensor(store.get("adj_t")):
            counts |= zip(kind[::-2], store["adj_t"].shape)
    return counts


def _replace_matrix(store):
    entries = store["adj_t"].to_sparse_coo()
    if entries.sparse_dim() != 2 or entries.dense_dim() != 0:
        raise ValueError(f"adj_t has the shape {tuple(entries.shape)}; give a matrix of one number per edge")
    row, column = entries._indices()
    values = entries._values()
    del store["adj_t"]
    store.__dict__.pop("_cached_attr", None)
    store["edge_index"] = torch.stack([column, row])
    if not bool(values.eq(1).all()):
        store[_VALUES] = values


def _restore_matrix(store, sizes, layout, names):
    column, row = store["edge_index"]
    order = (row * sizes[1] + column).argsort(stable=True)
    row, column = row[order], column[order]
    for name in names:
        if isinstance(store.get(name), torch.Tensor):
            store[name] = store[name][order.to(store[name].device)]
    values = store[_VALUES] if _VALUES in store else torch.ones(row.shape, device=row.device)
    for name in ("edge_index", _VALUES):
        store.pop(name, None)
    store.__dict__.pop("_cached_attr", None)
    if layout == torch.sparse_coo:
        is_distinct = bool(((row[1:] != row[:-1]) | (column[1:] != column[:-1])).all())
        store["adj_t"] = torch.sparse_coo_tensor(torch.stack([row, column]), values, sizes, is_coalesced=is_distinct)
    else:
        starts = torch.nn.functional.pad(torch.bincount(row, minlength=sizes[0]).cumsum(0), (1, 0))
        store["adj_t"] = torch.sparse_csr_tensor(starts, column, values, sizes)


def plain_seeds(seeds):
    """Returns a tensor for an Index, as a row of an EdgeIndex is one; else `seeds`."""
    return seeds.as_tensor() if isinstance(seeds, Index) else seeds

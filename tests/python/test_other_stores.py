"""Loaders on stores of other classes than Plait's, which may have no sizes, wrong edges or too few rows."""

import numpy as np
import pytest
import torch
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from loader_checks import graph
from plait.loader import LinkNeighborLoader, NeighborLoader
from test_store_loader import assert_equal_batches, drawn


@pytest.mark.parametrize("layout", ["coo", "csc"])
def test_all_links_of_other_stores(layout):
    data, fields = graph().sort(sort_by_row=False), ("n_id", "e_id", "edge_index", "edge_label_index", "x")
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(data.x, group_name=None, attr_name="x", index=None)
    row, col = data.edge_index
    pair = (row, col) if layout == "coo" else (row, torch._convert_indices_from_coo_to_csr(col, 60))
    edges.put_edge_index(pair, edge_type=None, layout=layout, size=(60, 60))
    found = drawn(LinkNeighborLoader, (features, edges), [3], edge_label_index=None, batch_size=100)
    same = drawn(LinkNeighborLoader, data, [3], batch_size=100, is_sorted=layout == "csc")
    assert_equal_batches(found, same, fields)


@pytest.mark.parametrize("layout,row,col,text", [
    ("coo", [0, 1], [35, 2], r"col\[0\] is 35, outside 0\.\.29"), ("coo", [0, 1], [2], "row has 2 ids, but col has 1"),
    ("csc", [0, 1], [0, 2], "col has 2 offsets for 30 nodes; give 31"),
    ("csr", [0] * 30 + [2], [1, -5], r"col\[1\] is -5, outside 0\.\.29")])
def test_wrong_edges_of_other_stores(layout, row, col, text):
    """PyTorch Geometric would write beyond its arrays."""
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(torch.ones(30, 1), group_name=None, attr_name="x", index=None)
    index = tuple(torch.tensor(each) for each in (row, col))
    edges.put_edge_index(index, edge_type=None, layout=layout, size=(30, 30))
    for make in (lambda: NeighborLoader((features, edges), [2], None), lambda: LinkNeighborLoader((features, edges), [2])):
        with pytest.raises(ValueError, match=text):
            make()


def other_stores(*kinds, rows=4, size=(4, 4), group=None, features=None):
    """Stores of PyTorch Geometric with 4 nodes, and a circle of edges of each type."""
    features, edges = features or MyFeatureStore(), MyGraphStore()
    group = kinds[0][0] if isinstance(kinds[0], tuple) else group
    features.put_tensor(torch.arange(2.0 * rows).view(rows, 2), group_name=group, attr_name="x", index=None)
    for kind in kinds:
        edges.put_edge_index((torch.arange(4), torch.arange(4).roll(1)), edge_type=kind, layout="coo", size=size)
    return features, edges


OF_TYPE = "a", "to", "a"


class WithoutSizes(MyFeatureStore):
    """Gives rows of nodes that are asked for, and nothing else."""

    def _get_tensor_size(self, attr):
        raise NotImplementedError


@pytest.mark.parametrize("kinds,options,text", [
    ((OF_TYPE, None), {}, "the graph store has edges of types beside edges without a type"),
    ((None,), {"size": None}, "edges of type None: the numbers of nodes are not known"),
    ((None,), {"size": (4, None)}, "edges of type None: the numbers of nodes are not known"),
    ((("a", "a"),), {}, r"edges of type \('a', 'a'\): give \(source type, name, target type\), or None"),
    ((("a", None, "a"),), {}, r"edges of type \('a', None, 'a'\): give \(source type, name"),
    (("ato",), {}, r"edges of type 'ato': give \(source type, name")])
def test_wrong_other_stores(kinds, options, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        NeighborLoader(other_stores(*kinds, **options), [2], None if kinds[0] is None else "a")


@pytest.mark.parametrize("kind,options", [
    (None, {}), (OF_TYPE, {}), (OF_TYPE, {"size": None}), (None, {"rows": 6}), (OF_TYPE, {"rows": 6}),
    (tuple(map(np.str_, OF_TYPE)), {}), (None, {"features": WithoutSizes()}), (OF_TYPE, {"features": WithoutSizes()})])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_other_stores_that_belong_together(kind, options, device):
    stores = other_stores(kind, **options)
    for batch in NeighborLoader(stores, [2], None if kind is None else "a", batch_size=2, device=device):
        nodes = batch if kind is None else batch["a"]
        assert torch.equal(nodes.x[:, 0], 2.0 * nodes.n_id)


@pytest.mark.parametrize("kind,options", [
    (None, {}), (OF_TYPE, {}), (OF_TYPE, {"size": None}), (None, {"group": "node"})])
@pytest.mark.parametrize("workers", [0, 1])
def test_other_stores_that_lack_rows(kind, options, workers):
    """These stores drop nodes that they do not have."""
    loader = NeighborLoader(other_stores(kind, rows=2, **options), [2], ("a", [1]) if kind else [1], num_workers=workers,
                            transform=pytest.fail)
    with pytest.raises(ValueError, match="the feature store has given 'x' of 1 nodes, but the batch has 2; it must have a row"):
        list(loader)

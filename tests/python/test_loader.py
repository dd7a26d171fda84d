"""plait.loader.NeighborLoader: the fields of batches, against plain loops over the graph, and what PyTorch
Geometric itself makes of full neighbourhoods."""

import inspect

import pytest
import torch
import torch_geometric.loader
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import k_hop_subgraph, trim_to_layer

import plait
from edges import assert_close
from loader_checks import check_hops, check_rows, edges_into, graph
from plait.loader import LinkNeighborLoader, NeighborLoader


def batches(data, fanouts, **options):
    torch.manual_seed(3)
    return list(NeighborLoader(data, fanouts, **options))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("fanouts", [[3], [4, 2], [-1, 2, 1], [500, 1], [2, 0, 3], [0], []])
def test_each_hop(fanouts, disjoint, replace):
    data = graph()
    for n, batch in enumerate(batches(data, fanouts, batch_size=16, disjoint=disjoint, replace=replace)):
        check_rows(data, batch)
        check_hops(data, batch, fanouts, range(16 * n, min(16 * n + 16, data.num_nodes)), replace)
        assert (batch.batch is not None) == disjoint
        if disjoint:
            assert batch.batch[:batch.batch_size].tolist() == list(range(batch.batch_size))


def test_seeds_in_their_order_and_the_last_batch():
    data = graph()
    seeds = torch.tensor([7, 59, 3, 3, 0, 58, 2])  # 58 and 59 have no edges, and 3 comes twice
    found = batches(data, [3, 3], input_nodes=seeds, batch_size=3)
    assert [batch.batch_size for batch in found] == [3, 3, 1]
    for n, batch in enumerate(found):
        ids = seeds[3 * n:3 * n + 3]
        assert torch.equal(batch.n_id[:batch.batch_size], ids)
        assert batch.input_id.tolist() == list(range(3 * n, 3 * n + len(ids)))
        check_rows(data, batch)
        check_hops(data, batch, [3, 3], ids.tolist())
    assert len(batches(data, [3], input_nodes=seeds, batch_size=3, drop_last=True)) == 2


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_in_a_matrix(layout, weighted):
    """adj_t of ToSparseTensor: batches have an adj_t of the same layout, and attributes in the order of its
    entries."""
    torch.manual_seed(5)
    index = torch.unique(torch.randint(0, 40, (2, 200)), dim=1)
    data = Data(x=torch.randn(40, 3), edge_index=index, edge_attr=torch.randn(index.size(1), 2))
    if weighted:
        data.edge_weight = torch.rand(index.size(1)) + 0.5
    data = ToSparseTensor(layout=layout)(data)
    whole = data.adj_t.to_sparse_coo()
    conv = plait.nn.GraphConv(3, 4)
    out = conv(data.x, data.adj_t)
    for options in ({}, {"num_workers": 1}, {"transform": lambda batch: batch.update({"is_mine": batch.adj_t is not None})}):
        found = batches(data, [-1, 2], batch_size=15, **options)
        assert sum(batch.batch_size for batch in found) == 40 and data.adj_t.layout == layout
        for batch in found:
            entries = batch.adj_t.to_sparse_coo()
            assert batch.adj_t.layout == layout and "edge_index" not in batch
            assert torch.equal(batch.n_id[entries._indices()], whole._indices()[:, batch.e_id])
            assert torch.equal(entries._values(), whole._values()[batch.e_id])
            assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
            seeds = slice(batch.batch_size)
            assert_close(conv(batch.x, batch.adj_t)[seeds], out[batch.n_id[seeds]])
            assert batch.get("is_mine", True)
    pairs, = LinkNeighborLoader(data, [2], edge_label_index=index[:, :6], batch_size=6)
    assert pairs.adj_t.shape == (pairs.num_nodes, pairs.num_nodes)
    data.edge_index = index
    with pytest.raises(ValueError, match="both edge_index and adj_t"):
        batches(data, [2])
    with pytest.raises(ValueError, match="adj_t is a dense tensor"):
        batches(Data(x=data.x, adj_t=torch.ones(40, 40)), [2])


def test_matrices_of_types():
    data = HeteroData({"a": {"x": torch.randn(6, 2)}, "b": {"num_nodes": 5}})
    data["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 5], [0, 0, 1, 4]])
    data["b", "of", "a"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    matrices = ToSparseTensor(layout=torch.sparse_csr)(data)
    del matrices["b"].num_nodes  # which the matrices tell
    options = {"input_nodes": ("b", torch.tensor([0, 4])), "batch_size": 2}
    plain, found = batches(data, [2, 2], **options)[0], batches(matrices, [2, 2], **options)[0]
    for kind in data.edge_types:
        assert found[kind].adj_t.shape == (found[kind[2]].num_nodes, found[kind[0]].num_nodes)
        assert found[kind].adj_t.values().numel() == plain[kind].edge_index.size(1)
    assert torch.equal(found["a"].n_id, plain["a"].n_id)


def test_a_namespace_that_has_our_classes(monkeypatch):
    """As where a script puts them in the place of PyTorch Geometric's."""
    for name in ("NeighborLoader", "LinkNeighborLoader"):
        monkeypatch.setattr(torch_geometric.loader, name, getattr(plait.loader, name))
    monkeypatch.setattr(torch_geometric.sampler, "NeighborSampler", plait.loader.sampler.NeighborSampler)
    data = graph()
    batch, = torch_geometric.loader.NeighborLoader(data, [2], input_nodes=[1, 2], batch_size=2)
    assert batch.batch_size == 2
    batch, = torch_geometric.loader.LinkNeighborLoader(data, [2], edge_label_index=data.edge_index[:, :4], batch_size=4)
    assert batch.edge_label_index.size(1) == 4


def test_masks_and_lists_of_seeds():
    data = graph()
    mask = data.y == 1
    batch, = batches(data, [2], input_nodes=mask, batch_size=100)
    assert torch.equal(batch.n_id[:batch.batch_size], mask.nonzero().view(-1))
    assert torch.equal(batch.input_id, mask.nonzero().view(-1))  # as in PyTorch Geometric
    for same in (mask.tolist(), mask.numpy()):
        again, = batches(data, [2], input_nodes=same, batch_size=100)
        assert torch.equal(again.n_id, batch.n_id) and torch.equal(again.input_id, batch.input_id)
    batch, = batches(data, [2], input_nodes=[5, 4], batch_size=100)
    assert batch.n_id[:2].tolist() == [5, 4] and batch.input_id.tolist() == [0, 1]


@pytest.mark.parametrize("order", [None, "row", "col"])
def test_an_edge_index_gives_the_batches_of_its_tensor(order):
    data = graph()
    kept = EdgeIndex(data.edge_index, sparse_size=(60, 60))
    if order is not None:
        kept = kept.sort_by(order).values
    plain, given = data.clone(), data.clone()
    plain.edge_index, given.edge_index = kept.as_tensor(), kept
    typed = HeteroData()
    typed["node"].x, typed["node", "to", "node"].edge_index = data.x, kept
    of_types, = batches(typed, [3, 2], input_nodes=("node", None), batch_size=100)
    found, expected = batches(given, [3, 2], batch_size=16), batches(plain, [3, 2], batch_size=16)
    assert len(found) == len(expected) == 4
    for batch, other in zip(found, expected):
        assert type(batch.edge_index) is torch.Tensor and torch.equal(batch.edge_index, other.edge_index)
        assert torch.equal(batch.n_id, other.n_id) and torch.equal(batch.e_id, other.e_id)
    assert type(of_types["node", "to", "node"].edge_index) is torch.Tensor
    assert given.edge_index is kept


def test_an_edge_index_tells_the_number_of_nodes():
    """The last node has neither edges nor x."""
    edges = graph().edge_index
    data = Data(edge_index=EdgeIndex(edges, sparse_size=(60, 60)), y=torch.arange(60))
    batch, = batches(data, [2], input_nodes=torch.tensor([59, 3]), batch_size=2)
    assert batch.num_nodes == batch.n_id.numel() and batch.y.tolist() == batch.n_id.tolist()
    assert sum(batch.batch_size for batch in batches(data, [2], batch_size=20)) == 60


@pytest.mark.parametrize("disjoint", [False, True])
def test_seeds_of_an_edge_index(disjoint):
    data = graph()
    kept = EdgeIndex(data.edge_index, sparse_size=(60, 60))
    found, expected = (batches(data, [2], input_nodes=seeds, batch_size=500, disjoint=disjoint)
                       for seeds in (kept[1], data.edge_index[1]))
    assert torch.equal(found[0].n_id, expected[0].n_id)
    found, expected = (of_links(data, pairs, disjoint) for pairs in (kept, data.edge_index))
    assert torch.equal(found.n_id, expected.n_id) and torch.equal(found.edge_label_index, expected.edge_label_index)


def of_links(data, pairs, disjoint):
    torch.manual_seed(3)
    return next(iter(LinkNeighborLoader(data, [2], edge_label_index=pairs, batch_size=9, disjoint=disjoint)))


def test_every_seed_once_if_shuffled():
    found = batches(graph(), [2], batch_size=7, shuffle=True)
    seeds = torch.cat([batch.n_id[:batch.batch_size] for batch in found])
    assert sorted(seeds.tolist()) == list(range(60)) and seeds.tolist() != list(range(60))


def test_without_seeds_edges_or_nodes():
    assert batches(graph(), [2], input_nodes=torch.empty(0, dtype=torch.long)) == []
    assert batches(graph(), [2], input_nodes=torch.zeros(60, dtype=torch.bool)) == []
    alone = Data(x=torch.ones(3, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    batch, = batches(alone, [2, 2], batch_size=4)
    assert batch.n_id.tolist() == [0, 1, 2] and batch.edge_index.shape == (2, 0)
    assert batch.num_sampled_nodes == [3, 0, 0] and batch.num_sampled_edges == [0, 0]
    assert batches(Data(num_nodes=0, edge_index=alone.edge_index), [2]) == []
    loop, = batches(Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 1, dtype=torch.long)), [-1, -1])
    assert loop.edge_index.tolist() == [[0], [0]] and loop.num_sampled_edges == [1, 0]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_all_neighbours_are_the_k_hop_neighbourhood(hops):
    data = graph(edges=80)
    for batch in batches(data, [-1] * hops, batch_size=4):
        seeds = batch.n_id[:batch.batch_size]
        nodes, _, _, kept = k_hop_subgraph(seeds, hops, data.edge_index, num_nodes=data.num_nodes, directed=True)
        assert torch.equal(batch.n_id.sort().values, nodes)
        assert torch.equal(batch.e_id.sort().values, kept.nonzero().view(-1))


@pytest.mark.parametrize("package", [pyg, plait.nn])
@pytest.mark.parametrize("layer", ["SAGEConv", "GATConv", "GraphConv"])
def test_seeds_get_what_they_get_on_the_whole_graph(package, layer):
    data = graph()
    torch.manual_seed(4)
    first, second = (getattr(package, layer)(width, 4) for width in (4, 4))

    def run(x, edge_index):
        return second(first(x, edge_index).relu(), edge_index)

    def trimmed(batch):
        x, index, _ = trim_to_layer(0, batch.num_sampled_nodes, batch.num_sampled_edges, batch.x, batch.edge_index)
        x, index, _ = trim_to_layer(1, batch.num_sampled_nodes, batch.num_sampled_edges,
                                    first(x, index).relu(), index)
        return second(x, index)

    wanted = run(data.x, data.edge_index)
    for batch in batches(data, [-1, -1], batch_size=9):
        seeds = slice(0, batch.batch_size)
        assert_close(run(batch.x, batch.edge_index)[seeds], wanted[batch.n_id[seeds]])
        assert_close(trimmed(batch)[seeds], wanted[batch.n_id[seeds]])


def test_basic_models_that_trim():
    data = graph()
    model = pyg.GraphSAGE(4, 8, 2, 3)
    wanted = model(data.x, data.edge_index)
    for batch in batches(data, [-1, -1], batch_size=9):
        found = model(batch.x, batch.edge_index, num_sampled_nodes_per_hop=batch.num_sampled_nodes,
                      num_sampled_edges_per_hop=batch.num_sampled_edges)
        assert_close(found[:batch.batch_size], wanted[batch.n_id[:batch.batch_size]])


@pytest.mark.parametrize("replace", [False, True])
def test_induced(replace):
    data = graph()
    for batch in batches(data, [3, 2], batch_size=9, subgraph_type="induced", replace=replace):
        check_rows(data, batch)
        inside = set(batch.n_id.tolist())
        assert len(inside) == batch.n_id.numel() and batch.get("num_sampled_nodes") is None
        wanted = [e for e, (u, v) in enumerate(data.edge_index.t().tolist()) if u in inside and v in inside]
        assert sorted(batch.e_id.tolist()) == wanted
        assert batch.edge_index[1].tolist() == sorted(batch.edge_index[1].tolist())


def test_induced_with_repeated_seeds():
    """Each place of a seed has the edges that lead to it, from first places."""
    data = graph()
    batch, = batches(data, [0], input_nodes=[2, 3, 2], batch_size=3, subgraph_type="induced")
    check_rows(data, batch)
    from_to = [tuple(data.edge_index[:, e].tolist()) for e in range(data.num_edges)]
    count = {pair: from_to.count(pair) for pair in ((u, v) for u in (2, 3) for v in (2, 3))}
    columns = list(zip(*batch.edge_index.tolist()))
    for col, v in enumerate((2, 3, 2)):
        assert [columns.count((row, col)) for row in range(3)] == [count[2, v], count[3, v], 0]


def test_bidirectional():
    data = graph()
    directional = batches(data, [3, 2], batch_size=9)
    for batch, one_way in zip(batches(data, [3, 2], batch_size=9, subgraph_type="bidirectional"), directional):
        assert torch.equal(batch.n_id, one_way.n_id)
        pairs = set(zip(*one_way.edge_index.tolist()))
        assert set(zip(*batch.edge_index.tolist())) == pairs | {(v, u) for u, v in pairs}


def test_graphs_that_are_sorted_already():
    data = graph()
    data = data.sort(sort_by_row=False)
    data.edge_attr = torch.arange(data.num_edges)
    for batch in batches(data, [3, 2], batch_size=9, is_sorted=True):
        check_rows(data, batch)
        check_hops(data, batch, [3, 2], batch.n_id[:batch.batch_size].tolist())


def test_int32():
    data = graph()
    data.edge_index = data.edge_index.int()
    for batch in batches(data, [3, 2], batch_size=9, input_nodes=torch.arange(9, dtype=torch.int32)):
        check_rows(data, batch)
        assert batch.n_id[:9].tolist() == list(range(9))


def test_every_neighbour_is_drawn_about_equally_often():
    """Chi-square of the hub's edges; its 0.9999 quantile by Wilson and Hilferty's approximation."""
    data = graph()
    there = edges_into(data)[2]
    torch.manual_seed(0)
    loader = NeighborLoader(data, [10], input_nodes=[2] * 2000, disjoint=True, batch_size=500)
    drawn = torch.cat([batch.e_id for batch in loader])
    expected = drawn.numel() / len(there)
    counts = drawn.bincount(minlength=data.num_edges)[there]
    free = len(there) - 1
    chi = float((counts - expected).square().sum() / expected) / (1 - 10 / len(there))
    assert drawn.numel() == 20000
    assert chi < free * (1 - 2 / (9 * free) + 3.72 * (2 / (9 * free)) ** 0.5) ** 3


def test_transforms_and_single_calls():
    data = graph()
    seen = []
    loader = NeighborLoader(data, [3], batch_size=30, transform=lambda batch: (seen.append(batch), 7)[1],
                            transform_sampler_output=lambda out: (seen.append(out), out)[1])
    assert list(loader) == [7, 7] and len(seen) == 4
    batch = NeighborLoader(data, [3, 2])([5, 9])
    check_hops(data, batch, [3, 2], [5, 9])


@pytest.mark.parametrize("ours,theirs,more", [
    (plait.loader.NeighborLoader, torch_geometric.loader.NeighborLoader, ["device"]),
    (plait.loader.LinkNeighborLoader, torch_geometric.loader.LinkNeighborLoader, ["device", "non_edges"]),
    (plait.loader.sampler.NeighborSampler, torch_geometric.sampler.NeighborSampler, ["device"])])
def test_classes(ours, theirs, more):
    assert issubclass(ours, theirs) and ours.__name__ == theirs.__name__
    own = [*inspect.signature(ours).parameters.values()]
    assert [p.name for p in own if p.kind is p.KEYWORD_ONLY] == more
    assert [p for p in own if p.kind is not p.KEYWORD_ONLY] == [*inspect.signature(theirs).parameters.values()]

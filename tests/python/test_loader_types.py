"""plait.loader on graphs with several types of nodes and edges."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from edges import assert_close
from loader_checks import check_hops_of_types, check_rows_of_types, graph_of_types
from plait.loader import LinkNeighborLoader, NeighborLoader

WRITES = ("author", "writes", "paper")


def by_kind(data, fanouts):
    return {kind: fanouts for kind in data.edge_types}


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("fanouts", [[3], [4, 2], [-1, 2, -1], [2, 0, 3]])
def test_each_hop(fanouts, disjoint):
    data = graph_of_types()
    for n, batch in enumerate(NeighborLoader(data, fanouts, "paper", disjoint=disjoint, batch_size=16)):
        ids = list(range(16 * n, min(16 * n + 16, 40)))
        assert batch["paper"].n_id[:len(ids)].tolist() == batch["paper"].input_id.tolist() == ids
        assert batch["paper"].batch_size == len(ids)
        check_rows_of_types(data, batch)
        check_hops_of_types(data, batch, by_kind(data, fanouts), {"paper": len(ids)})


def test_fanouts_by_edge_type():
    data = graph_of_types()
    fanouts = {kind: [n, 3 - n] for n, kind in enumerate(data.edge_types)}
    for batch in NeighborLoader(data, fanouts, ("topic", torch.tensor([5, 1, 1])), batch_size=3):
        check_rows_of_types(data, batch)
        check_hops_of_types(data, batch, fanouts, {"topic": 3})
    with pytest.raises(ValueError, match="Missing number of neighbors for edge type"):
        NeighborLoader(data, {WRITES: [2]}, "paper")
    with pytest.raises(ValueError, match="Not all edge types specified in 'num_neighbors' exist"):
        NeighborLoader(data, {**fanouts, ("a", "b", "c"): [1, 1]}, "paper")
    with pytest.raises(ValueError, match="Number of hops must be the same across all edge types"):
        NeighborLoader(data, {**fanouts, WRITES: [2]}, "paper")


def test_seeds_get_what_they_get_on_the_whole_graph():
    data = graph_of_types()
    torch.manual_seed(4)
    first, second = (pyg.HeteroConv({kind: pyg.SAGEConv((width, width), 3) for kind in data.edge_types})
                     for width in (1, 3))
    wanted = second(first(data.x_dict, data.edge_index_dict), data.edge_index_dict)["paper"]
    for batch in NeighborLoader(data, [-1, -1], "paper", batch_size=9):
        hidden = first(batch.x_dict, batch.edge_index_dict)
        for name in data.node_types:
            hidden.setdefault(name, torch.zeros(0, 3))
        found = second(hidden, batch.edge_index_dict)["paper"]
        seeds = slice(0, batch["paper"].batch_size)
        assert_close(found[seeds], wanted[batch["paper"].n_id[seeds]])


def test_induced_and_bidirectional():
    data = graph_of_types()
    for batch in NeighborLoader(data, [3, 2], "paper", subgraph_type="induced", batch_size=9):
        check_rows_of_types(data, batch)
        for kind in data.edge_types:
            ids = [set(batch[kind[side]].n_id.tolist()) for side in (0, 2)]
            inside = [e for e, (u, v) in enumerate(data[kind].edge_index.t().tolist()) if u in ids[0] and v in ids[1]]
            assert sorted(batch[kind].e_id.tolist()) == inside
    del data["paper", "has", "topic"], data["topic"]
    for batch in NeighborLoader(data, [3, 2], "paper", subgraph_type="bidirectional", batch_size=9):
        assert torch.equal(batch[WRITES].edge_index, batch["paper", "rev_writes", "author"].edge_index.flip(0))


@pytest.mark.parametrize("of", ["nodes", "papers", "edges"])
def test_times(of):
    """`papers`: only they have times, as seeds must if they are given none."""
    data, random = graph_of_types(), torch.Generator().manual_seed(2)
    stores = {"nodes": data.node_stores, "papers": [data["paper"]], "edges": data.edge_stores}[of]
    for store in stores:
        store.moment = torch.randint(20, (store.num_nodes if of != "edges" else store.num_edges,), generator=random)
    times = torch.randint(5, 25, (40,), generator=random)

    def allowed(kind, tree, edge):
        if of == "edges":
            return data[kind].moment[edge] <= own[tree]
        source = data[kind].edge_index[0, edge]
        return "moment" not in data[kind[0]] or data[kind[0]].moment[source] <= own[tree]

    loader = NeighborLoader(data, [3, 2], "paper", input_time=times, time_attr="moment", batch_size=20)
    for n, batch in enumerate(loader):
        own = times[20 * n:20 * n + 20]
        assert torch.equal(batch["paper"].seed_time, own)
        check_rows_of_types(data, batch)
        check_hops_of_types(data, batch, by_kind(data, [3, 2]), {"paper": 20}, allowed)
    without = NeighborLoader(data, [3, 2], "paper", time_attr="moment", batch_size=40)
    if of == "edges":
        with pytest.raises(ValueError, match="give input_time"):
            next(iter(without))
    else:
        own = data["paper"].moment
        check_hops_of_types(data, next(iter(without)), by_kind(data, [3, 2]), {"paper": 40}, allowed)


def test_weights():
    data = graph_of_types()
    data[WRITES].weight = (torch.arange(90) % 2).float()
    for batch in NeighborLoader(data, [3, 2], "paper", weight_attr="weight", batch_size=20):
        check_rows_of_types(data, batch)
        check_hops_of_types(data, batch, by_kind(data, [3, 2]), {"paper": 20},
                            lambda kind, tree, edge: kind != WRITES or edge % 2 == 1)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("kind", [WRITES, ("paper", "cites", "paper")])
def test_links(kind, disjoint):
    data = graph_of_types()
    wanted = data[kind].edge_index[:, :30]
    loader = LinkNeighborLoader(data, [3, 2], (kind, wanted), neg_sampling="binary", disjoint=disjoint, batch_size=10)
    for n, batch in enumerate(loader):
        check_rows_of_types(data, batch)
        label = batch[kind].edge_label_index
        ends = torch.stack([batch[kind[side]].n_id[ids] for side, ids in ((0, label[0]), (2, label[1]))])
        assert torch.equal(ends[:, :10], wanted[:, 10 * n:10 * n + 10])
        assert batch[kind].edge_label.tolist() == [1.0] * 10 + [0.0] * 10
        if disjoint:
            trees = [batch[kind[side]].batch[ids].tolist() for side, ids in ((0, label[0]), (2, label[1]))]
            assert trees == [[*range(10), *range(10)]] * 2
    loader = LinkNeighborLoader(data, [3], (kind, wanted), neg_sampling=dict(mode="triplet", amount=2), batch_size=30)
    batch, = loader
    assert torch.equal(batch[kind[0]].n_id[batch[kind[0]].src_index], wanted[0])
    assert torch.equal(batch[kind[2]].n_id[batch[kind[2]].dst_pos_index], wanted[1])
    assert batch[kind[2]].dst_neg_index.shape == (30, 2)


def test_types_without_seeds_or_edges():
    data = graph_of_types()
    data["nobody"].x = torch.ones(3, 1)
    data["nobody", "is", "paper"].edge_index = torch.empty(2, 0, dtype=torch.long)
    batch, = NeighborLoader(data, [2, 2], ("author", [14, 0]), batch_size=5)
    assert batch["nobody"].n_id.numel() == 0 and batch["nobody"].num_sampled_nodes == [0, 0, 0]
    assert batch["nobody", "is", "paper"].edge_index.shape == (2, 0)
    assert batch["author"].n_id[:2].tolist() == [14, 0]
    assert list(NeighborLoader(data, [2], ("author", torch.empty(0, dtype=torch.long)))) == []


def test_wrong_ends_are_named():
    data = graph_of_types()
    with pytest.raises(ValueError, match=r"^input_nodes\[1\] is 15, outside 0\.\.14; correct it$"):
        NeighborLoader(data, [2], ("author", [3, 15]))
    with pytest.raises(ValueError, match=r"^edge_label_index\[0, 1\] is 39, outside 0\.\.14; correct it$"):
        LinkNeighborLoader(data, [2], (WRITES, torch.tensor([[3, 39], [3, 39]])))
    data[WRITES].edge_index[0, 7] = 15
    name = r"^data\['author', 'writes', 'paper'\]\.edge_index\[0, 7\] is 15, outside 0\.\.14; correct it$"
    with pytest.raises(ValueError, match=name):
        NeighborLoader(data, [2], "paper")


def test_stores():
    data = graph_of_types()
    features, edges = MyFeatureStore(), MyGraphStore()
    for name in data.node_types:
        features.put_tensor(data[name].x, group_name=name, attr_name="x", index=None)
    for kind in data.edge_types:
        size = data[kind[0]].num_nodes, data[kind[2]].num_nodes
        edges.put_edge_index(tuple(data[kind].edge_index), edge_type=kind, layout="coo", size=size)
    for batch in NeighborLoader((features, edges), [3, 2], ("paper", torch.arange(40)), batch_size=16):
        for name in data.node_types:
            assert torch.equal(batch[name].x, data[name].x[batch[name].n_id])
        for kind in data.edge_types:
            index, ids = batch[kind].edge_index, [batch[kind[side]].n_id for side in (0, 2)]
            assert torch.equal(torch.stack([ids[0][index[0]], ids[1][index[1]]]),
                               data[kind].edge_index[:, batch[kind].e_id])
        check_hops_of_types(data, batch, by_kind(data, [3, 2]), {"paper": batch["paper"].batch_size})

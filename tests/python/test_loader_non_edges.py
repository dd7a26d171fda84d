"""plait.loader.LinkNeighborLoader with negative edges that are no edges of the graph."""

import pickle
import re

import pytest
import torch
import torch_geometric.sampler
from torch_geometric.data import Data
from torch_geometric.testing import MyFeatureStore, MyGraphStore

import plait
from loader_checks import check_rows, graph, graph_of_types
from plait.loader import LinkNeighborLoader
from plait.loader.sampler import NeighborSampler

WRITES = ("author", "writes", "paper")


def dense(nodes=12, missing=((1, 5), (7, 2), (11, 3))):
    """Returns a graph of all edges but loops and the missing ones."""
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v and (u, v) not in missing]
    return Data(x=torch.arange(nodes)[:, None].float(), edge_index=torch.tensor(pairs).t())


def batches(data, *arguments, **options):
    torch.manual_seed(3)
    return list(LinkNeighborLoader(data, *arguments, **options))


def pairs_of(batch, index):
    return set(zip(*batch.n_id[index].tolist()))


def negative_pairs(batch):
    return pairs_of(batch, batch.edge_label_index[:, batch.edge_label == 0])


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("amount", [1, 2.5])
def test_pairs_are_no_edges(amount, disjoint):
    data = graph(nodes=30, edges=500, isolated=0)
    edges = set(zip(*data.edge_index.tolist()))
    sampling = {"mode": "binary", "amount": amount}
    seen = set()
    for batch in batches(data, [3, 2], neg_sampling=sampling, batch_size=40, disjoint=disjoint, non_edges=True):
        own = batch.input_id.numel()
        assert batch.edge_label_index.size(1) == own + -int(-own * amount // 1)
        assert pairs_of(batch, batch.edge_label_index[:, :own]) <= edges
        seen |= negative_pairs(batch)
    assert not seen & edges and all(u != v for u, v in seen) and len(seen) > 200
    random = [negative_pairs(batch) for batch in batches(data, [3], neg_sampling=sampling, batch_size=40)]
    assert set().union(*random) & edges  # as in PyTorch Geometric


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("amount", [1, 3])
def test_triplets(amount, disjoint):
    data = graph(nodes=30, edges=400, isolated=0)
    edges = set(zip(*data.edge_index.tolist()))
    for batch in batches(data, [2], batch_size=50, disjoint=disjoint, non_edges=True,
                         neg_sampling={"mode": "triplet", "amount": amount}):
        check_rows(data, batch)
        source = batch.n_id[batch.src_index][:, None].expand(-1, amount)
        negative = batch.n_id[batch.dst_neg_index].view(-1, amount)
        found = set(zip(source.flatten().tolist(), negative.flatten().tolist()))
        assert not found & edges and all(u != v for u, v in found)
        assert pairs_of(batch, torch.stack([batch.src_index, batch.dst_pos_index])) <= edges


def test_the_last_pairs_are_found():
    data = dense()
    for batch in batches(data, [2], neg_sampling="binary", batch_size=50, non_edges=True):
        assert negative_pairs(batch) == {(1, 5), (7, 2), (11, 3)}


def test_pairs_of_a_batch_differ():
    pairs = plait.NonEdges(dense(30, [(u, u + 1) for u in range(20)]).edge_index, 30)
    batch, = batches(graph(nodes=30, edges=100, isolated=0), [2], torch.arange(20).expand(2, -1), batch_size=20,
                     neg_sampling="binary", non_edges=pairs)
    assert len(negative_pairs(batch)) == 20


def test_pairs_in_edge_label_index_are_none():
    """As edges that are held back for supervision."""
    held = torch.tensor([[1, 7], [5, 2]])
    batch, = batches(dense(), [2], held, neg_sampling={"mode": "binary", "amount": 20}, batch_size=2, non_edges=True)
    assert negative_pairs(batch) == {(11, 3)}


def test_pairs_that_are_given():
    data = graph(nodes=30, edges=100, isolated=0)
    pairs = plait.NonEdges(dense(30, [(0, 1), (2, 3)]).edge_index, 30)
    for batch in batches(data, [2], neg_sampling="binary", batch_size=50, non_edges=pairs):
        assert negative_pairs(batch) == {(0, 1), (2, 3)}


def test_one_set_of_nodes_is_none_of_two():
    data = graph_of_types()
    with pytest.raises(ValueError, match="^non_edges has pairs of .* num_nodes$"):
        LinkNeighborLoader(data, [2], (WRITES, data[WRITES].edge_index), neg_sampling="binary",
                           non_edges=plait.NonEdges(data[WRITES].edge_index, 1000))


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_edges_on_a_gpu_do_not_take_workers_there(mode):
    pairs = plait.NonEdges(dense(30, [(0, 1), (2, 3), (4, 5)]).edge_index, 30)
    pairs.device = torch.device("cuda", 0)  # as of edges that were there
    data = graph(nodes=30, edges=100, isolated=0)
    index = torch.tensor([[0, 2, 4], [1, 3, 5]])
    loader = LinkNeighborLoader(data, [2], index, neg_sampling=mode, batch_size=3, non_edges=pairs, num_workers=2)
    assert all(batch.n_id.device.type == "cpu" for batch in loader)


@pytest.mark.parametrize("kind", [WRITES, ("paper", "cites", "paper")])
@pytest.mark.parametrize("stores", [False, True])
def test_types(kind, stores):
    data = given = graph_of_types()
    if stores:
        features, edges = given = MyFeatureStore(), MyGraphStore()
        for name in data.node_types:
            features.put_tensor(data[name].x, group_name=name, attr_name="x", index=None)
        for each in data.edge_types:
            size = data[each[0]].num_nodes, data[each[2]].num_nodes
            edges.put_edge_index(tuple(data[each].edge_index), edge_type=each, layout="coo", size=size)
    known = set(zip(*data[kind].edge_index.tolist()))
    seen = set()
    for batch in batches(given, [2], (kind, data[kind].edge_index), neg_sampling="binary", batch_size=30,
                         non_edges=True):
        index = batch[kind].edge_label_index[:, batch[kind].edge_label == 0]
        seen |= set(zip(batch[kind[0]].n_id[index[0]].tolist(), batch[kind[2]].n_id[index[1]].tolist()))
    assert len(seen) > 50 and not seen & known
    assert any(u == v for u, v in seen) == (kind == WRITES)


def test_backward():
    data = dense()
    sampler = NeighborSampler(data, [2], sample_direction="backward")
    for batch in batches(data, [2], neg_sampling="binary", batch_size=50, non_edges=True, neighbor_sampler=sampler):
        assert negative_pairs(batch) == {(1, 5), (7, 2), (11, 3)}


@pytest.mark.parametrize("workers", [0, 2])
def test_seeds_and_workers(workers):
    loader = LinkNeighborLoader(graph(), [2], neg_sampling="binary", batch_size=100, non_edges=True,
                                num_workers=workers)
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append([sorted(negative_pairs(batch)) for batch in loader])
    assert found[0] == found[1] and found[0][0] != found[0][1]
    copy = pickle.loads(pickle.dumps(loader.neg_sampling))
    assert len(copy.pairs) == len(loader.neg_sampling.pairs) and copy.amount == 1


def timed():
    data = graph()
    data.moment = torch.arange(60)
    return data


COMPLETE = dense(4, ())
FULL = dense(12, ((1, 5), (7, 2)))
PAIR = torch.tensor([[0], [1]])
WEIGHTED = {"mode": "binary", "amount": 1, "src_weight": torch.ones(60)}
WRONG = {
    "non_edges is given, but there are no negative edges without neg_sampling; give it, too":
        lambda: batches(graph(), [2], non_edges=True),
    "non_edges is of type int; give True, False or a plait.NonEdges":
        lambda: batches(graph(), [2], neg_sampling="binary", non_edges=1),
    "non_edges has pairs of 61 sources and 61 targets, but there are 60 and 60 nodes; give plait.NonEdges these as "
    "num_nodes":
        lambda: batches(graph(), [2], neg_sampling="binary", non_edges=plait.NonEdges(graph().edge_index, 61)),
    "non_edges has ascending pairs, but a triplet's negative nodes are targets of any source; leave ascending out":
        lambda: batches(graph(), [2], neg_sampling="triplet",
                        non_edges=plait.NonEdges(graph().edge_index, 60, ascending=True)),
    "non_edges draws all pairs equally likely; leave src_weight and dst_weight out":
        lambda: batches(graph(), [2], neg_sampling=WEIGHTED, non_edges=True),
    "non_edges does not regard times of nodes, so that negative nodes could be later than their edge; leave it out":
        lambda: batches(timed(), [2], time_attr="moment", edge_label_time=torch.full((443,), 70),
                        neg_sampling="binary", non_edges=True),
    "non_edges needs Plait's sampler; leave neighbor_sampler out, or give a plait.loader.sampler.NeighborSampler":
        lambda: batches(graph(), [2], neg_sampling="binary", non_edges=True,
                        neighbor_sampler=torch_geometric.sampler.NeighborSampler(graph(), [2])),
    "all pairs of nodes are edges, so that there are no negative edges; leave non_edges out":
        lambda: batches(COMPLETE, [2], neg_sampling="binary", non_edges=True),
    "vertex 0 has edges to all 4 vertices, so that no other pair of it can be drawn":
        lambda: batches(COMPLETE, [2], neg_sampling="triplet", non_edges=True),
    # These are told before the first batch.
    "vertex 2 has edges to all 12 vertices, so that no other pair of it can be drawn":
        lambda: LinkNeighborLoader(FULL, [2], torch.tensor([[1, 7, 2, 3], [0, 0, 0, 0]]), neg_sampling="triplet",
                                   batch_size=1, non_edges=True),
    "all pairs of nodes are edges, so that there are no negative edges; leave non_edges out ":
        lambda: LinkNeighborLoader(COMPLETE, [2], neg_sampling="binary", non_edges=True),
    "non_edges is of edges of type ('author', 'wrote', 'paper'), but the graph has [('paper', 'cites', 'paper'), "
    "('author', 'writes', 'paper'), ('paper', 'has', 'topic'), ('paper', 'rev_writes', 'author')]; give a plait.NonEdges "
    "of the edges that there are":
        lambda: LinkNeighborLoader(graph_of_types(), [2], (("author", "wrote", "paper"), PAIR), neg_sampling="binary",
                                   non_edges=True),
    "edge_label_index is of type ('nobody', 'writes', 'paper'), but the graph has no nodes of type 'nobody'; give two of "
    "['paper', 'author', 'topic']":
        lambda: LinkNeighborLoader(graph_of_types(), [2], (("nobody", "writes", "paper"), PAIR), neg_sampling="binary",
                                   non_edges=True),
}


@pytest.mark.parametrize("text", WRONG)
def test_refuses(text):
    with pytest.raises(ValueError, match=f"^{re.escape(text.rstrip())}$"):
        WRONG[text]()


def test_draws_do_not_depend_on_the_check_of_sources():
    """It draws nothing of torch's generator."""
    pairs = plait.NonEdges(graph().edge_index, 60)
    torch.manual_seed(4)
    first = torch.rand(1)
    torch.manual_seed(4)
    pairs.check_sources(torch.arange(60))
    assert torch.rand(1) == first

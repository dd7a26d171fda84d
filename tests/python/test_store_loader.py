"""Loaders on plait.store: their batches are those of the same graph as a Data or HeteroData. PyTorch Geometric's
own classes read the stores too."""

import numpy as np
import pytest
import torch
import torch_geometric.loader
import torch_geometric.sampler
from torch_geometric.data import Data, HeteroData

import plait
from loader_checks import check_hops, check_rows, graph, graph_of_types
from plait.loader import LinkNeighborLoader, NeighborLoader
from plait.loader.sampler import NeighborSampler
from plait.store import FeatureStore, GraphStore
from plait.store.features import EDGES
from test_checkpoint import run

FIELDS = ("n_id", "e_id", "edge_index", "x", "y", "input_id", "batch_size", "num_sampled_nodes", "num_sampled_edges",
          "batch")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A .plait file of loader_checks.graph(), whose nodes have been renumbered in it."""
    folder, data = tmp_path_factory.mktemp("file"), graph()
    np.savez(folder / "g.npz", edge_index=data.edge_index.numpy(), x=data.x.numpy(), y=data.y.numpy())
    run("convert", folder / "g.npz", folder / "f.plait")
    run("reorder", folder / "f.plait", folder / "g.plait", "--method", "degree")
    return folder / "g.plait"


def of_file(file):
    """Returns a Data of the graph in a file."""
    loaded = plait.Graph.load(file)
    return Data(x=loaded.x, y=loaded.y, edge_index=loaded.edge_index)


def stores_of(data, layout="coo"):
    """Returns stores of a Data."""
    features, edges = FeatureStore(), GraphStore()
    for name in ("x", "y"):
        features.put_tensor(data[name], None, name, None)
    by_layout = GraphStore()
    size = data.num_nodes, data.num_nodes
    by_layout.put_edge_index(tuple(data.edge_index), None, "coo", size=size)
    edges.put_edge_index(by_layout.get_edge_index(None, layout), None, layout, size=size)
    return features, edges


def drawn(make, *arguments, **options):
    torch.manual_seed(5)
    return list(make(*arguments, **options))


def assert_equal_batches(found, wanted, fields=FIELDS):
    assert len(found) == len(wanted) > 0
    for mine, theirs in zip(found, wanted):
        for field in fields:
            a, b = mine.get(field), theirs.get(field)
            assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b, field
        assert mine.num_nodes == theirs.num_nodes


OPTIONS = [{}, {"replace": True}, {"disjoint": True}, {"subgraph_type": "induced"}, {"num_workers": 2},
           {"shuffle": True}, {"subgraph_type": "bidirectional"}]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_as_a_data(file, options):
    options = {"batch_size": 16, "input_nodes": torch.arange(60)} | options
    wanted = drawn(NeighborLoader, of_file(file), [3, 2], is_sorted=True, **options)
    assert_equal_batches(drawn(NeighborLoader, plait.store.load(file), [3, 2], **options), wanted)


@pytest.mark.parametrize("layout", ["coo", "csc"])
def test_tensors_as_a_data(layout):
    data = graph()
    options = {"batch_size": 16, "input_nodes": data.y == 1}
    found = drawn(NeighborLoader, stores_of(data, layout), [3, 2], **options)
    fields = FIELDS if layout == "coo" else [name for name in FIELDS if name != "e_id"]
    assert_equal_batches(found, drawn(NeighborLoader, data, [3, 2], **options), fields)


def test_batches_of_a_file_hop_by_hop(file):
    data = of_file(file)
    data.edge_attr = torch.arange(data.num_edges)
    for batch in NeighborLoader(plait.store.load(file), [4, 2], torch.arange(60), batch_size=60):
        batch.edge_attr = batch.e_id
        check_rows(data, batch)
        check_hops(data, batch, [4, 2], range(60))


@pytest.mark.parametrize("options", [
    {}, {"neg_sampling": "binary"}, {"neg_sampling": dict(mode="triplet", amount=2)}, {"disjoint": True}])
def test_links(file, options):
    wanted_edges = of_file(file).edge_index[:, 5:45]
    options = {"batch_size": 16} | options
    wanted = drawn(LinkNeighborLoader, of_file(file), [3, 2], edge_label_index=wanted_edges, is_sorted=True, **options)
    found = drawn(LinkNeighborLoader, plait.store.load(file), [3, 2], edge_label_index=(None, wanted_edges), **options)
    fields = ("n_id", "e_id", "edge_index", "x", "y", "input_id", "edge_label_index", "edge_label", "batch",
              "src_index", "dst_pos_index", "dst_neg_index")
    assert_equal_batches(found, wanted, fields)


def test_loaders_of_pytorch_geometric_with_our_sampler(file):
    stores = plait.store.load(file)
    sampler = NeighborSampler(stores, [3, 2])
    ids, ends = torch.arange(60), of_file(file).edge_index[:, :20]
    found = drawn(torch_geometric.loader.NodeLoader, stores, sampler, ids, batch_size=16)
    assert_equal_batches(found, drawn(NeighborLoader, stores, [3, 2], ids, batch_size=16))
    found = drawn(torch_geometric.loader.LinkLoader, stores, sampler, (None, ends), batch_size=16)
    wanted = drawn(LinkNeighborLoader, stores, [3, 2], (None, ends), batch_size=16)
    assert_equal_batches(found, wanted, ("n_id", "e_id", "x", "edge_label_index"))


@pytest.mark.parametrize("kind", ["file", "coo", "csc", "csr"])
def test_the_sampler_of_pytorch_geometric_reads_the_edges(file, kind, recwarn):
    data = of_file(file)
    stores = plait.store.load(file) if kind == "file" else stores_of(data, kind)
    theirs = torch_geometric.sampler.NeighborSampler(stores, [3])
    assert theirs.num_nodes == 60
    assert torch.equal(theirs.colptr.diff(), data.edge_index[1].bincount(minlength=60))
    assert torch.equal(theirs.row, data.edge_index[0]) or kind != "file"
    columns = torch.arange(60).repeat_interleave(theirs.colptr.diff())
    assert sorted(zip(theirs.row.tolist(), columns.tolist())) == sorted(zip(*data.edge_index.tolist()))


def types(data):
    features, edges = FeatureStore(), GraphStore()
    for name in data.node_types:
        features.put_tensor(data[name].x, name, "x", None)
    for kind in data.edge_types:
        features.put_tensor(data[kind].edge_attr, kind, "edge_attr", None)
        size = data[kind[0]].num_nodes, data[kind[2]].num_nodes
        edges.put_edge_index(tuple(data[kind].edge_index), kind, "coo", size=size)
    return features, edges


def test_types():
    data = graph_of_types()
    options = {"input_nodes": ("paper", torch.arange(40)), "batch_size": 16}
    found = drawn(NeighborLoader, types(data), [3, 2], **options)
    for mine, theirs in zip(found, drawn(NeighborLoader, data, [3, 2], **options)):
        for name in data.node_types:
            assert torch.equal(mine[name].n_id, theirs[name].n_id)
            assert torch.equal(mine[name].x, data[name].x[mine[name].n_id])
        for kind in data.edge_types:
            assert torch.equal(mine[kind].e_id, theirs[kind].e_id)
            assert torch.equal(types(data)[0][kind, "edge_attr", mine[kind].e_id], mine[kind].e_id)


def test_the_whole_type_as_seeds():
    data = graph_of_types()
    batch, = NeighborLoader(types(data), [1], "author", batch_size=99)
    assert torch.equal(batch["author"].n_id[:15], torch.arange(15))


def stored(layout):
    """Returns a graph and its stores. The ids of edges are in the order in which they are stored."""
    data = graph()
    stores = stores_of(data, layout)
    data.edge_index = torch.stack(stores[1].get_edge_index(None, "coo"))
    data.edge_attr = torch.arange(data.num_edges)
    return data, stores


@pytest.mark.parametrize("of", ["nodes", "edges"])
@pytest.mark.parametrize("layout", ["coo", "csc"])
def test_times(of, layout):
    """Neighbours are not later than the seed. In whatever order edges are stored, times are in that of their ids."""
    data, stores = stored(layout)
    data.moment = torch.arange(60 if of == "nodes" else data.num_edges) * 7 % 23
    seed_times = torch.arange(60) % 20
    stores[0].put_tensor(data.moment, None if of == "nodes" else EDGES, "moment", None)
    for n, batch in enumerate(NeighborLoader(stores, [3, 2], torch.arange(60), seed_times, time_attr="moment",
                                             batch_size=20)):
        times = data.moment[data.edge_index[0]] if of == "nodes" else data.moment
        past = times <= seed_times[20 * n:20 * n + 20, None]  # by seed and edge
        check_hops(data, batch, [3, 2], range(20 * n, 20 * n + 20),
                   allowed=lambda tree, edge, past=past: bool(past[tree, edge]))


@pytest.mark.parametrize("layout", ["coo", "csc"])
def test_weights(layout):
    """Edges of weight 0 are never drawn."""
    data, stores = stored(layout)
    weights = torch.arange(data.num_edges) % 3
    stores[0].put_tensor(weights, EDGES, "weight", None)
    for n, batch in enumerate(NeighborLoader(stores, [3, 2], torch.arange(60), weight_attr="weight", batch_size=20)):
        check_hops(data, batch, [3, 2], range(20 * n, 20 * n + 20), allowed=lambda tree, edge: bool(weights[edge]))


def test_weights_of_a_file(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.array([[1, 2, 3], [0, 0, 0]]), edge_weight=np.array([0, 2, 0], np.float32))
    run("convert", tmp_path / "g.npz", tmp_path / "g.plait")
    batch, = NeighborLoader(plait.store.load(tmp_path / "g.plait"), [-1], [0], weight_attr="edge_weight")
    assert batch.n_id.tolist() == [0, 2]


def of_types(data, name, values):
    """Returns stores and a graph of types with values of edges."""
    features, edges = types(data)
    for kind in data.edge_types:
        data[kind][name] = values(kind)
        features.put_tensor(data[kind][name], kind, name, None)
    return features, edges


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_weights_of_types(direction):
    data = graph_of_types()
    data["author", "cites", "author"].edge_index = torch.randint(15, (2, 30))
    data["topic", "has", "paper"].edge_index = torch.stack([torch.arange(5), torch.arange(5)])  # beside its opposite
    for kind in data.edge_types:
        data[kind].edge_attr = torch.arange(data[kind].num_edges)
    for given in (of_types(data, "weight", lambda kind: torch.arange(data[kind].num_edges) % 2), data):
        sampler = NeighborSampler(given, [-1], weight_attr="weight", sample_direction=direction)
        batch, = NeighborLoader(given, [-1], ("paper", torch.arange(40)), batch_size=40, neighbor_sampler=sampler)
        for kind in data.edge_types:
            allowed = data[kind].weight * (kind[2 if direction == "forward" else 0] == "paper")
            assert torch.equal(batch[kind].e_id.sort().values, allowed.nonzero().view(-1)), kind


def test_times_of_typed_edges():
    data = graph_of_types()
    for given in (of_types(data, "moment", lambda kind: torch.arange(data[kind].num_edges) % 9), data):
        batch, = NeighborLoader(given, [-1], ("paper", torch.arange(40)), torch.full((40,), 3), batch_size=40,
                                time_attr="moment")
        for kind in data.edge_types:
            allowed = (data[kind].moment <= 3) & (kind[2] == "paper")
            assert torch.equal(batch[kind].e_id.sort().values, allowed.nonzero().view(-1)), kind


def test_names_that_are_not_there():
    features, edges = stores_of(graph())
    for option in ("time_attr", "weight_attr"):
        with pytest.raises(ValueError, match=f"^{option} is 'none', of which the feature store has "):
            NeighborLoader((features, edges), [2], [0], **{option: "none"})
    with pytest.raises(ValueError, match="^weight_attr is 'y', of which the feature store has no tensor for edges"):
        NeighborLoader((features, edges), [2], [0], weight_attr="y")
    features.put_tensor(torch.zeros(443, dtype=torch.long), EDGES, "y", None)
    with pytest.raises(ValueError, match="^time_attr is 'y', of which the feature store has tensors for both nodes and "):
        NeighborLoader((features, edges), [2], [0], time_attr="y")


@pytest.mark.parametrize("seeds", [None, range(60), (None, torch.arange(60)), (None, None), np.arange(60)])
def test_seeds_without_types(seeds):
    data = graph()
    found = drawn(NeighborLoader, stores_of(data), [3], input_nodes=seeds, batch_size=20)
    assert_equal_batches(found, drawn(NeighborLoader, data, [3], batch_size=20))


@pytest.mark.parametrize("pairs", [None, torch.tensor([[5, 1, 7], [2, 2, 9]])])
def test_links_without_types(pairs):
    data, fields = graph().sort(sort_by_row=False), ("n_id", "e_id", "edge_index", "edge_label_index", "x")
    found = drawn(LinkNeighborLoader, stores_of(data), [3], edge_label_index=pairs, batch_size=100)
    assert_equal_batches(found, drawn(LinkNeighborLoader, data, [3], edge_label_index=pairs, batch_size=100), fields)


def test_types_without_features():
    """Such a type is known by its edges alone."""
    data, features, edges = HeteroData(), FeatureStore(), GraphStore()
    data["paper"].x, data["author"].num_nodes = torch.rand(5, 3), 4
    writes = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]])
    features.put_tensor(data["paper"].x, "paper", "x", None)
    for kind, index in ((("author", "writes", "paper"), writes), (("paper", "by", "author"), writes.flip(0))):
        data[kind].edge_index = index
        edges.put_edge_index(tuple(index), kind, "coo", size=(data[kind[0]].num_nodes, data[kind[2]].num_nodes))
    for seeds in (("paper", torch.arange(5)), "author", ("author", [1, 2])):
        ours, theirs = (drawn(NeighborLoader, graph, [2, 2], input_nodes=seeds, batch_size=3)
                        for graph in ((features, edges), data))
        for batch, same in zip(ours, theirs, strict=True):
            assert torch.equal(batch["paper"].x, same["paper"].x)
            assert batch["author"].num_nodes == same["author"].num_nodes
            assert torch.equal(batch["author"].n_id, same["author"].n_id)


@pytest.mark.parametrize("make", [graph_of_types, lambda: types(graph_of_types())])
@pytest.mark.parametrize("given", [
    ("paper", "none", "author"), (("paper", "none", "author"), None), "writes", 5, (None, torch.ones(2, 3)), ("nobody", "paper")])
def test_links_of_types_that_are_missing(make, given):
    with pytest.raises(ValueError, match=r"^edge_label_index is of type .*; give one of the types \[\('"):
        LinkNeighborLoader(make(), [2], given)


def test_wrong_types_of_links():
    pairs = torch.tensor([[1], [2]])
    for given in (("a", "b", "c"), (("a", "b", "c"), pairs)):
        with pytest.raises(ValueError, match="^edge_label_index has a type, but the graph has none; give a tensor "):
            LinkNeighborLoader(stores_of(graph()), [2], given)
    for given in (None, pairs):
        with pytest.raises(ValueError, match="^edge_label_index is of no type of edges; give .type, pairs., with one of "):
            LinkNeighborLoader(types(graph_of_types()), [2], given)


@pytest.mark.parametrize("make", [graph_of_types, lambda: types(graph_of_types())])
def test_types_that_are_missing(make):
    for seeds in (None, torch.arange(3), "nobody", ("nobody", [1])):
        with pytest.raises(ValueError, match=r"^input_nodes are of type .*; give \(type, ids\), with one of the types "):
            NeighborLoader(make(), [2], seeds)


def test_stores_that_do_not_belong_together(file):
    features, edges = plait.store.load(file)
    others, _ = stores_of(Data(x=torch.ones(61, 1), y=torch.ones(61), edge_index=torch.zeros(2, 1, dtype=torch.long)))
    with pytest.raises(ValueError, match="^the feature store has 61 rows, but the graph store has 60 nodes; give as "):
        NeighborLoader((others, edges), [2], torch.arange(5))
    features, edges = types(graph_of_types())
    features.update_tensor(torch.ones(16, 2), "author", "x", None)
    with pytest.raises(ValueError, match="^the feature store's group 'author' has 16 rows, but the graph store has 15 "):
        NeighborLoader((features, edges), [2], ("paper", torch.arange(5)))


def test_wrong_seeds(file):
    with pytest.raises(ValueError, match=r"^input_nodes\[1\] is 60, outside 0\.\.59; correct it$"):
        NeighborLoader(plait.store.load(file), [2], torch.tensor([3, 60]))
    with pytest.raises(ValueError, match=r"^edge_label_index\[1, 0\] is 60, outside 0\.\.59; correct it$"):
        LinkNeighborLoader(plait.store.load(file), [2], (None, torch.tensor([[3], [60]])))

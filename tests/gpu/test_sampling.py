"""Samples on a GPU: batches of plait.loader, bit by bit those of the CPU. scripts/gpu-test runs it."""

import concurrent.futures
import gc
import pathlib
import pickle
import sys

import pytest
import torch
import torch_geometric.nn
from torch_geometric.data import Data
from torch_geometric.testing import MyFeatureStore, MyGraphStore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conftest  # noqa: F401  the package under test
from edges import assert_close
from loader_checks import check_hops, check_rows, graph, graph_of_types

import plait
from plait.loader import LinkNeighborLoader, NeighborLoader
from plait.loader.sampler import NeighborSampler

GPU = torch.device("cuda", 0)
WRITES = ("author", "writes", "paper")


def assert_same(here, there, name="batch"):
    """Compares what batches hold: the tensors of `there` are on the GPU."""
    if isinstance(here, dict):
        assert set(here) == set(there), name
        for key in here:
            assert_same(here[key], there[key], f"{name}.{key}")
    elif isinstance(here, torch.Tensor):
        assert there.device == GPU and there.dtype == here.dtype, name
        assert torch.equal(there.cpu(), here), name
    else:
        assert here == there, name


def assert_same_batches(here, there, without=()):
    """Compares the batches of two loaders, the second of which is on the GPU. Returns how many there are."""
    both = []
    for loader in (here, there):
        torch.manual_seed(3)
        both.append([{key: value for key, value in batch.to_dict().items() if key not in without} for batch in loader])
    assert len(both[0]) == len(both[1])
    for one, other in zip(*both):
        assert_same(one, other)
    return len(both[0])


def check(loader, *arguments, without=(), **options):
    """Compares a loader's batches on both devices."""
    assert_same_batches(*(loader(*arguments, device=device, **options) for device in ("cpu", GPU)), without)


def with_values(data):
    """Adds weights, and times of edges and nodes. Their names tell whose they are where there are as many."""
    random = torch.Generator().manual_seed(5)
    edges, nodes = data.num_edges, data.num_nodes
    data.edge_weight = torch.rand(edges, generator=random) * (torch.arange(edges) % 4 > 0)
    data.edge_moment = torch.randint(-5, 20, (edges,), generator=random)
    data.node_moment = torch.randint(-5, 20, (nodes,), generator=random)
    return data


def of_edges(nodes, pairs):
    index = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous()
    return Data(x=torch.randn(nodes, 2), edge_index=index)


GRAPHS = {
    "random": graph,
    "large": lambda: graph(nodes=5000, edges=90000),
    "no edges": lambda: of_edges(5, []),
    "one node": lambda: of_edges(1, []),
    "one loop": lambda: of_edges(1, [(0, 0)]),
    "parallel loops": lambda: of_edges(2, [(0, 0), (0, 0), (1, 0), (1, 1), (1, 1)]),
    "star": lambda: of_edges(900, [(v, 0) for v in range(1, 900)]),
}
FANOUTS = ([], [0], [3], [4, 2], [-1, 2, 1], [500, 1], [2, 0, 3], [-1, -1])
TIMED = {"input_time": True}  # stands for times of all seeds
KINDS = {
    "plain": {},
    "replace": {"replace": True},
    "disjoint": {"disjoint": True},
    "disjoint, replace": {"disjoint": True, "replace": True},
    "induced": {"subgraph_type": "induced"},
    "bidirectional": {"subgraph_type": "bidirectional"},
    "weights": {"weight_attr": "edge_weight"},
    "weights, replace": {"weight_attr": "edge_weight", "replace": True},
    "weights, disjoint": {"weight_attr": "edge_weight", "disjoint": True},
    "edge times": {"time_attr": "edge_moment", **TIMED},
    "edge times, last": {"time_attr": "edge_moment", "temporal_strategy": "last", **TIMED},
    "node times": {"time_attr": "node_moment"},
    "node times of seeds": {"time_attr": "node_moment", **TIMED},
    "node times, last": {"time_attr": "node_moment", "temporal_strategy": "last", **TIMED},
    "node times, weights, replace": {"time_attr": "node_moment", "weight_attr": "edge_weight", "replace": True},
}


def seeds_of(data):
    """Returns seeds of which many come twice, at most 200."""
    return torch.randint(data.num_nodes, (min(3 * data.num_nodes, 200),), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_the_cpus(kind, shape):
    data = with_values(GRAPHS[shape]())
    options, seeds = dict(KINDS[kind]), seeds_of(data)
    if "input_time" in options:
        options["input_time"] = torch.randint(-6, 22, seeds.shape, generator=torch.Generator().manual_seed(2))
    # A bidirectional sample joins edges, any of which gives its id and its attributes.
    without = [key for key in ("e_id", *data.keys()) if key == "e_id" or (key != "edge_index" and data.is_edge_attr(key))]
    for fanouts in FANOUTS:
        check(NeighborLoader, data, fanouts, seeds, batch_size=64, without=without if kind == "bidirectional" else (),
              **options)


def test_rows_and_hops():
    data = graph()
    for fanouts in ([4, 2], [-1, -1]):
        for n, batch in enumerate(NeighborLoader(data, fanouts, batch_size=16, device="cuda")):
            assert {value.device for value in batch.to_dict().values() if isinstance(value, torch.Tensor)} == {GPU}
            check_rows(data, batch.cpu())
            check_hops(data, batch.cpu(), fanouts, range(16 * n, min(16 * n + 16, 60)))


def test_seeds_get_what_they_get_on_the_whole_graph():
    data = graph()
    torch.manual_seed(4)
    model = torch_geometric.nn.GraphSAGE(4, 8, 2, 3)
    wanted = model(data.x, data.edge_index)
    model.to(GPU)
    for batch in NeighborLoader(data, [-1, -1], batch_size=9, device=GPU):
        found = model(batch.x, batch.edge_index)[:batch.batch_size]
        assert_close(found.cpu(), wanted[batch.n_id[:batch.batch_size].cpu()])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "input_time" not in KINDS[kind] and kind != "bidirectional"])
def test_graphs_that_are_on_the_gpu(kind):
    """Nothing is said of a device. Edges are sorted before, because a GPU may sort equal ones otherwise."""
    data = graph(nodes=500, edges=6000).sort(sort_by_row=False)
    data = with_values(data)
    data.node_moment = torch.arange(500) // 9  # of edges into one node, later sources come later
    options = {"is_sorted": True, "batch_size": 64, **KINDS[kind]}
    if "time_attr" in options:
        order = torch.argsort(data.edge_index[1] * 500 + data.node_moment[data.edge_index[0]], stable=True)
        data.edge_index, data.edge_weight, data.edge_moment, data.edge_attr = (
            data.edge_index[:, order], data.edge_weight[order], data.edge_moment[order], data.edge_attr[order])
    there = data.clone().to(GPU)
    assert assert_same_batches(*(NeighborLoader(each, [4, 2], **options) for each in (data, there))) == 8
    for batch in NeighborLoader(there, [4, 2], num_workers=2, **options):
        assert batch.x.device == GPU and batch.n_id.device.type == "cpu"
        assert torch.equal(batch.x, there.x[batch.n_id.to(GPU)])


def typed(of="nodes"):
    data, random = graph_of_types(), torch.Generator().manual_seed(2)
    for store in data.node_stores if of == "nodes" else data.edge_stores:
        count = store.num_nodes if of == "nodes" else store.num_edges
        store.moment = torch.randint(20, (count,), generator=random)
    data[WRITES].weight = (torch.arange(90) % 3).float()
    data["nobody"].x = torch.ones(3, 1)
    data["nobody"].moment = torch.ones(3, dtype=torch.long)
    data["nobody", "is", "paper"].edge_index = torch.empty(2, 0, dtype=torch.long)
    if of != "nodes":
        del data["nobody"].moment
        data["nobody", "is", "paper"].moment = torch.empty(0, dtype=torch.long)
    return data


@pytest.mark.parametrize("fanouts", [[3], [4, 2], [-1, 2, -1], [2, 0, 3]])
@pytest.mark.parametrize("options", [{}, {"disjoint": True}, {"replace": True}, {"subgraph_type": "induced"},
                                     {"weight_attr": "weight"}, {"time_attr": "moment"},
                                     {"time_attr": "moment", "temporal_strategy": "last"}])
def test_types(options, fanouts):
    data = typed()
    seeds = "paper", torch.tensor([5, 1, 1, 39, *range(30)])
    check(NeighborLoader, data, fanouts, seeds, batch_size=12, **options)


def test_types_with_times_of_edges():
    check(NeighborLoader, typed("edges"), [3, 2], "paper", input_time=torch.arange(40) % 20, time_attr="moment",
          batch_size=12)


def test_types_on_the_gpu():
    data = typed()
    there = data.clone().to(GPU)
    batch = next(iter(NeighborLoader(there, [3, 2], "paper", batch_size=12)))
    assert batch["paper"].n_id.device == batch[WRITES].edge_index.device == batch["author"].x.device == GPU


@pytest.mark.parametrize("non_edges", [False, True])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("sampling", [None, "binary", {"mode": "triplet", "amount": 2}])
def test_links(sampling, disjoint, non_edges):
    if non_edges and sampling is None:
        return
    data = graph()
    options = {"neg_sampling": sampling, "disjoint": disjoint, "non_edges": non_edges, "batch_size": 50}
    label = None if isinstance(sampling, dict) else torch.arange(120)
    check(LinkNeighborLoader, data, [3, 2], data.edge_index[:, :120], label, **options)
    for kind in (WRITES, ("paper", "cites", "paper")):
        check(LinkNeighborLoader, graph_of_types(), [3, 2], (kind, None), **options)


@pytest.mark.parametrize("of", ["edge", "node"])
@pytest.mark.parametrize("sampling", [None, "binary", "triplet"])
def test_links_with_times(of, sampling):
    data = with_values(graph())
    check(LinkNeighborLoader, data, [3, 2], data.edge_index[:, :40], edge_label_time=torch.arange(40) % 20,
          time_attr=f"{of}_moment", neg_sampling=sampling, batch_size=15)


def test_stores():
    data = graph().sort(sort_by_row=False)
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(data.x, group_name=None, attr_name="x", index=None)
    edges.put_edge_index(tuple(data.edge_index), edge_type=None, layout="coo", is_sorted=True, size=(60, 60))
    own = plait.store.FeatureStore(), plait.store.GraphStore()
    own[0].put_tensor(data.x, None, "x", None)
    own[1].put_edge_index(tuple(data.edge_index), None, "coo", size=(60, 60))
    for stores in ((features, edges), own):
        check(NeighborLoader, stores, [3, 2], torch.arange(60), batch_size=16)


def test_transforms_and_pinned_memory():
    seen = []
    loader = NeighborLoader(graph(), [3], batch_size=16, shuffle=True, pin_memory=True, device="cuda",
                            transform=lambda batch: (seen.append(batch.x.device), batch.n_id[:batch.batch_size])[1])
    assert sorted(torch.cat(list(loader)).tolist()) == list(range(60)) and set(seen) == {GPU}
    with pytest.raises(ValueError, match="^num_workers is 2, but neighbours are drawn on cuda:0 by this process"):
        NeighborLoader(graph(), [3], device="cuda", num_workers=2)


def test_copies_and_pickles():
    data = graph()
    twin = pickle.loads(pickle.dumps(NeighborSampler(data, [3, 2], device=GPU)))
    assert_same_batches(NeighborLoader(data, [3, 2], batch_size=16, device="cpu"),
                        NeighborLoader(data, [3, 2], batch_size=16, neighbor_sampler=twin))


def test_batches_stay_as_they_are():
    """Later batches, of other samplers and on other streams too, use the same memory."""
    data = graph(nodes=20000, edges=400000)
    loaders = [NeighborLoader(data, fanouts, batch_size=2000, device=GPU, disjoint=disjoint)
               for fanouts, disjoint in (([10, 10], False), ([5], True), ([3, 3, 3], False))]
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    kept = []
    torch.manual_seed(8)
    for rounds in zip(*loaders):
        kept.append(rounds)
    torch.manual_seed(8)
    again = [iter(loader) for loader in loaders]
    for n, rounds in enumerate(kept):
        found = []
        for place, batches in enumerate(again):
            stream = streams[(n + place) % 3]
            with torch.cuda.stream(stream):
                slow = torch.randn(2048, 2048, device=GPU)
                for _ in range(4):
                    slow = slow @ slow / 64
                found.append(next(batches))
        torch.cuda.synchronize()
        for batch, wanted in zip(found, rounds):
            for key in ("n_id", "e_id", "edge_index", "x"):
                assert torch.equal(batch[key], wanted[key]), key


def test_threads():
    data = graph(nodes=5000, edges=90000).sort(sort_by_row=False)
    sampler = NeighborSampler(data, [10, 10], is_sorted=True, device=GPU)
    here = NeighborSampler(data, [10, 10], is_sorted=True)
    settings = sampler.settings([10, 10])
    wanted = [here.relation.sample(torch.arange(500), key, settings) for key in range(32)]

    def sample(key):
        with torch.cuda.stream(torch.cuda.Stream()):
            found = sampler.relation.sample(torch.arange(500), key, settings)
            return [t.cpu() if isinstance(t, torch.Tensor) else t for t in found]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for found, right in zip(pool.map(sample, range(32)), wanted):
            for one, other in zip(found, right):
                assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.alone
def test_samplers_give_their_memory_back():
    data = graph(nodes=20000, edges=400000)
    free = []
    for _ in range(6):
        assert len(list(NeighborLoader(data, [10, 10], batch_size=5000, device=GPU))) == 4
        gc.collect()
        torch.cuda.empty_cache()
        free.append(torch.cuda.mem_get_info()[0])
    assert min(free[1:]) >= free[0] - (8 << 20)


def make_sampler(rowptr, col, **values):
    return torch.classes.plait.NeighbourSampler(rowptr, col, [2], values.pop("replace", False), False, False, False,
                                                values.get("weights"), None, None)


ROWPTR, COL = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1])


@pytest.mark.parametrize("arguments,values,text", [
    ((ROWPTR.cuda(), COL), {}, "col is on cpu; the graph is on cuda:0, and both must be on one device"),
    ((ROWPTR, COL.cuda()), {}, r"col is on cuda:0; use \.cpu\(\)"),
    ((torch.tensor([0, 3, 2]).cuda(), COL.cuda()), {}, r"rowptr\[2\] is 2, outside 3..3"),
    ((ROWPTR.cuda(), torch.tensor([0, 2, 1]).cuda()), {}, r"col\[1\] is 2, which is none of the 2 nodes"),
    ((ROWPTR.cuda(), COL.cuda()), {"weights": torch.tensor([1, -1.0, 1]).cuda()}, "the weight of edge 1 is -1"),
    ((ROWPTR.cuda(), COL.cuda()), {"weights": torch.ones(3)}, "weights is on cpu; the graph is on cuda:0"),
] if torch.cuda.is_available() else [])
def test_wrong_graphs(arguments, values, text):
    with pytest.raises(ValueError, match=text):
        make_sampler(*arguments, **values)


def test_wrong_seeds():
    loader = NeighborLoader(graph(), [2], batch_size=4, device=GPU)
    loader.input_data.node[6] = 999
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match=r"seed 2 is 999, outside 0\.\.59"):
        next(batches)
    loader.input_data.node[6] = 6
    assert len(list(loader)) == 15
    with pytest.raises(ValueError, match="^device is 'cuda:99', but there (is|are) "):
        NeighborLoader(graph(), [2], device="cuda:99")


def test_seeds_on_the_gpu():
    """Samplers take seeds, and their times, where the graph is."""
    rowptr, col = torch.tensor([0, 2, 3, 3]), torch.tensor([1, 2, 0])
    times = torch.tensor([5, 1, 3])
    for disjoint, moments in ((False, None), (True, None), (True, times)):
        found = []
        for device in ("cpu", GPU):
            sampler = torch.classes.plait.NeighbourSampler(
                rowptr.to(device), col.to(device), [2, 2], False, disjoint, False, False, None, None,
                None if moments is None else moments.to(device))
            seeds, now = torch.tensor([2, 0, 0, 1]).to(device), torch.tensor([9, 4, 1, 9]).to(device)
            found.append(sampler.sample(seeds, 7, None if moments is None else now))
            if device == GPU:
                with pytest.raises(ValueError, match=r"seed 1 is 3, outside 0\.\.2"):
                    sampler.sample(torch.tensor([0, 3, 4], device=GPU), 7, None if moments is None else now[:3])
                assert sampler.sample(seeds, 7, None if moments is None else now)[0].equal(found[1][0])
        for here, there in zip(*found):
            if isinstance(here, torch.Tensor):
                assert there.device == GPU and there.cpu().equal(here)
            else:
                assert here == there


def test_typed_graphs_stay_on_the_gpu(monkeypatch):
    """No hop copies its nodes to the host."""
    loader = NeighborLoader(typed(), [3, 2, 2], "paper", batch_size=12, device=GPU)
    sampler, copied = loader.node_sampler, []
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copied.append(tensor) or tensor.to("cpu"))
    sampler.sample_from_nodes(loader.input_data[torch.arange(12)])
    assert not [tensor for tensor in copied if tensor.is_cuda]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_second_gpu():
    other, data = torch.device("cuda", 1), graph()
    for loader in (NeighborLoader(data, [4, 2], batch_size=16, device=other),
                   NeighborLoader(data.clone().to(other), [4, 2], batch_size=16)):
        batch = next(iter(loader))
        assert {value.device for value in batch.to_dict().values() if isinstance(value, torch.Tensor)} == {other}
        check_rows(data, batch.cpu())
    assert torch.cuda.current_device() == 0

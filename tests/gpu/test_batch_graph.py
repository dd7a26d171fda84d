"""Layers on edges of batches, which are converted on the GPU. scripts/gpu-test runs it."""

import gc
import multiprocessing
import pathlib
import sys
import weakref

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conftest  # noqa: F401  the package under test
from edges import assert_close
from layers import INPUTS, KINDS, make

import plait
import plait.loader
import plait.nn
import plait.store
from plait._edges import batch_graph
from plait._edges.adjacency import adjacency

GPU = torch.device("cuda", 0)
NODES = 3000


def x_and_edges(nodes=NODES, edges=40000, seed=1, in_order=False):
    random = torch.Generator().manual_seed(seed)
    index = (torch.rand(2, edges, generator=random) ** 3 * nodes).long()
    if in_order:
        index = index[:, index[1].argsort(stable=True)]
    return torch.randn(nodes, INPUTS, generator=random), index


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("in_order", [False, True])
def test_uses_before_and_after_the_hosts_plan(name, in_order):
    torch.manual_seed(0)
    layer = make(plait, name)
    x, index = x_and_edges(in_order=in_order)
    x.requires_grad_()
    wanted = layer(x, index)
    dy = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(2))
    inputs = [x, *layer.parameters()]
    gradients = torch.autograd.grad(wanted, inputs, dy)
    layer, index = layer.to(GPU), index.to(GPU)
    there = x.detach().to(GPU).requires_grad_()
    for _ in range(batch_graph._LASTING + 2):
        found = layer(there, index)
        assert_close(found.detach().cpu(), wanted.detach())
        for mine, expected in zip(torch.autograd.grad(found, [there, *layer.parameters()], dy.to(GPU)), gradients,
                                  strict=True):
            assert_close(mine.cpu(), expected)


def test_edges_get_a_plan_of_the_host_once(monkeypatch):
    made = []
    original = plait._edges.adjacency.ops.graph_from_edges

    class Ops:
        def __getattr__(self, name):
            return getattr(torch.ops.plait, name)

        def graph_from_edges(self, *arguments):
            made.append(arguments)
            return original(*arguments)

    monkeypatch.setattr(plait._edges.adjacency, "ops", Ops())
    x, index = x_and_edges()
    index = index.to(GPU)
    before = adjacency(index, None, len(x), device=GPU, user=1)._handle
    for _ in range(3 * batch_graph._LASTING):
        found = adjacency(index, None, len(x), device=GPU, user=1)
    assert len(made) == 1 and found._handle is not before


@pytest.mark.parametrize("name", ["gcn", "graph", "sg"])
@pytest.mark.parametrize("in_order", [False, True])
def test_weights_and_loops_of_batches(name, in_order):
    torch.manual_seed(0)
    layer = make(plait, name)
    x, index = x_and_edges(in_order=in_order)
    index[:, ::50] = index[0, ::50]  # loops, several of some nodes
    weight = torch.rand(index.size(1), generator=torch.Generator().manual_seed(3))
    wanted = layer(x, index, weight)
    found = layer.to(GPU)(x.to(GPU), index.to(GPU), weight.to(GPU))
    assert_close(found.cpu(), wanted)


def test_weights_that_change_before_the_step_backward():
    x, index = x_and_edges(in_order=True)
    weight = torch.rand(index.size(1), generator=torch.Generator().manual_seed(3))
    results = []
    for device in ("cpu", GPU):
        torch.manual_seed(0)
        layer = make(plait, "graph").to(device)
        here, own = x.to(device, copy=True).requires_grad_(), weight.to(device, copy=True)
        out = layer(here, index.to(device), own)
        own.mul_(10)
        out.sum().backward()
        results.append(here.grad.cpu())
    assert_close(results[1], results[0])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_small_types_of_ids(name, dtype):
    torch.manual_seed(0)
    layer = make(plait, name)
    nodes = torch.iinfo(dtype).max + 200 if dtype == torch.uint8 else 3000
    x, index = x_and_edges(nodes, 2000)
    index %= min(nodes, torch.iinfo(dtype).max)
    wanted = layer(x, index)
    assert_close(layer.to(GPU)(x.to(GPU), index.to(dtype).to(GPU)).cpu(), wanted)


def test_nothing_is_kept_of_a_batch():
    layer = plait.nn.SAGEConv(INPUTS, 4).to(GPU)
    for dtype in (torch.int32, torch.int64):
        x, index = (t.to(GPU) for t in x_and_edges(in_order=True))
        index = index.to(dtype)
        layer(x, index).sum().backward()
        gone = weakref.ref(index)
        del index
        gc.collect()
        assert gone() is None


def batch():
    layer = plait.nn.SAGEConv(INPUTS, 4).to(GPU)
    x, index = (t.to(GPU) for t in x_and_edges())
    layer(x, index).sum().backward()
    return index


def sampling_loader():
    index = x_and_edges()[1].to(GPU)
    data = Data(edge_index=index, num_nodes=NODES, edge_attr=index.t().float())
    loader = plait.loader.NeighborLoader(data, [3, 3], batch_size=1000, disjoint=True)
    list(loader)
    return loader


def embedding_table():
    table = plait.nn.EmbeddingBag(100, 8, device=GPU, sparse=True)
    table(torch.arange(60, device=GPU).view(20, 3)).sum().backward()
    return table


def placed_graph():
    graph = plait.Graph(x_and_edges()[1], num_nodes=NODES)
    plait.aggregate(graph, torch.ones(NODES, 4, device=GPU))
    return graph


def walks_and_pairs():
    index = x_and_edges()[1]
    walks, pairs = plait.RandomWalks(index, NODES), plait.NonEdges(index, NODES)
    walks.walk(torch.arange(10, device=GPU), 4)
    pairs.sample_on(GPU, 10)
    return walks, pairs


@pytest.mark.parametrize("make_object", [batch, sampling_loader, embedding_table, placed_graph, walks_and_pairs])
def test_a_forked_process_collects_what_is_on_a_gpu(make_object):
    """As a loader's worker does, which cannot use the GPU."""
    with torch.cuda.stream(torch.cuda.Stream()):
        ring = [make_object()]
    torch.cuda.synchronize()
    gc.collect()
    ring.append(ring)  # which only a collection frees
    process = multiprocessing.get_context("fork").Process(target=collect, args=())
    del ring
    process.start()
    process.join(60)
    assert process.exitcode == 0


def collect():
    gc.collect()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_batches_on_another_gpu():
    last = torch.device("cuda", torch.cuda.device_count() - 1)
    layer = make(plait, "gat of heads")
    x, index = x_and_edges()
    wanted = layer(x, index)
    found = layer.to(last)(x.to(last), index.to(last))
    found.sum().backward()
    assert torch.cuda.current_device() == 0 and found.device == last
    assert_close(found.detach().cpu(), wanted)


def test_features_on_a_gpu(tmp_path):
    x, index = x_and_edges(300, 4000)
    np.savez(tmp_path / "g.npz", edge_index=index.numpy(), x=x.numpy(), y=np.arange(300) % 3)
    drawn = []
    for device in (None, "cuda"):
        stores = plait.store.load(tmp_path / "g.npz", device)
        loader = plait.loader.NeighborLoader(stores, [4, 3], torch.arange(100), batch_size=40, device=GPU)
        torch.manual_seed(3)
        drawn.append(list(loader))
        assert stores[0][None, "x", None].device.type == ("cpu" if device is None else "cuda")
    for one, other in zip(*drawn, strict=True):
        for name in ("x", "y", "n_id", "edge_index"):
            assert one[name].device == other[name].device == GPU and torch.equal(one[name], other[name]), name
    with pytest.raises(ValueError, match="num_workers is 2, but features are on cuda:0"):
        plait.loader.NeighborLoader(stores, [4], torch.arange(9), num_workers=2, device="cpu")


@pytest.mark.parametrize("nodes, edges", [(1, 0), (5, 0), (1, 7), (70000, 3)])
@pytest.mark.parametrize("name", ["gcn", "sage", "gat of heads"])
def test_batches_of_odd_sizes(name, nodes, edges):
    torch.manual_seed(0)
    layer = make(plait, name)
    x, index = x_and_edges(nodes, edges)
    wanted = layer(x, index)
    there = x.to(GPU).requires_grad_()
    found = layer.to(GPU)(there, index.to(GPU))
    assert_close(found.detach().cpu(), wanted)
    found.sum().backward()
    assert there.grad.isfinite().all()


def test_counts_and_degrees():
    x, index = x_and_edges()
    weight = torch.rand(index.size(1), generator=torch.Generator().manual_seed(3))
    batch = torch.ops.plait.batch_graph(index.to(GPU), len(x), weight.to(GPU))
    whole = torch.ops.plait.graph_from_edges(index, len(x), weight)
    assert torch.equal(batch.edge_counts().cpu(), whole.edge_counts())
    assert_close(batch.degree().cpu(), whole.degree())
    assert batch.num_nodes() == len(x) and batch.num_edges() == index.size(1)


@pytest.mark.parametrize("wrong", [-1, 3000, 2**40])
@pytest.mark.parametrize("kind", ["SAGEConv", "GCNConv"])
def test_wrong_ids_are_named(kind, wrong):
    x, index = x_and_edges()
    index[1, 17] = wrong
    with pytest.raises(ValueError, match=rf"edge_index\[1, 17\] is {wrong}, outside 0..2999"):
        getattr(plait.nn, kind)(INPUTS, 4).to(GPU)(x.to(GPU), index.to(GPU))


def test_attention_drops_the_same_on_batches():
    layer = plait.nn.GATConv(INPUTS, 4, heads=2, dropout=0.5)
    x, index = x_and_edges()
    results = []
    for device in ("cpu", GPU):
        torch.manual_seed(11)
        results.append(layer.to(device)(x.to(device), index.to(device)).cpu())
    assert_close(results[1], results[0])


def test_batches_on_streams_in_turns():
    """Each batch is new, its graph goes with it, and memory is used again."""
    layer = plait.nn.SAGEConv(INPUTS, 16).to(GPU)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for step in range(30):
        x, index = x_and_edges(20000, 300000, seed=step)
        with torch.cuda.stream(streams[step % 3]):
            there = x.to(GPU).requires_grad_()
            out = layer(there, index.to(GPU))
            out.square().mean().backward()
            found = out.detach().cpu(), there.grad.cpu()
        if step % 10 == 0:
            here = x.requires_grad_()
            wanted = layer.cpu()(here, index)
            wanted.square().mean().backward()
            assert_close(found[0], wanted.detach())
            assert_close(found[1] * 1e4, here.grad * 1e4)
            layer.to(GPU)


def test_captured_steps_on_edges_of_a_gpu():
    torch.manual_seed(0)
    layer = plait.nn.GCNConv(INPUTS, 4).to(GPU)
    x, index = (t.to(GPU) for t in x_and_edges())
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            layer.zero_grad()
            layer(x, index).square().mean().backward()
        side.synchronize()
    wanted = layer.lin.weight.grad.clone()
    graph = torch.cuda.CUDAGraph()
    layer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        layer(x, index).square().mean().backward()
    with torch.no_grad():
        for _ in range(2 * batch_graph._LASTING):  # the host makes no plan that would free what replays read
            layer(x, index)
    taken = [torch.full((size,), 7, dtype=torch.int32, device=GPU) for size in (1000, 10000, 40000, 80000) * 50]
    for _ in range(3):
        layer.lin.weight.grad.zero_()
        graph.replay()
    torch.cuda.synchronize()
    assert_close(layer.lin.weight.grad.cpu(), wanted.cpu())
    assert all(bool(t.eq(7).all()) for t in taken)


def test_a_captured_step_after_many_other_weights():
    """More forms of the same edges than are kept do not take the memory of the captured one."""
    torch.manual_seed(0)
    layer = plait.nn.GraphConv(INPUTS, 8, bias=False).to(GPU)
    x, index = (t.to(GPU) for t in x_and_edges(20000, 300000))
    weights = [torch.rand(index.size(1), device=GPU) for _ in range(25)]
    with torch.no_grad():
        with torch.cuda.stream(torch.cuda.Stream()) as _:
            for _ in range(2 * batch_graph._LASTING):
                layer(x, index, weights[0])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = layer(x, index, weights[0])
        graph.replay()
        wanted = out.clone()
        for weight in weights[1:]:
            layer(x, index, weight)
        taken = [torch.full((size,), 7, dtype=torch.int32, device=GPU) for size in (40000, 300000, 600000) * 20]
        for _ in range(3):
            out.zero_()
            graph.replay()
        torch.cuda.synchronize()
    assert torch.equal(out, wanted)
    assert all(bool(t.eq(7).all()) for t in taken)


def test_training_on_batches_against_their_layers():
    """Losses of plait.nn on samples are those of torch_geometric.nn."""
    import torch_geometric.nn
    from torch_geometric.data import Data

    from plait.loader import NeighborLoader

    x, index = x_and_edges(4000, 60000)
    data = Data(x=x, edge_index=index, y=torch.arange(4000) % 5)
    losses = []
    for package in (torch_geometric.nn, plait.nn):
        torch.manual_seed(5)
        convs = torch.nn.ModuleList([package.SAGEConv(INPUTS, 32), package.SAGEConv(32, 5)]).to(GPU)
        optimizer, found = torch.optim.Adam(convs.parameters(), lr=0.01), []
        torch.manual_seed(7)
        for batch in NeighborLoader(data, [10, 5], batch_size=400, device=GPU):
            optimizer.zero_grad()
            hidden = convs[0](batch.x, batch.edge_index).relu()
            loss = F.cross_entropy(convs[1](hidden, batch.edge_index)[:batch.batch_size],
                                   batch.y[:batch.batch_size])
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(torch.tensor(found))
    assert len(losses[0]) == 10
    assert_close(losses[1], losses[0], 1e-3)

"""Layers on edges of batches, which are converted on the GPU. scripts/gpu-test runs it."""

import pathlib
import sys

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conftest  # noqa: F401  the package under test
from edges import assert_close
from layers import INPUTS, KINDS, make

import plait
import plait.nn
from plait import _batch_graph
from plait._adjacency import adjacency

GPU = torch.device("cuda", 0)


def x_and_edges(nodes=3000, edges=40000, seed=1, in_order=False):
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
    wanted = layer(x, index)
    layer, x, index = layer.to(GPU), x.to(GPU).requires_grad_(), index.to(GPU)
    for use in range(_batch_graph._LASTING + 3):
        found = layer(x, index)
        assert_close(found.detach().cpu(), wanted)
        if use % 6 == 0:
            found.sum().backward()


def test_edges_get_a_plan_of_the_host_once(monkeypatch):
    made = []
    original = plait._adjacency.ops.graph_from_edges

    class Ops:
        def __getattr__(self, name):
            return getattr(torch.ops.plait, name)

        def graph_from_edges(self, *arguments):
            made.append(arguments)
            return original(*arguments)

    monkeypatch.setattr(plait._adjacency, "ops", Ops())
    x, index = x_and_edges()
    index = index.to(GPU)
    before = adjacency(index, None, len(x), device=GPU)._handle
    for _ in range(3 * _batch_graph._LASTING):
        found = adjacency(index, None, len(x), device=GPU)
    assert len(made) == 1 and found._handle is not before


@pytest.mark.parametrize("name", ["gcn", "graph", "sg"])
def test_weights_and_loops_of_batches(name):
    torch.manual_seed(0)
    layer = make(plait, name)
    x, index = x_and_edges()
    index[:, ::50] = index[0, ::50]  # loops, several of some nodes
    weight = torch.rand(index.size(1), generator=torch.Generator().manual_seed(3))
    wanted = layer(x, index, weight)
    found = layer.to(GPU)(x.to(GPU), index.to(GPU), weight.to(GPU))
    assert_close(found.cpu(), wanted)


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
def test_wrong_ids_are_named(wrong):
    x, index = x_and_edges()
    index[1, 17] = wrong
    with pytest.raises(ValueError, match=rf"edge_index\[1, 17\] is {wrong}, outside 0..2999"):
        plait.nn.SAGEConv(INPUTS, 4).to(GPU)(x.to(GPU), index.to(GPU))


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
    for _ in range(2 * _batch_graph._LASTING):
        layer.lin.weight.grad.zero_()
        graph.replay()
    torch.cuda.synchronize()
    assert_close(layer.lin.weight.grad.cpu(), wanted.cpu())


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

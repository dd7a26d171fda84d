"""Layers, operations and spread models on GPUs, against PyTorch Geometric on the CPU in double
precision, or against Plait on the CPU. scripts/gpu-test runs it.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conftest  # noqa: F401  the package under test
import drop_in_cases
import spread_cases
from edges import assert_close, extreme_by_scatter, random_edges
from layers import CASES, INPUTS, KINDS, assert_same_gradients, gradients, make, pair
from ranks import HERE, Ranks
from test_layers import ODD
from test_parallel import differences

import plait

GPU = torch.device("cuda", 0)


def on_cpu(results):
    return {name: t.cpu() for name, t in results.items()}


def check_layer(name, edges, seed):
    torch.manual_seed(seed)
    ours, theirs = pair(name)
    x = torch.randint(-4, 5, (edges.num_nodes, INPUTS)) + 0.5
    dy = torch.randn_like(ours(x, edges.index)).detach()
    wanted = gradients(theirs, x.double(), dy.double(), edges.index)
    ours.to(GPU)
    for index in (edges.index, edges.index.to(GPU), plait.Graph(edges.index, edges.num_nodes)):
        assert_same_gradients(on_cpu(gradients(ours, x.to(GPU), dy.to(GPU), index)), wanted)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_layers(name, seed):
    check_layer(name, random_edges(seed, symmetric=seed % 4 == 0), seed)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("shape", ODD)
def test_odd_graphs(name, shape):
    check_layer(name, ODD[shape], 1)


# Lazy layers draw other first weights on a GPU.
@pytest.mark.parametrize("name", [name for name in drop_in_cases.FAST if "lazy" not in name])
def test_options(name, monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "1")
    drop_in_cases.compare(*drop_in_cases.FAST[name], device=GPU)


@pytest.mark.parametrize("op", ["sum", "mean", "weighted"])
def test_sums_and_gradients_of_gradients(op):
    edges = random_edges(5, weighted=True)
    a = torch.from_numpy(edges.matrix(op).toarray())
    graph = plait.Graph(edges.index.to(GPU), edges.num_nodes, edges.weight.to(GPU))
    x = torch.randn(edges.num_nodes, 5, device=GPU, requires_grad=True)
    y = plait.aggregate(graph, x, op)
    assert y.device == GPU
    assert_close(y.cpu(), a @ x.detach().cpu().double())
    (dx,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    y64 = a @ x.detach().cpu().double()
    assert_close(dx.cpu(), a.T @ (3 * y64**2))
    assert_close(ddx.cpu(), a.T @ (6 * y64 * (a @ torch.ones_like(y64))))


@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes(op):
    edges = random_edges(5)
    graph = plait.Graph(edges.index.to(GPU), edges.num_nodes)
    x = (torch.randint(1, 4, (edges.num_nodes, 5)) * 2.0 - 5).to(GPU).requires_grad_()  # ties, and no 0
    found, wanted = plait.aggregate(graph, x, op), extreme_by_scatter(graph, x, op)
    assert found.device == GPU and torch.equal(found, wanted)
    gradients = [torch.autograd.grad(y.square().sum(), x)[0] for y in (found, wanted)]
    assert_close(gradients[0].cpu(), gradients[1].cpu())


def test_a_width_that_does_not_fit_leaves_the_graph_as_it_was():
    """There is room for x and y, but not for rows in slots too."""
    nodes = 1 << 20
    ids = torch.arange(nodes)
    graph = plait.Graph(torch.stack([ids, (ids + 1) % nodes]).to(GPU), nodes)
    x = torch.randn(nodes, 16, device=GPU)
    wanted = plait.aggregate(graph, x, "sum")
    free = torch.cuda.mem_get_info()[0]
    wide = torch.empty(nodes, int(0.4 * free / (4 * nodes)), device=GPU)
    with pytest.raises(RuntimeError, match="the symmetric heap needs"):
        plait.aggregate(graph, wide, "sum")
    del wide
    assert torch.equal(plait.aggregate(graph, x, "sum"), wanted)


def test_learnt_edge_weights():
    edges = random_edges(3, weighted=True)
    torch.manual_seed(0)
    layer = make(plait, "gcn")
    x, dy = torch.randn(edges.num_nodes, INPUTS), torch.randn(edges.num_nodes, 4)
    results = []
    for device in ("cpu", GPU):
        weight = edges.weight.to(device, copy=True).requires_grad_()
        layer.to(device)(x.to(device), edges.index.to(device), weight).backward(dy.to(device))
        results.append(weight.grad.cpu())
    assert_close(results[1], results[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", KINDS)
def test_autocast(name, dtype):
    edges = random_edges(2)
    torch.manual_seed(0)
    layer = make(plait, name).to(GPU)
    x = torch.randn(edges.num_nodes, INPUTS, device=GPU, requires_grad=True)
    wanted = layer(x, edges.index)
    with torch.autocast("cuda", dtype=dtype):
        found = layer(x, edges.index)
    found.float().square().sum().backward()
    assert_close(found.float().cpu(), wanted.cpu(), 0.05)
    assert x.grad.isfinite().all()


def test_attention_drops_the_same_everywhere():
    edges = random_edges(8)
    layer = plait.nn.GATConv(INPUTS, 4, heads=2, dropout=0.5)
    x = torch.randn(edges.num_nodes, INPUTS)
    results = []
    for device in ("cpu", GPU):
        torch.manual_seed(11)
        results.append(layer.to(device)(x.to(device), edges.index).cpu())
    assert_close(results[1], results[0])


def test_streams():
    """The graph is made and first used on one stream; uses on others are in order with these."""
    nodes = 50000
    graph = plait.Graph(torch.randint(nodes, (2, 1000000)), nodes)
    x = torch.randn(nodes, 64, device=GPU)
    wanted = plait.aggregate(graph, x + 8)
    for _ in range(5):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            slow = torch.randn(4096, 4096, device=GPU)
            for _ in range(8):
                slow = slow @ slow / 64
            late = (slow[0, 0] * 0).nan_to_num() + 8
            found = plait.aggregate(graph, x + late).clone()
        side.synchronize()
        assert torch.equal(found, wanted)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_current_gpu_stays():
    edges, last = random_edges(2), torch.device("cuda", torch.cuda.device_count() - 1)
    layer = make(plait, "gat of heads")
    x = torch.randn(edges.num_nodes, INPUTS)
    wanted = layer(x, edges.index)
    found = layer.to(last)(x.to(last), edges.index)
    found.sum().backward()
    assert torch.cuda.current_device() == 0 and found.device == last
    assert_close(found.cpu(), wanted)


def test_devices_that_do_not_fit():
    edges = random_edges(1)
    graph = plait.Graph(edges.index, edges.num_nodes)
    scale = torch.ones(edges.num_nodes)
    handle = graph.adjacency(device=GPU)._handle
    x = torch.ones(edges.num_nodes, 2)
    with pytest.raises(ValueError, match="x is on cpu; the graph is on cuda:0"):
        torch.ops.plait.aggregate(x, handle)
    with pytest.raises(ValueError, match="pre is on cpu"):
        torch.ops.plait.aggregate(x.to(GPU), handle, pre=scale)
    with pytest.raises(ValueError, match=f"GPU {torch.cuda.device_count()} is not there"):
        torch.ops.plait.graph_from_edges(
            edges.index, edges.num_nodes, device=f"cuda:{torch.cuda.device_count()}")


def test_checkpoints():
    model = plait.nn.Model(plait.nn.ModelConfig("gat", INPUTS, 3, heads=2))
    edges = random_edges(2)
    x = torch.randn(edges.num_nodes, INPUTS)
    wanted = model(x, edges.index)
    assert_close(model.to(GPU)(x.to(GPU), edges.index.to(GPU)).cpu(), wanted)


def test_the_example_is_the_same_on_gpus(tmp_path):
    """examples/train_pyg.py takes each rank's GPU, or the CPU where there is none."""
    path = tmp_path / "g.npz"
    random = np.random.default_rng(2)
    np.savez(path, edge_index=random.integers(0, 90, (2, 500)), y=np.arange(90) % 2,
             x=random.standard_normal((90, 8)).astype("f4"), train=np.arange(30),
             val=np.arange(30, 60), test=np.arange(60, 90))
    example = HERE.parents[1] / "examples/train_pyg.py"
    outputs = [Ranks(2, example, path, **variables).succeed()[0].split()
               for variables in ({}, {"CUDA_VISIBLE_DEVICES": ""})]
    for found, wanted in zip(*outputs, strict=True):
        try:
            assert abs(float(found) - float(wanted)) < 1e-4
        except ValueError:
            assert found == wanted


def test_spread_models():
    """They agree with unmodified models on the CPU, on as many ranks as there are GPUs."""
    cases = {**spread_cases.CASES, **spread_cases.DROPPED}
    alone = {name: spread_cases.train_spread(case) for name, case in cases.items()}
    compared = []
    for ranks in range(1, torch.cuda.device_count() + 1):
        first, *others = map(json.loads, Ranks(ranks, HERE / "spread_cases.py", "cuda").succeed())
        for name, found in first.items():
            assert all(other[name] == found for other in others), f"{name}: ranks differ"
            wanted = alone[name]
            if name in spread_cases.CASES:
                wanted = spread_cases.train_plainly(name)
            compared.append((f"{name}, {ranks} GPUs", found, wanted))
    assert not differences(compared)


@pytest.mark.parametrize("ranks", range(1, torch.cuda.device_count() + 1))
def test_captured_steps(ranks):
    """A step that torch.cuda.graph has captured gives the same as uncaptured, dropout too."""
    program = HERE.parent / "gpu/captured_steps.py"
    for output in Ranks(ranks, program).succeed():
        results, refused = json.loads(output)
        for name, (captured, uncaptured) in results.items():
            assert captured == pytest.approx(uncaptured, rel=1e-5), name
            assert len(set(captured)) == len(captured), f"{name} stands still"
        assert "on rows of width 400 would move" in refused


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 4000, 1000003])
def test_fingerprints_do_not_depend_on_the_device(size):
    values = torch.randint(0, 256, (size + 1,), dtype=torch.uint8)[1:]
    assert torch.ops.plait.fingerprint(values.to(GPU)) == torch.ops.plait.fingerprint(values)
    on_gpu = values.new_empty(size + 1, device=GPU)[1:].copy_(values)  # at any byte
    assert torch.ops.plait.fingerprint(on_gpu) == torch.ops.plait.fingerprint(values)


def test_wrong_ids_on_a_gpu():
    with pytest.raises(ValueError, match=r"edge_index\[1, 2\] is 9, outside 0..3"):
        plait.Graph(torch.tensor([[0, 1, 2], [1, 0, 9]], device=GPU), 4)

"""plait.advise: what it reads, what it decides, and that parallelize does as it says."""

import json
import os
import subprocess

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.data import Data

import advice_on_ranks
import plait
from plait._edges.adjacency import Adjacency
from plait._library import ops
from plait._spread.layer_advice import layer_advice
from ranks import HERE, Ranks, alone, environment
from spread_layers import HIDDEN, WIDTH, make_data

PROGRAM = os.environ.get("PLAIT_PROGRAM", str(HERE.parents[1] / "build/bin/plait"))


def advised(layer):
    return layer_advice(torch.nn.Sequential(layer))[0]


@pytest.mark.parametrize("make,way,order,crosses,needs_rows", [
    (lambda: pyg.GCNConv(40, 8), "fast", "product first", 8, False),
    (lambda: pyg.GCNConv(8, 40), "fast", "sum first", 8, False),
    (lambda: pyg.GCNConv(8, 7), "fast", "product first", 8, False),  # padded to 16 bytes
    (lambda: pyg.SAGEConv(40, 8), "fast", "product first", 8, False),
    (lambda: pyg.SAGEConv(8, 40), "fast", "sum first", 8, False),
    (lambda: pyg.SAGEConv(8, 40, aggr="max"), "fast", "sum first", 16, True),  # backward
    (lambda: pyg.SAGEConv(8, 40, aggr="std"), "fast", "sum first", 16, False),
    (lambda: pyg.GraphConv(40, 8), "fast", "product first", 8, False),
    (lambda: pyg.GINConv(torch.nn.Linear(40, 8)), "fast", "sum first", 40, False),
    (lambda: pyg.GINConv(pyg.MLP([40, 16, 8])), "fast", "sum first", 40, False),
    (lambda: pyg.SGConv(40, 8, K=3), "fast", "sum first", 40, False),
    (lambda: pyg.GATConv(40, 8, heads=2), "fast", "product first", 24, True),
    (lambda: pyg.GATv2Conv(40, 8), "by edge", None, None, False),
    (lambda: pyg.GATConv(40, 8, edge_dim=4), "by edge", None, None, False),
    (lambda: pyg.GENConv(8, 8), "exchange", None, None, False),
    (lambda: plait.nn.GCNConv(40, 8), "fast", "product first", 8, False),
    (lambda: pyg.ChebConv(8, 8, 2), "refused", None, None, False),
    (lambda: pyg.GraphNorm(8), "refused", None, None, False),
])
def test_layers(make, way, order, crosses, needs_rows):
    found = advised(make())
    assert (found.way, found.order, found.crosses, found.needs_rows) == (way, order, crosses, needs_rows)
    assert bool(found.reason) == (way == "refused")


def test_reads_widths_and_changes_nothing():
    model = torch.nn.Sequential(pyg.GATConv(40, 8, heads=2), torch.nn.ReLU(), pyg.SGConv(16, 3, K=2))
    classes = [type(part) for part in model.modules()]
    first, second = layer_advice(model)
    assert (first.name, first.kind, first.inputs, first.outputs) == ("0", "GATConv", 40, 16)
    assert (second.name, second.outputs, second.sums) == ("2", 3, 2)
    assert [type(part) for part in model.modules()] == classes


@pytest.mark.parametrize("make", [
    lambda: pyg.GCNConv(WIDTH, WIDTH), lambda: pyg.GENConv(WIDTH, WIDTH), lambda: pyg.GATv2Conv(WIDTH, WIDTH),
    lambda: pyg.SAGEConv(WIDTH, WIDTH, aggr="median"), lambda: pyg.ChebConv(8, 8, 2),
    lambda: pyg.SAGEConv(WIDTH, WIDTH, aggr=pyg.LSTMAggregation(WIDTH, WIDTH)),
    lambda: pyg.PairNorm(),
    lambda: pyg.GINEConv(torch.nn.Linear(WIDTH, WIDTH), edge_dim=4), lambda: torch.nn.BatchNorm1d(WIDTH)])
def test_layers_are_treated_as_told(make):
    layer = make()
    model = torch.nn.Sequential(layer)
    told = layer_advice(model)
    way = told[0].way if told else None
    if way == "refused":
        with pytest.raises(NotImplementedError):
            plait.parallelize(model, make_data())
        return
    plait.parallelize(model, make_data())
    assert getattr(type(layer), "_is_spread", False) == (way in ("by edge", "exchange"))
    if way:
        has_fast_parts = isinstance(layer, plait.nn.FastConv)
        assert has_fast_parts == (way in ("fast", "by edge"))


def test_one_process():
    model, data = advice_on_ranks.make(pyg.GCN), make_data()
    advice = plait.advise(model, data)
    assert (advice.ranks, advice.device, advice.partition) == (1, "cpu", "edges")
    assert advice.alternatives == ()
    assert advice.graph["nodes"] == 60 and advice.graph["communities"] >= 0
    lines = str(advice).splitlines()
    assert any(line.split() == ["convs.0", "GCNConv", "fast", str(WIDTH), str(HIDDEN), "product", "first",
                                str(HIDDEN)] for line in lines)
    assert "           one rank: nothing moves between ranks" in lines
    assert plait.advise(model, plait.Graph(data)).layers == advice.layers
    with pytest.raises(ValueError, match="use 1 or more"):
        plait.advise(model, data, ranks=0)
    with pytest.raises(ValueError, match="partial needs GPUs; use tensors on a GPU, or strategy='bulk'"):
        plait.advise(model, data, ranks=2, strategy="partial")
    with pytest.raises(ValueError, match="'best'"):
        plait.advise(model, data, ranks=2, partition="best")
    for wrong in (2.5, "4", True):
        with pytest.raises(TypeError, match="not a whole number"):
            plait.advise(model, data, ranks=wrong)
    with pytest.raises(TypeError, match="model is a Data, not a torch.nn.Module"):
        plait.advise(data, model)


def test_scattered_ids_are_told():
    nodes = 50000  # of which each reads its half's other end
    ends, model = torch.arange(nodes), advice_on_ranks.make(pyg.GCN)
    ring = torch.stack([ends, (ends + 1) % nodes])
    assert plait.advise(model, Data(edge_index=ring, num_nodes=nodes)).reorder == "none"
    edges = torch.stack([ends, (ends + nodes // 2) % nodes])
    advice = plait.advise(model, Data(edge_index=edges, num_nodes=nodes))
    assert advice.reorder == "communities" and any("order communities" in reason for reason in advice.reasons)


def test_gpus_are_predicted_without_one():
    """A hub-like cut: many rows are read by few nodes, so that sums cross instead."""
    torch.manual_seed(1)
    nodes, edges = 400000, 4000000
    index = torch.stack([torch.randint(0, nodes, (edges,)), torch.randint(0, 100, (edges,))])
    data = Data(edge_index=index, num_nodes=nodes)
    sums = plait.advise(pyg.GCN(64, 64, 2, 64), data, ranks=4, device="cuda", partition="vertices")
    assert sums.strategy == "partial" and sums.alternatives[0].strategy == "partial"
    assert sums.alternatives[0].ms < sums.alternatives[1].ms
    rows = plait.advise(pyg.GAT(64, 64, 2, 64), data, ranks=4, device="cuda", partition="vertices")
    assert rows.strategy == "pipelined"


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_take_the_advice(ranks):
    first, *others = map(json.loads, Ranks(ranks, HERE / "advice_on_ranks.py").succeed())
    assert all(other == first for other in others)
    for kind in (pyg.GCN, pyg.GAT):
        model, data = advice_on_ranks.make(kind), make_data()
        plain = advice_on_ranks.train(*plait.parallelize(model, data))
        assert first[kind.__name__]["losses"] == pytest.approx(plain, rel=1e-4)
        assert f"{ranks} rank" in first[kind.__name__]["text"]


def test_measured_times_choose(tmp_path):
    """The program measures the graph of the ranks; the times are then changed, so that one way is best."""
    edges = make_data().edge_index
    path, routes = tmp_path / "graph.plait", str(tmp_path / "routes")
    (tmp_path / "graph.txt").write_text("".join(f"{u} {v}\n" for u, v in edges.t().tolist()))
    env = environment(PLAIT_ROUTES=routes)
    run = dict(check=True, env=env, capture_output=True, text=True)
    subprocess.run([PROGRAM, "convert", tmp_path / "graph.txt", path], **run)
    subprocess.run([PROGRAM, "tune", path, "--ranks", "2", "--widths", "8", "--repetitions", "1"], **run)
    (kept,) = (tmp_path / "routes").iterdir()
    times = json.loads(kept.read_text())
    for entry in times["routes"]:
        entry["ms"] = 1 if (entry["partition"], entry["strategy"]) == ("clusters", "get") else 2
    kept.write_text(json.dumps(times))
    ranks = Ranks(2, HERE / "advice_measured.py", path, PLAIT_ROUTES=routes)
    results = [json.loads(out) for out in ranks.succeed()]
    assert results[0] == results[1]
    assert (results[0]["partition"], results[0]["strategy"]) == ("clusters", "get")
    assert results[0]["ways"] == 9 and "plait tune" in results[0]["reasons"][0]
    assert results[0]["whole"] == ["clusters", "get"] and results[0]["used"] == ["edges", "auto"]
    assert results[0]["asked"] == ["hash", "bulk"]
    assert results[0]["losses"] == pytest.approx(results[0]["standard losses"], rel=1e-4)


def test_example(tmp_path):
    x, y = torch.ones(3, 2).numpy(), torch.tensor([0, 1, 1]).numpy()
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), x=x, y=y)
    example = HERE.parents[1] / "examples/advise.py"
    assert "4 ranks (cpu)" in alone(example, tmp_path / "g.npz", 4).succeed()[0]


def test_operations_that_need_rows_get_them():
    """Strategies that send sums serve sums alone. The two graphs tell which one an operation was given."""
    sums, rows = (ops.graph_from_edges(torch.tensor(edges), 3) for edges in ([[0, 1], [2, 2]], [[1], [2]]))
    adjacency = Adjacency(sums, None, lambda: rows)
    x = torch.tensor([[5.0], [2.0], [7.0]])
    assert adjacency.aggregate(x, "sum")[2].item() == 7 and adjacency.aggregate(x, "max")[2].item() == 2
    assert adjacency.attend(x, torch.zeros(3, 2), 0.2, 0.0)[2].item() == 2
    found = {s: ops.brings_rows(s, "fp32", torch.device("cuda")) for s in ("auto", "pipelined", "bulk", "partial", "get")}
    assert found == {"auto": True, "pipelined": True, "bulk": True, "partial": False, "get": False}
    assert ops.brings_rows("get", "fp32", torch.device("cpu"))
    assert not ops.brings_rows("bulk", "bf16", torch.device("cuda"))

"""Weights that `plait train` wrote give the scores of `plait infer` in PyTorch Geometric, and in
this package."""

import os
import pathlib
import subprocess

import numpy as np
import pytest
import safetensors.torch
import torch
import torch_geometric.nn.models

import plait
from edges import assert_close

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("PLAIT_PROGRAM", str(CHECKOUT / "build/bin/plait"))


def run(*arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module", params=[2, 3], ids="{} layers".format)
def trained(request, tmp_path_factory):
    """Returns layers, graph, weights by name, and the program's scores."""
    folder = tmp_path_factory.mktemp("trained")
    graph, weights, scores = (folder / name for name in ("g.plait", "w.safetensors", "s.npy"))
    run("generate", "dcsbm", "--vertices", 400, "--edges", 4000, "-o", graph)
    run("train", graph, "--layers", request.param, "--hidden", 12, "--epochs", 30, "--ranks", 2,
        "--checkpoint", weights)
    run("infer", graph, "--checkpoint", weights, "--out", scores)
    tensors = safetensors.torch.load_file(weights)
    weights = {name: t for name, t in tensors.items() if not name.startswith("resume.")}
    return request.param, plait.Graph.load(graph), weights, torch.from_numpy(np.load(scores))


def test_in_torch_geometric(trained):
    layers, graph, weights, scores = trained
    model = torch_geometric.nn.models.GCN(graph.x.size(1), 12, layers, scores.size(1), dropout=0.5)
    model.load_state_dict(weights)
    model.eval()
    found = model(graph.x, graph.edge_index)
    assert_close(found, scores)
    correct = found.argmax(1)[graph.test_mask] == graph.y[graph.test_mask]
    assert correct.double().mean() > 0.5  # weights that mean something


def test_here(trained):
    layers, graph, weights, scores = trained
    sizes = [graph.x.size(1), *[12] * (layers - 1), scores.size(1)]
    h = graph.x
    for l in range(layers):
        conv = plait.nn.GCNConv(sizes[l], sizes[l + 1])
        conv.load_state_dict({name: weights[f"convs.{l}.{name}"] for name in conv.state_dict()})
        h = conv(h if l == 0 else h.relu(), graph)
    assert_close(h, scores)

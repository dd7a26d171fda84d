"""plait reorder on a GPU writes the file that the CPU writes, and runs on a GPU of a graph that is renumbered in
memory have the losses of the graph as it was. scripts/gpu-test runs it.
"""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from random_graphs import random_graphs, write_scipy
from test_json import check
from training import check_same_curve

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Graphs with communities and data of vertices, with heavy tails, and directed with weights and isolated
    vertices."""
    folder = tmp_path_factory.mktemp("graphs")
    plait = program.Plait(folder)
    plait.ok("generate", "dcsbm", "--vertices", 20000, "--edges", 400000, "--seed", 1, "-o",
             folder / "communities.plait")
    plait.ok("generate", "rmat", "--vertices", 16384, "--edges", 300000, "--seed", 2, "-o", folder / "tails.plait")
    write_scipy(folder / "directed.npz", random_graphs(3, 20, shuffled=True))
    return {path.stem: path for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("method", ["communities", "auto"])
@pytest.mark.parametrize("name", ["communities", "tails", "directed"])
def test_same_file(tmp_path, graphs, name, method):
    plait, run = program.Plait(tmp_path), ("reorder", graphs[name])
    here = plait.json(*run, tmp_path / "here.plait", "--method", method)
    there = plait.json(*run, tmp_path / "there.plait", "--method", method, "--gpus", 1)
    check("reorder", there)
    assert here["device"] == "cpu"
    assert there["device"] == ("cpu" if there["method"] == "none" else "cuda")
    differ = {key for key in here if here[key] != there[key]}
    assert here.keys() == there.keys() and differ <= {"out", "seconds", "device"}
    written = program.contents(tmp_path)
    assert written[tmp_path / "here.plait"] == written[tmp_path / "there.plait"]


@pytest.mark.parametrize("options", [("--model", "gcn"), ("--model", "gat"), ("--model", "sage", "--hidden", 24)])
def test_same_losses(tmp_path, graphs, options):
    plait = program.Plait(tmp_path)
    run = ("train", graphs["communities"], "--gpus", 1, "--epochs", 8, "--seed", 3, *options)
    check_same_curve(plait.json(*run, "--reorder", "communities")["loss"], plait.json(*run)["loss"])

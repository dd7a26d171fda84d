"""bench/nn/store_layers.py and bench/nn/scaling.py, each as a program of its own."""

import json
import re
import subprocess
import sys

import pytest

from ranks import HERE, alone, environment
from test_checkpoint import PROGRAM, run

FOLDER = HERE.parents[1] / "bench/nn"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.plait"
    run("generate", "dcsbm", "--vertices", 600, "--edges", 6000, "--width", 12, "--seed", 1, "-o", path)
    return path


# Starts the script that the first argument names, where PyTorch Geometric's GAT lacks a GPU's memory.
WITHOUT_MEMORY = """
import runpy, sys
import torch, torch_geometric.nn, plait.nn
class Conv(torch_geometric.nn.GATConv):
    def forward(self, *arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6.87 GiB. GPU 0 has less.\\nSee elsewhere.")
torch_geometric.nn.GATConv = Conv
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(script, *options, by=()):
    return subprocess.run([sys.executable, *by, str(FOLDER / script), *map(str, options)], text=True,
                          capture_output=True, timeout=300, env=environment())


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_store_layers(graph, tmp_path):
    [out] = alone(FOLDER / "store_layers.py", graph, "--fanout", 3, 2, "--hidden", 8, "--batch", 50, "--epochs", 2,
                  "--json", tmp_path / "s.json").succeed()
    assert re.findall(r"^(\w+) +Plait's layers make an epoch ([\d.]+) times", out, re.MULTILINE)[0][0] == "SAGE"
    lines = lines_of(tmp_path / "s.json")
    assert {line["case"]["model"] for line in lines} == {"SAGE", "GCN", "GAT"}
    for model in ("SAGE", "GCN", "GAT"):
        ms = {line["case"]["part"]: line["least_ms"] for line in lines if line["case"]["model"] == model}
        assert len(ms) == 6 and min(ms.values()) > 0
        for way in ("torch_geometric.nn", "plait.nn"):
            assert ms[f"epoch by {way}"] >= (ms["sampling"] + ms["gathering"] + ms[way]) * (1 - 1e-5)


def test_store_layers_without_memory(graph, tmp_path):
    """One way fails, and the other one and the next model are timed."""
    done = start("store_layers.py", graph, "--models", "GAT", "GCN", "--fanout", 3, 2, "--hidden", 8, "--batch", 50,
                 "--epochs", 1, "--json", tmp_path / "s.json", by=("-c", WITHOUT_MEMORY))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^GAT   torch_geometric.nn layers  out of memory \(6.87 GiB\)$", done.stdout, re.MULTILINE)
    assert "Plait's layers make" in done.stdout and "GAT   Plait's layers make" not in done.stdout
    lines = lines_of(tmp_path / "s.json")
    assert len(lines) == 12
    for line in lines:
        lacks = line["case"]["model"] == "GAT" and "torch_geometric.nn" in line["case"]["part"]
        assert line.get("failed") == ("out of memory (6.87 GiB)" if lacks else None)
        assert lacks != ("median_ms" in line)


@pytest.mark.parametrize("options, counts", [(("--ranks", 2, 1), [1, 2]), ((), [1, 2])])
def test_scaling(graph, tmp_path, options, counts):
    done = start("scaling.py", graph, *options, "--plait", PROGRAM, "--fanout", "3,2", "--hidden", 8, "--batch", 40, "--epochs", 1,
                 "--repeats", 1, "--models", "gcn", "gat", "--json", tmp_path / "s.json")
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "s.json")
    assert [(line["case"]["model"], line["case"]["ranks"]) for line in lines] == [
        (model, count) for model in ("gcn", "gat") for count in counts]
    for one, more in (lines[:2], lines[2:]):
        assert one["speedup"] == 1 and more["speedup"] == pytest.approx(one["median_ms"] / more["median_ms"], rel=1e-4)


def test_scaling_tells_what_plait_tells(tmp_path):
    done = start("scaling.py", tmp_path / "missing.plait", "--plait", PROGRAM, "--json", tmp_path / "s.json")
    assert done.returncode == 1 and "missing.plait" in done.stderr and "Traceback" not in done.stderr


def test_scaling_refuses_another_loss(graph, tmp_path):
    """A program that learns at another rate on two ranks, which shows from the second step on."""
    program = tmp_path / "plait"
    program.write_text(f'#!/bin/sh\ncase "$*" in *"--ranks 2"*) set -- "$@" --lr 0.011;; esac\nexec {PROGRAM} "$@"\n')
    program.chmod(0o755)
    done = start("scaling.py", graph, "--plait", program, "--fanout", "3,2", "--hidden", 8, "--models", "gcn", "--json",
                 tmp_path / "s.json")
    assert done.returncode == 1 and "scaling: gcn: the losses on 2 and 1 are " in done.stderr
    assert lines_of(tmp_path / "s.json") == []

"""plait study on GPUs: the studies of training on samples, of gathers and of latency; and plait bench model.
scripts/gpu-test runs it."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from test_json import check

GPUS = torch.cuda.device_count()
SHORT = ("--repetitions", 2)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "communities.plait"
    program.Plait(path.parent).ok("generate", "dcsbm", "--vertices", 20000, "--edges", 200000, "--width", 100, "-o", path)
    return path


def study(tmp_path, name, graph, gpus, *options):
    if gpus > GPUS:
        pytest.skip("--gpus needs a GPU for each rank")
    read = () if graph is None else (graph,)
    found = program.Plait(tmp_path).json("study", name, *read, "--gpus", gpus, *SHORT, *options)
    check("study", found)
    assert (found["device"], found["ranks"], found["does_not_fit"]) == ("cuda", gpus, [])
    return {row["name"]: row for row in found["rows"]}


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.alone
def test_epochs(tmp_path, graph, gpus):
    rows = study(tmp_path, "epochs", graph, gpus, "--width", 32)
    assert len(rows) == 15
    for model in ("gcn", "sage", "gat"):
        parts = [rows[f"{model}: {part}"]["median_ms"] for part in ("sampling", "gathering", "computing")]
        assert min(parts) > 0 and sum(parts) < 2 * rows[f"{model}, in turn"]["median_ms"]


@pytest.mark.alone
@pytest.mark.parametrize("gpus", [1, 2])
def test_memory(tmp_path, graph, gpus):
    rows = study(tmp_path, "memory", graph, gpus, "--width", 32)
    for part in ("structure", "features"):  # the driver gives whole pages of 2 MiB
        row = rows[part]
        assert row["planned_bytes"] * 0.9 <= row["measured_bytes"] <= row["planned_bytes"] * 1.5 + 2**23, row
    assert rows["training"]["measured_bytes"] > 0


@pytest.mark.alone
def test_gathers(tmp_path, graph):
    rows = study(tmp_path, "gathers", graph, 2, "--width", 100)
    assert all(row["error"] == 0 and 0.4 < row["link_gb_s"] / row["gb_s"] < 0.6 for row in rows.values())
    rows = study(tmp_path, "row-bytes", None, 2)
    assert rows["1024 bytes"]["gb_s"] > 4 * rows["4 bytes"]["gb_s"]


def test_occupancy_is_asked_of_the_gpu(tmp_path, graph):
    rows = study(tmp_path, "occupancy", graph, 2)
    assert len(rows) == 10
    for name, row in rows.items():
        warps = int(name.split()[1].rstrip(",")) * row["blocks_at_once"]
        assert 16 <= row["registers"] <= 64 and row["blocks_at_once"] >= 1
        # A multiprocessor has 48 or 64 warps at most, and 65,536 registers.
        assert row["occupancy"] in (warps / 48, warps / 64) and warps * 32 * row["registers"] <= 65536


@pytest.mark.alone
def test_latency(tmp_path):
    rows = study(tmp_path, "latency", None, 2)
    for size in ("8.0 GiB", "16.0 GiB"):
        own, peers, managed = (rows[f"{whose}, {size}"]["median_ms"] for whose in ("own", "all ranks'", "managed"))
        assert 0.1 < own < peers < managed  # us of a read


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", ["gcn", "gin"])
def test_models(tmp_path, graph, gpus, model):
    if gpus > GPUS:
        pytest.skip("--gpus needs a GPU for each rank")
    found = program.Plait(tmp_path).json("bench", "model", graph, "--gpus", gpus, "--model", model, "--training",
                                         "--repetitions", 2)
    check("bench model", found)
    assert (found["device"], found["ranks"], found["does_not_fit"]) == ("cuda", gpus, [])
    assert {row["work"] for row in found["rows"]} == {"inference", "training"}

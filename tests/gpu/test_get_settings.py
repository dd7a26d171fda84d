"""The settings of strategy get, from the command line to the kernel: results, their bits, and what
--json says. scripts/gpu-test runs it.
"""

import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from random_graphs import random_graphs, write_scipy
from test_json import check

GPUS = torch.cuda.device_count()
STANDARD = {"ps": 16, "remote_ps": 16, "dist": 2, "wpb": 4, "get": "blocking", "interleave": "on",
            "read_by": "warp", "read_with": "addresses", "dw": "auto", "sums": "ordered"}
# Of these none changes the order in which a row is summed.
SAME_BITS = [{"dist": 7}, {"wpb": 16}, {"get": "async"}, {"interleave": "off"}, {"read_by": "thread"},
             {"read_by": "block"}, {"read_by": "block", "get": "async", "wpb": 3, "interleave": "off"},
             {"dw": 8}]
BY_NVSHMEM = [{"read_with": "nvshmem", "read_by": by, "get": get} for by in ("thread", "warp", "block")
              for get in ("blocking", "async")]
OTHER_BITS = [{"ps": 1, "remote_ps": 1}, {"ps": 100, "remote_ps": 100}, {"ps": "none", "remote_ps": "none"},
              {"dw": 1}]


def options_of(settings):
    return [word for key, value in settings.items() for word in ("--" + key.replace("_", "-"), value)]


@pytest.fixture(scope="module", params=[1, 2])
def case(request, tmp_path_factory):
    """A graph with rows of hundreds of edges, and the result of SciPy."""
    if request.param > GPUS:
        pytest.skip("--gpus needs a GPU for each rank")
    folder, rng = tmp_path_factory.mktemp("get"), np.random.default_rng(5)
    graphs = random_graphs(3, 30, shuffled=True)
    row, column = rng.integers(graphs.vertices, size=(2, 300 * graphs.vertices))
    graphs.row, graphs.column = np.concatenate([graphs.row, row]), np.concatenate([graphs.column, column])
    if graphs.weight is not None:
        graphs.weight = np.concatenate([graphs.weight, np.ones(len(row), graphs.weight.dtype)])
    write_scipy(folder / "g.npz", graphs)
    x = rng.standard_normal((graphs.vertices, 20)).astype(np.float32)
    np.save(folder / "x.npy", x)
    wanted, bound = graphs.matrix("sum") @ x, graphs.matrix("sum") @ np.abs(x)

    def aggregate(**settings):
        found = program.Plait(folder).json(
            "aggregate", folder / "g.npz", "--features", folder / "x.npy", "--out", folder / "y.npy",
            "--gpus", request.param, "--strategy", "get", *options_of(settings),
            *(["--transport", "nvshmem"] if "read_with" in settings else []))
        check("aggregate", found)
        assert found["get"] == STANDARD | settings
        y = np.load(folder / "y.npy")
        assert (np.abs(y - wanted) <= 1e-5 * bound + 1e-6).all(), settings
        return y

    return aggregate


def test_settings_reach_the_kernel(case):
    standard = case()
    for settings in SAME_BITS:
        assert np.array_equal(case(**settings), standard), settings
    results = [standard, *(case(**settings) for settings in OTHER_BITS)]
    for i, one in enumerate(results):
        assert all(not np.array_equal(one, other) for other in results[:i])


def needs_device_functions():
    """Skips a test where plait doctor does not find that these functions can be used."""
    findings = program.Plait(pathlib.Path()).json("doctor")["findings"]
    found = next((finding["found"] for finding in findings if finding["what"] == "NVSHMEM"), "")
    if "and --read-with nvshmem" not in found:
        pytest.skip(f"NVSHMEM's device functions cannot be used: {found}")


def test_device_functions_give_the_same_bits(case):
    needs_device_functions()
    standard, whole_rows = case(), case(ps="none", remote_ps="none")
    for settings in BY_NVSHMEM:
        assert np.array_equal(case(**settings), standard), settings
        assert np.array_equal(case(**settings, ps="none", remote_ps="none"), whole_rows), settings


@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
def test_study_compares_device_functions(tmp_path):
    needs_device_functions()
    plait = program.Plait(tmp_path)
    run = ["study", "communication", "--like", "reddit", "--scale", 0.01, "--gpus", 2, "--repetitions", 2]
    found = plait.json(*run, "--transport", "nvshmem")
    check("study", found)
    addresses = ["thread", "block", "warp"]
    assert [row["name"] for row in found["rows"]] == addresses + ["nvshmem " + name for name in addresses]
    assert found["does_not_fit"] == [] and len({row["link_bytes"] for row in found["rows"]}) == 1
    without = plait.json(*run)
    assert [row["name"] for row in without["rows"]] == addresses
    assert all("--transport nvshmem" in row["why"] for row in without["does_not_fit"])
    assert len(without["does_not_fit"]) == 3


def test_remote_groups_have_their_own_size(case):
    assert case(ps=16, remote_ps="none") is not None
    assert np.array_equal(case(ps=5, remote_ps=5), case(ps=5, remote_ps=5, read_by="thread"))


def test_sums_by_atomics_are_right(case):
    assert case(sums="atomic", dw=32) is not None


@pytest.mark.skipif(GPUS == 0, reason="needs a GPU")
def test_other_commands_say_what_they_used(tmp_path):
    plait, gpus = program.Plait(tmp_path), min(GPUS, 2)
    graph, settings = tmp_path / "g.plait", {"ps": 40, "remote_ps": 7, "read_by": "block"}
    plait.ok("generate", "dcsbm", "--vertices", 600, "--edges", 20000, "--seed", 1, "-o", graph)
    found = plait.json("bench", "aggregate", graph, "--gpus", gpus, "--strategies", "bulk,get", "--repetitions",
                       2, "--widths", "3,64", *options_of(settings))
    check("bench aggregate", found)
    assert [row.get("get") for row in found["rows"]] == 2 * [None] + 2 * [STANDARD | settings]
    get = ["--gpus", gpus, "--strategy", "get"]
    runs = [plait.json("train", graph, "--epochs", 5, "--checkpoint", tmp_path / "c.safetensors", *get, *more)
            for more in ([], options_of(settings))]
    assert [run["get"] for run in runs] == [STANDARD, STANDARD | settings]
    np.testing.assert_allclose(runs[0]["loss"], runs[1]["loss"], rtol=1e-4)
    found = plait.json("infer", graph, "--checkpoint", tmp_path / "c.safetensors", "--out",
                       tmp_path / "y.npy", *get, *options_of(settings))
    check("infer", found)
    assert found["get"] == STANDARD | settings

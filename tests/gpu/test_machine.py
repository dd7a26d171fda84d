"""plait doctor --measure on GPUs, and runs by the profiles of other machines: plans differ, results do
not. scripts/gpu-test runs it.
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
SLOW_LINKS = pathlib.Path(__file__).with_name("slow_links.json")


@pytest.mark.parametrize("gpus", [1, 2])
def test_measures_and_keeps(tmp_path, gpus):
    if gpus > GPUS:
        pytest.skip("--gpus needs a GPU for each rank")
    plait, env = program.Plait(tmp_path), program.environment(PLAIT_MACHINES=str(tmp_path / "machines"))
    found = plait.json("doctor", "--measure", "--gpus", gpus, env=env)
    check("doctor", found)
    rates = {(one["rate"], one["row_bytes"]): one["value"] for one in found["rates"]}
    assert min(rates.values()) > 0
    assert ("engine push", None) in rates or gpus == 1
    # A cache is faster than memory, wide rows are than narrow ones, own memory than the host's.
    assert rates["cached rows", 256] > 1.2 * rates["local rows", 256]
    assert rates["local rows", 1024] > 1.2 * rates["local rows", 32]
    assert rates["local rows", 256] > 5 * rates["host rows", 256]
    # The cost model's constants are within a factor of the built-in ones, which were an H200's.
    for one in found["constants"]:
        assert 0.1 < one["value"] / one["built_in"] < 10, one
    assert len(list((tmp_path / "machines").iterdir())) == 1


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A graph of hubs and short rows, features, SciPy's sums and the bound of their errors."""
    folder, rng = tmp_path_factory.mktemp("machine"), np.random.default_rng(8)
    graphs = random_graphs(5, 40, shuffled=True)
    hub = np.arange(graphs.vertices)
    graphs.row = np.concatenate([graphs.row, hub % 3, hub])
    graphs.column = np.concatenate([graphs.column, hub, hub % 3])
    if graphs.weight is not None:
        graphs.weight = np.concatenate([graphs.weight, np.ones(2 * len(hub), graphs.weight.dtype)])
    write_scipy(folder / "g.npz", graphs)
    x = rng.standard_normal((graphs.vertices, 33)).astype(np.float32)
    np.save(folder / "x.npy", x)
    return folder, graphs.matrix("sum") @ x, graphs.matrix("sum") @ np.abs(x)


def aggregate(case, env, *options):
    folder, wanted, bound = case
    result = program.Plait(folder)("aggregate", folder / "g.npz", "--features", folder / "x.npy", "--out",
                                   folder / "y.npy", "--gpus", 2, *options, env=env)
    assert result.code == 0, result
    y = np.load(folder / "y.npy")
    assert (np.abs(y - wanted) <= 1e-5 * bound + 1e-6).all(), options
    return result, y


@pytest.mark.skipif(GPUS < 2, reason="--gpus needs a GPU for each rank")
@pytest.mark.parametrize("strategy", ["auto", "pipelined", "partial", "bulk", "replicate", "get"])
def test_slow_links_give_the_same_sums(case, strategy):
    env = program.environment(PLAIT_MACHINE=str(SLOW_LINKS))
    aggregate(case, env, "--strategy", strategy)
    if strategy in ("pipelined", "bulk"):
        bits = [aggregate(case, e, "--strategy", strategy, "--exact")[1] for e in (env, program.environment())]
        np.testing.assert_array_equal(*bits)


@pytest.mark.skipif(GPUS < 2, reason="--gpus needs a GPU for each rank")
def test_runs_follow_what_is_kept(case, tmp_path):
    """A file that cannot be used is named once, by rank 0; a good one is used in silence."""
    env = program.environment(PLAIT_MACHINES=str(tmp_path))
    program.Plait(tmp_path).ok("doctor", "--measure", "--gpus", 2, env=env)
    assert aggregate(case, env)[0].err == ""
    [path] = tmp_path.iterdir()
    path.write_text("{")
    result, _ = aggregate(case, env)
    assert result.err.count("is not used: it is damaged") == 1
    plan = program.Plait(tmp_path)("plan", case[0] / "g.npz", "--gpus", 2, "--width", 8, env=env)
    assert plan.code == 0 and plan.err.count("is not used: it is damaged") == 1

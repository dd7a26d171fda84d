"""Trials of ways by which plait train begins on GPUs (--optimise on): losses are those of a run without trials,
and the next run begins with the way that stayed. scripts/gpu-test runs it.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS < 2, reason="one GPU moves no rows")


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.plait"
    program.Plait(path.parent).ok("generate", "dcsbm", "--vertices", 100000, "--edges", 4000000, "--seed", 1,
                                  "-o", path)
    return path


@pytest.mark.alone
# Placing a graph on GPUs takes as long as hundreds of epochs of a small one, which trials wait for; an exact
# epoch takes fifty times as long as others, because its sums cross the host.
@pytest.mark.parametrize("epochs, options", [(4000, ()), (100, ("--exact",)), (1500, ("--model", "gat"))])
def test_trials_change_no_loss(graph, tmp_path, epochs, options):
    plait = program.Plait(tmp_path)
    env = program.environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    run = ("train", graph, "--gpus", 2, "--partition", "edges", *options)
    found = plait.json(*run, "--epochs", epochs, "--optimise", "on", env=env)
    plain = plait.json(*run, "--epochs", epochs, "--optimise", "off")
    assert plain["trials"] == []
    np.testing.assert_allclose(found["loss"][:50], plain["loss"][:50], rtol=1e-4)
    timed = [t for t in found["trials"] if t["epoch_ms"] is not None]
    assert len(timed) > 1, found["trials"]
    ways = [(t["strategy"], t["passes"]) for t in timed]
    assert ways[0] == ("pipelined", 0) and (found["strategy"], found["passes"]) in ways
    if options == ("--exact",):
        assert found["loss"] == plain["loss"] and {p for _, p in ways} == {0}
    [path] = (tmp_path / "routes").iterdir()
    kept = json.loads(path.read_text())["routes"]
    assert (kept[0]["strategy"], kept[0]["passes"]) == (found["strategy"], found["passes"])
    after = plait.json(*run, "--epochs", 5, env=env)
    assert (after["strategy"], after["passes"], after["trials"]) == (found["strategy"], found["passes"], [])


def test_auto_tries_nothing_on_gpus(graph, tmp_path):
    env = program.environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    found = program.Plait(tmp_path).json("train", graph, "--gpus", 2, "--epochs", 300, env=env)
    assert found["trials"] == [] and not (tmp_path / "routes").exists()

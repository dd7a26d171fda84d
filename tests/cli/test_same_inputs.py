"""Ranks that are given different files or settings end at once, all with the same line that names
the difference and the ranks. Equal content in different files is no difference."""

import os
import signal
import time

import numpy as np
import pytest

import program
from program import FAILED, INTERRUPTED, USAGE


@pytest.fixture(scope="module")
def files(tmp_path_factory, communities, communities_npz):
    """Makes two of each: graphs of the same size, checkpoints of the same model, features."""
    folder = tmp_path_factory.mktemp("files")
    plait = program.Plait(folder)
    plait.ok("generate", "dcsbm", "--vertices", 600, "--edges", 6000, "--seed", 2, "-o",
             folder / "other.plait")
    for name, epochs in [("c1", 2), ("c2", 4)]:
        plait.ok("train", communities, "--epochs", epochs, "--checkpoint",
                 folder / f"{name}.safetensors")
    for name in ["x1", "x2"]:
        np.save(folder / f"{name}.npy", np.full((600, 3), len(name) + int(name[1]), np.float32))
    return {"graph": [communities, folder / "other.plait"], "npz": communities_npz,
            "checkpoint": [folder / "c1.safetensors", folder / "c2.safetensors"],
            "features": [folder / "x1.npy", folder / "x2.npy"]}


def run(*commands):
    """Returns the results of ranks, each of which is given one command."""
    return [program.result_of(p, 30) for p in program.start_ranks(*[(c, {}) for c in commands])]


def command(name, files, out, *, graph=0, checkpoint=0, features=0):
    graph = files["graph"][graph]
    checkpoint = files["checkpoint"][checkpoint]
    return {
        "train": ["train", graph, "--epochs", 6],
        "resume": ["train", graph, "--epochs", 6, "--resume", checkpoint],
        "infer": ["infer", graph, "--checkpoint", checkpoint, "--out", out / "y.npy"],
        "layers": ["infer", graph, "--checkpoint", checkpoint, "--out", out / "y.npy",
                   "--memory-limit", "1G"],
        "aggregate": ["aggregate", graph, "--features", files["features"][features], "--out",
                      out / "y.npy"],
    }[name]


@pytest.mark.parametrize("name,differs", [
    ("train", "graph"), ("infer", "graph"), ("layers", "graph"), ("aggregate", "graph"),
    ("resume", "checkpoint"), ("infer", "checkpoint"), ("layers", "checkpoint"),
    ("aggregate", "features")])
def test_different_files(tmp_path, files, name, differs):
    results = run(command(name, files, tmp_path), command(name, files, tmp_path, **{differs: 1}))
    what = differs if differs == "features" else f"{differs}s"
    for result in results:
        assert (result.code, result.out) == (FAILED, ""), results
        program.check_one_line(result, [f"ranks read different {what}: ", " on rank 0, but ",
                                        " on rank 1; give every rank the same"])
    assert program.contents(tmp_path) == {}


@pytest.mark.parametrize("more,says", [
    (["--hidden", 32], "--hidden is by model on rank 0, but 32 on rank 2"),
    (["--resume", "c.safetensors"], "--resume is not given on rank 0, but given on rank 2"),
    (["--partition", "hash"], "--partition is edges on rank 0, but hash on rank 2"),
    (["--residual"], "--residual is not given on rank 0, but given on rank 2"),
    (["--checkpoint", "c"], "--checkpoint is not given on rank 0, but c on rank 2"),
    (["--folds", 5], "--folds is not given on rank 0, but 5 on rank 2")])
def test_different_settings(tmp_path, files, more, says):
    train = command("train", files, tmp_path)
    results = run(train, train, train + more)
    for result in results:
        assert (result.code, result.out) == (USAGE, ""), results
        program.check_one_line(result, ["ranks have different settings", says])


AGGREGATE = ["aggregate", "GRAPH", "--features", "X"]


@pytest.mark.parametrize("first,second,says", [
    ([*AGGREGATE, "--out", "a.npy"], [*AGGREGATE, "--out", "b.npy"],
     "--out is a.npy on rank 0, but b.npy on rank 1"),
    ([*AGGREGATE, "--out", "a.npy"], [*AGGREGATE, "--out", "a.npy", "--transposed"],
     "--transposed is not given on rank 0, but given on rank 1"),
    ([*AGGREGATE, "--out", "a.npy"], [*AGGREGATE, "--out", "a.npy", "--op", "mean"],
     "--op is sum on rank 0, but mean on rank 1"),
    (["infer", "GRAPH", "--checkpoint", "C", "--memory-limit", "1G", "--out", "a.npy", "--work",
      "a"], ["infer", "GRAPH", "--checkpoint", "C", "--memory-limit", "1G", "--out", "a.npy"],
     "--work is a on rank 0, but not given on rank 1")])
def test_what_is_written(tmp_path, files, first, second, says):
    """Files that are read may have other names; files that are written may not. Nothing is written."""
    named = {"GRAPH": files["graph"][0], "X": files["features"][0], "C": files["checkpoint"][0]}
    commands = [[named.get(a, tmp_path / a if a in ("a", "a.npy", "b.npy") else a) for a in c]
                for c in (first, second)]
    for result in run(*commands):
        assert (result.code, result.out) == (USAGE, ""), result
        program.check_one_line(result, ["ranks have different settings"])
        assert says in result.err.replace(f"{tmp_path}/", ""), result
    assert program.contents(tmp_path) == {}


def test_what_may_differ(tmp_path, files):
    """Names and formats of files that are read, the form of output, and timeouts may differ."""
    train = ["--epochs", 6]
    first, second = run(["train", files["graph"][0], *train, "--json"],
                        ["train", files["npz"], *train, "--quiet", "--timeout", 4])
    assert (first.code, first.err, second.code, second.err) == (0, "", 0, ""), (first, second)
    plait = program.Plait(tmp_path)
    assert first.json["loss"] == plait.json("train", files["graph"][0], *train, "--ranks", 2)["loss"]


def test_second_sigterm_ends_a_rank_that_waits(files, tmp_path):
    """The other one stands still, and the timeout is long."""
    checkpoint = tmp_path / "c.safetensors"
    arguments = ["train", files["graph"][0], "--epochs", 9999999, "--checkpoint", checkpoint,
                 "--checkpoint-every", 1]
    variables = {"PLAIT_TIMEOUT_MS": "60000"}
    first, second = program.start_ranks((arguments, variables), (arguments, variables))
    program.wait_until(checkpoint.exists, 30, "a checkpoint")
    os.kill(second.pid, signal.SIGSTOP)
    try:
        os.kill(first.pid, signal.SIGTERM)
        time.sleep(0.5)
        assert first.poll() is None
        os.kill(first.pid, signal.SIGTERM)
        assert program.result_of(first, 30).code == INTERRUPTED
    finally:
        second.kill()
        program.result_of(second, 5)

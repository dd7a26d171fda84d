"""Pauses, hangs and deaths of ranks on GPUs, from the command line and from Python: the result is the
undisturbed one, or the run ends with the lost rank's number and no result. Ranks share GPUs where
there are fewer. scripts/gpu-test runs it.
"""

import contextlib
import os
import pathlib
import signal
import sys
import time

import numpy as np
import pytest
import torch

for folder in ("cli", "python"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
import conftest  # noqa: F401  the package under test
import program
from ranks import Ranks, free_port

GPUS = torch.cuda.device_count()
VERTICES = 200000
PAUSE = 75  # s, more than any wait took before it was given up
needs_gpus = pytest.mark.skipif(GPUS < 2, reason="--gpus needs a GPU for each rank")
HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.plait"
    program.Plait(path.parent).ok("generate", "dcsbm", "--vertices", VERTICES, "--edges", 4000000,
                                  "--seed", 1, "-o", path)
    np.save(path.parent / "x.npy", np.random.default_rng(0).random((VERTICES, 24), np.float32))
    return path


@pytest.fixture(scope="module")
def checkpoint(graph):
    path = graph.parent / "c.safetensors"
    program.Plait(graph.parent).ok("train", graph, "--gpus", 1, "--epochs", 5, "--quiet",
                                   "--checkpoint", path)
    return path


def commands(graph, checkpoint, out):
    """Returns the commands that run on ranks, each with the file that it writes."""
    return {
        "train": ["train", graph, "--epochs", 3000, "--checkpoint-every", 500, "--checkpoint",
                  out / "w.safetensors", "--json"],
        "infer": ["infer", graph, "--checkpoint", checkpoint, "--out", out / "s.npy", "--json"],
        "aggregate": ["aggregate", graph, "--features", graph.parent / "x.npy", "--out",
                      out / "y.npy", "--json"],
    }


# --- pauses ---


def start(arguments, *options):
    return program.start(*arguments, "--gpus", min(GPUS, 4), "--quiet", *options)


def hold(process, delay, whole_job):
    """Stops one rank, or all and the launcher, after `delay` seconds."""
    time.sleep(delay)
    ranks = program.ranks_of(process.pid)
    victims = [process.pid, *ranks.values()] if whole_job else [ranks.get(1)]
    victims = [v for v in victims if v]
    for victim in victims:
        os.kill(victim, signal.SIGSTOP)
    return victims


def outcome_of(arguments, result):
    """Returns the results that must not depend on pauses: the numbers printed, and the file."""
    assert (result.code, result.err) == (program.RIGHT, ""), result
    kept = {k: v for k, v in result.json.items() if k in ("loss", "test_metric", "accuracy")}
    files = [a for a in arguments if isinstance(a, pathlib.Path) and a.suffix == ".npy"]
    return kept, program.contents(files[-1].parent) if files else None


@needs_gpus
def test_pauses_change_nothing(graph, checkpoint, tmp_path):
    """A rank, or all, are stopped for longer than GPUs ever wait for a hang, in each command."""
    wanted, runs = {}, []
    for name, arguments in commands(graph, checkpoint, tmp_path).items():
        wanted[name] = outcome_of(arguments, program.result_of(start(arguments), 120))
    for name in wanted:
        for number, (whole_job, delay) in enumerate([(False, 2.5), (False, 4), (True, 3)]):
            out = tmp_path / f"{name}{number}"
            out.mkdir()
            arguments = commands(graph, checkpoint, out)[name]
            process = start(arguments, "--timeout", 300, "--gpu-timeout", 20)
            runs.append((name, arguments, process, hold(process, delay, whole_job)))
    time.sleep(PAUSE)
    for *_, victims in runs:
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):  # it had ended when it was to be stopped
                os.kill(victim, signal.SIGCONT)
    for name, arguments, process, _ in runs:
        numbers, files = outcome_of(arguments, program.result_of(process, 180))
        assert numbers == wanted[name][0], name
        if files is not None:
            assert files.values() and set(files.values()) <= set(wanted[name][1].values()), name


# --- deaths ---


@needs_gpus
@pytest.mark.parametrize("delay", [0.3, 1, 2, 3, 4, 6])
def test_killed_rank(graph, checkpoint, tmp_path, delay):
    arguments = commands(graph, checkpoint, tmp_path)["train"]
    arguments[arguments.index("--epochs") + 1] = 9999999
    process = start(arguments)
    program.wait_until(lambda: 1 in program.ranks_of(process.pid), 20, "rank 1 has started")
    time.sleep(delay)
    os.kill(program.ranks_of(process.pid)[1], signal.SIGKILL)
    began = time.monotonic()
    result = program.result_of(process, 60)
    assert time.monotonic() - began < 5
    assert result.code == program.FAILED, result
    assert result.lines and all("rank 1 was killed" in line for line in result.lines), result
    assert result.out == ""


# --- Python ---


def run_slow_host(when, what="pause", ranks=2, **environment):
    os.environ.update(environment)
    return Ranks(ranks, HERE / "slow_host.py", when, what, timeout_ms=5000)


def test_a_script_that_pauses():
    undisturbed = run_slow_host("never").succeed()
    runs = {when: run_slow_host(when, TEST_PAUSE=str(PAUSE), PLAIT_GPU_TIMEOUT_MS="20000")
            for when in ("step", "evaluation", "checkpoint")}
    for when, run in runs.items():
        assert run.succeed() == undisturbed, when


@pytest.mark.parametrize("when", ["step", "evaluation"])
def test_a_kernel_that_never_ends(when):
    began = time.monotonic()
    results = run_slow_host(when, "endless", PLAIT_GPU_TIMEOUT_MS="3000").results()
    assert time.monotonic() - began < 60
    for code, output, errors in results:
        assert code == 1 and (output == "" or "NaN" in output), errors
    assert "plait: rank 0: rank 1 has a GPU that has not moved on for 3" in results[0][2]


# --- settings ---


@needs_gpus
@pytest.mark.parametrize("name", ["train", "infer", "aggregate"])
def test_transport_arrives(graph, checkpoint, tmp_path, name):
    """NVSHMEM itself prints that it has been started."""
    arguments = commands(graph, checkpoint, tmp_path)[name]
    for transport, named in (("nvshmem", True), ("cuda", False)):
        result = program.result_of(program.start(
            *arguments, "--gpus", 2, "--transport", transport,
            env=program.environment(NVSHMEM_DEBUG="VERSION")), 120)
        assert result.code == program.RIGHT, result
        assert ("NVSHMEM" in result.out + result.err) == named, result


@pytest.mark.parametrize("visible", ["0", None])
def test_ranks_do_not_share_a_gpu(graph, checkpoint, tmp_path, visible):
    """A process that sees one GPU takes it, whatever its local rank; two ranks on one are refused."""
    variables = dict(WORLD_SIZE="2", MASTER_PORT=str(free_port()), MASTER_ADDR="127.0.0.1")
    ranks = []
    for rank in range(2):
        local = dict(CUDA_VISIBLE_DEVICES=visible, LOCAL_RANK=str(rank)) if visible else dict(
            LOCAL_RANK="0")
        env = program.environment(RANK=str(rank), **variables, **local)
        ranks.append(program.start(*commands(graph, checkpoint, tmp_path)["train"], "--gpus", 1,
                                   env=env))
    for rank in ranks:
        result = program.result_of(rank, 60)
        assert result.code == program.USAGE, result
        assert "ranks 0 and 1 have the same GPU" in result.err, result


@needs_gpus
def test_one_visible_gpu_a_process(graph, checkpoint, tmp_path):
    variables = dict(WORLD_SIZE="2", MASTER_PORT=str(free_port()), MASTER_ADDR="127.0.0.1")
    ranks = [program.start(*commands(graph, checkpoint, tmp_path)["infer"], "--gpus", 1,
                           env=program.environment(RANK=str(rank), LOCAL_RANK=str(rank),
                                                   CUDA_VISIBLE_DEVICES=str(rank), **variables))
             for rank in range(2)]
    for rank in ranks:
        result = program.result_of(rank, 60)
        assert (result.code, result.err) == (program.RIGHT, ""), result


def test_doctor_runs_a_kernel_on_each_gpu():
    result = program.result_of(program.start("doctor", "--json"), 60)
    assert result.code == program.RIGHT, result

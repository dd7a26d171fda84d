"""plait train --sampled on GPUs of several hosts, played on one machine: each host sees GPUs of its own and has the whole
graph, and only gradients cross between hosts. Losses are those of one CPU rank. scripts/gpu-test runs it.
"""

import os
import pathlib
import signal
import sys
import time

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS < 2, reason="fewer than two GPUs")
SHARED = {"PLAIT_INTERFACE": "127.0.0.1"}
EXAMPLES = 252  # of a step: a number that 1, 2, 3 and 4 ranks divide
MODELS = {
    "gcn": ("--model", "gcn", "--fanout", "5,3"),
    "sage": ("--model", "sage", "--hidden", 20, "--fanout", "5,3"),
    "gin with batch norm": ("--model", "gin", "--layers", 2, "--fanout", "5,3"),
    "gat": ("--model", "gat", "--hidden", 24, "--heads", 4, "--output-heads", 3, "--fanout", "5,3"),
}


def hosts_of(letters):
    """Variables of one rank for each letter, on the host of this name, which sees no other host's GPUs."""
    if len(letters) > GPUS:
        pytest.skip("fewer GPUs")
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = given.split(",") if given else [str(gpu) for gpu in range(GPUS)]
    return [SHARED | {"PLAIT_HOST_ID": letter, "LOCAL_RANK": str(letters[:rank].count(letter)),
                      "CUDA_VISIBLE_DEVICES": ",".join(g for g, l in zip(gpus, letters) if l == letter)}
            for rank, letter in enumerate(letters)]


def train(graph, model, *more, epochs=3):
    return ["train", graph, *MODELS[model], "--epochs", epochs, "--seed", 3, "--sampled", *more]


def on_hosts(letters, arguments):
    """The object that rank 0 prints; all ranks must end well, without a word."""
    arguments = [*arguments, "--batch", EXAMPLES // len(letters), "--gpus", len(letters), "--json"]
    results = program.run_by_hand(arguments, *hosts_of(letters))
    assert [(r.code, r.err) for r in results] == [(0, "")] * len(letters), results
    assert all(r.out == "" for r in results[1:])
    return results[0].json


def check_same(found, wanted):
    for key in ("loss", "val_loss_by_epoch"):
        np.testing.assert_allclose(found[key], wanted[key], rtol=1e-4)


@pytest.mark.parametrize("hosts", ["ab", "aab", "abb", "aabb"])
@pytest.mark.parametrize("model", MODELS)
def test_losses_are_those_of_one_host(graph, tmp_path, model, hosts):
    """A vertex that several ranks sample counts several times in batch norm: as many ranks on both sides."""
    ranks = len(hosts) if model == "gin with batch norm" else 1
    found = on_hosts(hosts, train(graph, model))
    wanted = program.Plait(tmp_path).json(*train(graph, model), "--batch", EXAMPLES // ranks, "--ranks", ranks)
    check_same(found, wanted)
    assert (found["ranks"], found["device"]) == (len(hosts), "cuda")
    assert found["loss"][0] != found["loss"][-1]
    assert found["bytes_per_rank"] > 0  # gradients


@pytest.mark.parametrize("hosts", ["ab", "aabb"])
@pytest.mark.parametrize("more", [("--structure", "sharded"), ("--strategy", "bulk"), ("--partition", "hash")])
def test_every_placing_within_a_host_gives_the_same(graph, tmp_path, hosts, more):
    wanted = program.Plait(tmp_path).json(*train(graph, "sage"), "--batch", EXAMPLES)
    check_same(on_hosts(hosts, train(graph, "sage", *more)), wanted)


@pytest.mark.parametrize("hosts", ["ab", "aabb"])
def test_a_run_goes_on(graph, tmp_path, hosts):
    path = tmp_path / "c.safetensors"
    on_hosts(hosts, train(graph, "sage", "--checkpoint", path, epochs=2))
    rest = on_hosts(hosts, train(graph, "sage", "--resume", path, epochs=4))
    check_same(rest, program.Plait(tmp_path).json(*train(graph, "sage", epochs=4), "--batch", EXAMPLES))


@pytest.mark.parametrize("arguments, advice", [
    ((), "--sampled"), (("--strategy", "get"), "--sampled"), (("--strategy", "bulk"), "--sampled"),
    (("--sampled", "--cooperative", "--fanout", "3,2"), "--cooperative")])
def test_work_that_needs_one_host_is_refused(graph, arguments, advice):
    results = program.run_by_hand(["train", graph, "--gpus", 2, *arguments], *hosts_of("ab"))
    assert [r.code for r in results] == [program.USAGE] * 2, results
    for result in results:
        program.check_one_line(result, ["several hosts", advice])
        assert result.out == ""


@pytest.mark.parametrize("hosts", ["ab", "aabb"])
def test_a_lost_rank_of_another_host_is_named(graph, tmp_path, hosts):
    checkpoint, last = tmp_path / "c.safetensors", len(hosts) - 1
    arguments = train(graph, "sage", "--gpus", len(hosts), "--checkpoint", checkpoint, "--checkpoint-every", 2,
                      epochs=9999999)
    processes = program.start_ranks(*[(arguments, variables) for variables in hosts_of(hosts)])
    program.wait_until(checkpoint.exists, program.HANGS, "a checkpoint")
    time.sleep(1)  # until others have heard what each does
    processes[last].send_signal(signal.SIGKILL)
    began = time.monotonic()
    results = [program.result_of(process, timeout=60) for process in processes]
    assert time.monotonic() - began < 20
    for rank, result in enumerate(results[:last]):
        assert result.code == program.FAILED, result
        program.check_one_line(result, [f"rank {rank}: rank {last} has not answered"])

"""examples/dlrm.py and bench/nn/embedding_bags.py on one process and on two ranks."""

import json
import re
import subprocess
import sys

import pytest

from ranks import HERE, Ranks, alone, environment

ROOT = HERE.parents[1]
BENCH = ROOT / "bench/nn/embedding_bags.py"


def by_torchrun(program, *options):
    """Starts two ranks, of which torch.distributed and Plait share the launcher's store."""
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, program, *options)
    return subprocess.run([*map(str, command)], env=environment(), text=True, capture_output=True, timeout=300)


def test_example_is_the_same_on_any_number_of_ranks():
    started = [alone(ROOT / "examples/dlrm.py"), Ranks(2, ROOT / "examples/dlrm.py")]
    outs = ["".join(processes.succeed(300)) for processes in started]
    losses, same_losses = ([float(x) for x in re.findall(r"loss (\S+)", out)] for out in outs)
    assert len(losses) == 10 and losses[-1] < 0.75 * losses[0]
    assert same_losses == pytest.approx(losses, rel=1e-4)
    accuracies = {ranks: float(re.search(rf"{ranks} ranks: test accuracy (\S+)", out)[1])
                  for ranks, out in zip((1, 2), outs)}
    assert accuracies[1] > 0.8 and abs(accuracies[1] - accuracies[2]) < 0.005


def test_bench_compares_sums(tmp_path):
    for name, dtype in (("alone", "fp32"), ("narrow", "bf16"), ("together", "fp32")):
        file = tmp_path / name
        options = ("--samples", 9, "--width", 8, "--scale", 1e-5, "--steps", 1, "--dtype", dtype, "--json", file)
        if name == "together":
            done = by_torchrun(BENCH, *options)
            assert done.returncode == 0, done.stderr
            out = done.stdout
        else:
            [out] = alone(BENCH, *options).succeed(300)
        assert re.findall(r"^(\w+): plait", out, re.MULTILINE) == ["forward", "both"]
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [(line["case"]["step"], line["case"]["by"], line["case"]["dtype"]) for line in lines] == [
            (step, by, dtype) for step in ("forward", "both") for by in ("plait", "torch")]
        assert all(line["median_ms"] > 0 for line in lines)

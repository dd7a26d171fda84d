"""examples/dlrm.py and bench/nn/embedding_bags.py, started as users start them."""

import json
import re
import subprocess
import sys

import pytest

from ranks import HERE, environment

ROOT = HERE.parents[1]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def start(program, *launcher, options=()):
    command = [sys.executable, *launcher, str(ROOT / program), *map(str, options)]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def printed(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


def test_example_is_the_same_on_any_number_of_ranks():
    alone, together = (printed(p) for p in (start("examples/dlrm.py"), start("examples/dlrm.py", *TORCHRUN)))
    losses, same_losses = ([float(x) for x in re.findall(r"loss (\S+)", out)] for out in (alone, together))
    assert len(losses) == 10 and losses[-1] < 0.75 * losses[0]
    assert same_losses == pytest.approx(losses, rel=1e-4)
    accuracies = {ranks: float(re.search(rf"{ranks} ranks: test accuracy (\S+)", out)[1])
                  for ranks, out in ((1, alone), (2, together))}
    assert accuracies[1] > 0.8 and abs(accuracies[1] - accuracies[2]) < 0.005


def test_bench_compares_sums(tmp_path):
    for name, launcher, dtype in (("alone", (), "fp32"), ("narrow", (), "bf16"), ("together", TORCHRUN, "fp32")):
        file = tmp_path / name
        options = ("--samples", 9, "--width", 8, "--scale", 1e-5, "--steps", 1, "--dtype", dtype, "--json", file)
        out = printed(start("bench/nn/embedding_bags.py", *launcher, options=options))
        assert re.findall(r"^(\w+): plait", out, re.MULTILINE) == ["forward", "both"]
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [(line["case"]["step"], line["case"]["by"], line["case"]["dtype"]) for line in lines] == [
            (step, by, dtype) for step in ("forward", "both") for by in ("plait", "torch")]
        assert all(line["median_ms"] > 0 for line in lines)

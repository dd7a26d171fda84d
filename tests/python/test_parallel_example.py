"""examples/train_pyg.py, started as users start it."""

import re
import subprocess
import sys

import numpy as np
import pytest

from ranks import HERE, environment

EXAMPLE = HERE.parents[1] / "examples/train_pyg.py"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Makes a graph of two communities, with features that tell little of them."""
    random = np.random.default_rng(2)
    y = np.arange(90) % 2
    index = random.integers(0, 45, (2, 500)) * 2
    index += y[random.integers(0, 90, 500)]
    train, val, test = np.split(random.permutation(90), 3)
    file = tmp_path_factory.mktemp("example") / "g.npz"
    x = (random.standard_normal((90, 8)) + y[:, None] / 3).astype("f4")
    np.savez(file, edge_index=index, y=y, x=x, train=train, val=val, test=test)
    return file


def start(path, *launcher):
    command = [sys.executable, *launcher, str(EXAMPLE), str(path)]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def printed(process):
    """Returns losses, the accuracy and the number of ranks."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    losses = [float(text) for text in re.findall(r"loss (\S+)", out)]
    ranks, accuracy = re.search(r"(\d) ranks: test accuracy (\S+)", out).groups()
    return int(ranks), losses, float(accuracy)


def test_example(path):
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    alone, together = start(path), start(path, *torchrun)
    one, losses, accuracy = printed(alone)
    two, same_losses, same_accuracy = printed(together)
    assert (one, two) == (1, 2) and len(losses) == 10
    assert losses[-1] < losses[0] and accuracy > 0.8
    assert same_losses == pytest.approx(losses, rel=1e-4)
    assert same_accuracy == accuracy


def test_the_readme_has_it():
    assert f"```python\n{EXAMPLE.read_text()}```\n" in (HERE.parents[1] / "README.md").read_text()

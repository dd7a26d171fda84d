"""examples/sample_nodes.py, sample_links.py and sample_file.py, each as a program of its own."""

import re

import pytest

from ranks import HERE, alone
from test_checkpoint import run

EXAMPLES = HERE.parents[1] / "examples"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.plait"
    run("generate", "dcsbm", "--vertices", 2000, "--edges", 30000, "-o", path)
    arguments = {"nodes": [], "links": [], "file": [path]}
    started = {name: alone(EXAMPLES / f"sample_{name}.py", *more) for name, more in arguments.items()}
    found = {}
    for name, process in started.items():
        [(code, found[name], errors)] = process.results(300)
        assert code == 0 and not errors, errors
    return found


def numbers(text, word):
    return [float(number) for number in re.findall(rf"{word} (\d\S*\d)", text)]


def test_nodes(printed):
    losses, accuracy = (numbers(printed["nodes"], word) for word in ("loss", "accuracy"))
    assert len(losses) == len(accuracy) == 5
    assert losses[-1] < 0.8 * losses[0] and accuracy[-1] > 0.6  # by chance: 0.125


def test_links(printed):
    losses, auc = (numbers(printed["links"], word) for word in ("loss", "AUC"))
    assert len(losses) == 5 and losses[-1] < 0.8 * losses[0]
    assert auc[-1] > 0.75 > auc[0] + 0.1


def test_file(printed):
    accuracy = numbers(printed["file"], "accuracy")
    assert len(accuracy) == 10 and accuracy[-1] > max(0.7, accuracy[0] + 0.1)  # by chance: 0.14


@pytest.mark.parametrize("name,loader", [("nodes", "NeighborLoader"), ("links", "LinkNeighborLoader")])
def test_one_import_differs(name, loader):
    code = (EXAMPLES / f"sample_{name}.py").read_text().split('"""')[2]
    assert re.findall(r".*plait.*", code) == re.findall(rf"from plait\.loader import {loader}  # instead of: .*", code)

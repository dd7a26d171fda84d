"""The graph of tests of training on samples; other tests here have graphs of their own."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.plait"
    program.Plait(path.parent).ok("generate", "dcsbm", "--vertices", 3000, "--edges", 60000, "--communities", 6,
                                  "--classes", 6, "--width", 19, "--seed", 1, "-o", path)
    return path


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures time or memory, so that no other test may run beside it")

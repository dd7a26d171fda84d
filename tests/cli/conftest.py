"""Fixtures of all tests of the command line: the program, and a small graph to train on."""

import signal

import pytest

import program
import training

# A shell starts programs in the background with SIGINT ignored, nohup with SIGHUP, and their children inherit
# this; programs that are started from here must have both as from a terminal: handlers are not inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture
def plait(tmp_path):
    return program.Plait(tmp_path)


@pytest.fixture(scope="session")
def communities(tmp_path_factory):
    """A graph of 600 vertices with features, 7 classes and a split, as a container."""
    path = tmp_path_factory.mktemp("communities") / "communities.plait"
    program.Plait(path.parent).ok("generate", "dcsbm", "--vertices", 600, "--edges", 6000,
                                  "--seed", 1, "-o", path)
    return path


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """Graphs with dense and with sparse features, by these words."""
    return training.make_archives(tmp_path_factory.mktemp("archives"))


@pytest.fixture(scope="session")
def communities_npz(communities):
    """The same graph as arrays of NumPy."""
    path = communities.with_suffix(".npz")
    program.Plait(path.parent).ok("convert", communities, path)
    return path

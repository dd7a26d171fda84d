"""plait walk: its files, its figures, and refusals."""

import collections

import networkx as nx
import numpy as np
import pytest
import scipy.stats

from program import DOES_NOT_FIT, FAILED, RIGHT, USAGE, environment

NODES = 60


@pytest.fixture(scope="module")
def directed(tmp_path_factory):
    """Returns the arguments of a directed graph, some of whose vertices no edge leaves, and the graph."""
    graph = nx.gnm_random_graph(NODES, 110, 5, directed=True)
    file = tmp_path_factory.mktemp("walk") / "directed.el"
    file.write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
    return [file, "--vertices", NODES], graph


def check_walks(walks, graph, restart=False):
    """Every step follows an edge in its direction, stays where no edge leads on, or may be a restart."""
    for walk in walks.tolist():
        for at, to in zip(walk, walk[1:]):
            assert (graph.has_edge(at, to) or (to == at and graph.out_degree(at) == 0) or
                    (restart and to == walk[0])), walk


def read(path):
    if path.suffix == ".npy":
        walks = np.load(path)
        assert walks.dtype == np.int64 and walks.ndim == 2
        return walks
    lines = path.read_text().splitlines()
    if path.suffix == ".csv":
        header, *lines = (line.split(",") for line in lines)
        assert header == ["walk", *(f"step{k}" for k in range(len(header) - 1))]
        rows = np.array(lines, np.int64)
        np.testing.assert_array_equal(rows[:, 0], np.arange(len(rows)))
        return rows[:, 1:]
    return np.array([line.split(" ") for line in lines], np.int64)


@pytest.mark.parametrize("options", [[], ["--p", 0.25, "--q", 4], ["--restart", 0.3], ["--walks", 3, "--seed", 7]])
def test_walks(plait, tmp_path, directed, options):
    """Files of any form, from any number of ranks, have the same walks."""
    arguments, graph = directed
    call = ["walk", *arguments, "--length", 12, *options, "--verify", "-o"]
    found = plait.json(*call, tmp_path / "w.npy")
    walks = read(tmp_path / "w.npy")
    each = options[1] if "--walks" in options else 1
    assert walks.shape == (NODES * each, 13)
    np.testing.assert_array_equal(walks[:, 0], np.repeat(np.arange(NODES), each))
    check_walks(walks, graph, "--restart" in options)
    at_end = np.array([graph.out_degree(v) == 0 for v in range(NODES)])[walks[:, :-1]]
    assert found["stopped"] == at_end.any(axis=1).sum() > 0 and found["steps"] == (~at_end).sum()
    assert (found["starts"], found["walks"], found["length"]) == (NODES, len(walks), 12)
    assert found["verified"] is True and found["out"] == str(tmp_path / "w.npy") and found["device"] == "cpu"
    assert 0 < found["least_ms"] <= found["milliseconds"] <= found["most_ms"] and "partition" not in found
    for ending, ranks in ((".csv", 3), (".txt", 2)):
        plait.ok(*call, tmp_path / f"w{ending}", "--ranks", ranks)
        np.testing.assert_array_equal(read(tmp_path / f"w{ending}"), walks)


def test_starts(plait, tmp_path, directed):
    """Starts may repeat, and each has walks of its own."""
    arguments, graph = directed
    starts = np.array([7, 7, 0, NODES - 1, 7])
    np.save(tmp_path / "starts.npy", starts)
    (tmp_path / "starts.txt").write_text("# vertices\n" + "".join(f"{v}\n" for v in starts))
    found = {}
    for ending, options in ((".npy", []), (".txt", ["--ranks", 3])):
        out = tmp_path / f"walks{ending}"
        result = plait.json("walk", *arguments, "--starts", tmp_path / f"starts{ending}", "--walks", 2, "-o", out, *options)
        assert (result["starts"], result["walks"], result["length"]) == (5, 10, 10)
        found[ending] = read(out)
    np.testing.assert_array_equal(found[".npy"], found[".txt"])
    np.testing.assert_array_equal(found[".npy"][:, 0], np.repeat(starts, 2))
    check_walks(found[".npy"], graph)
    assert len({tuple(walk) for walk in found[".npy"][found[".npy"][:, 0] == 7]}) > 1


def test_own_numbers_of_the_graph(plait, tmp_path, directed):
    """A file that plait reorder made has the walks of the file before."""
    arguments, _ = directed
    before, after = tmp_path / "g.plait", tmp_path / "r.plait"
    plait.ok("convert", arguments[0], before, *arguments[1:])
    plait.ok("reorder", before, after, "--method", "rcm")
    for graph, out in ((before, "b.npy"), (after, "a.npy")):
        plait.ok("walk", graph, "--q", 0.5, "--seed", 3, "--verify", "-o", tmp_path / out)
    np.testing.assert_array_equal(read(tmp_path / "a.npy"), read(tmp_path / "b.npy"))


@pytest.mark.parametrize("weighted", [False, True])
def test_chances(plait, tmp_path, weighted):
    """First steps have the chances of their edges; parallel edges count as often as they are."""
    weights = {(0, 1): 1, (0, 2): 2.5, (0, 3): 0, (0, 4): 4}
    (tmp_path / "g.el").write_text("".join(f"{u} {v} {w}\n" for (u, v), w in weights.items()) + "0 1 1.5\n")
    (tmp_path / "s.txt").write_text("0\n")
    plait.ok("walk", tmp_path / "g.el", "--starts", tmp_path / "s.txt", "--walks", 20000, "--length", 1, "-o",
             tmp_path / "w.npy", "--verify", *(["--weighted"] if weighted else []))
    counts = collections.Counter(read(tmp_path / "w.npy")[:, 1].tolist())
    chances = {1: 2.5, 2: 2.5, 4: 4} if weighted else {1: 2, 2: 1, 3: 1, 4: 1}
    assert set(counts) == set(chances)
    expected = np.array(list(chances.values())) / sum(chances.values()) * 20000
    assert scipy.stats.chisquare([counts[v] for v in chances], expected).pvalue > 1e-4


def test_text(plait, directed):
    text = plait.ok("walk", *directed[0], "--verify", "--repetitions", 3).out
    assert f"walk of directed on 1 rank: starts {NODES}, walks {NODES}, length 10, steps " in text
    assert "median of 3 runs" in text and "verified" in text and "written" not in text


@pytest.mark.parametrize("options,names", [
    (["--length", 0], ["--length"]), (["--length", 2**31 + 1], ["--length"]), (["--walks", 0], ["--walks"]),
    (["--p", 0], ["--p"]), (["--q", "1e10"], ["--q"]), (["--q", "x"], ["--q"]), (["--restart", 1], ["--restart is 1"]),
    (["--restart", -0.5], ["--restart"]), (["--seed", 2**32], ["--seed"]), (["--weighted"], ["no weights"]),
    (["-o", "walks.json"], [".npy, .csv or .txt"]), (["--structure", "sharded"], ["--structure", "does nothing"]),
    (["--gpu-timeout", 5], ["--gpu-timeout", "does nothing"])])
def test_options_out_of_range(plait, directed, options, names):
    plait.fails(USAGE, "walk", *directed[0], *options, names=names)


def test_walks_that_do_not_fit(plait, directed):
    """A block of walks holds one walk of each rank at least."""
    for ranks in (1, 2):
        plait.fails(DOES_NOT_FIT, "walk", *directed[0], "--length", 2**31, "--ranks", ranks, names=["length 2147483648", "needs"],
                    env=environment(PLAIT_HOST_MEMORY="1G"))


@pytest.mark.parametrize("content,names", [
    (f"3\n{NODES}\n", ["line 2", f"'{NODES}' is outside 0..{NODES - 1}"]), ("-1\n", ["line 1", "-1"]),
    ("one\n", ["line 1", "one"]), ("1 2\n", ["line 1", "more than one number"]), ("", ["no vertex is listed"])])
@pytest.mark.parametrize("ranks", [1, 2])
def test_files_that_are_no_lists_of_vertices(plait, tmp_path, directed, content, names, ranks):
    (tmp_path / "starts.txt").write_text(content)
    plait.fails(FAILED, "walk", *directed[0], "--starts", tmp_path / "starts.txt", "-o", tmp_path / "w.npy", "--ranks", ranks,
                names=["starts.txt", *names])


@pytest.mark.parametrize("array", [np.ones(3), np.ones(NODES, bool), np.zeros((2, 2), np.int64), np.array([NODES])])
def test_arrays_that_are_no_lists_of_vertices(plait, tmp_path, directed, array):
    np.save(tmp_path / "starts.npy", array)
    plait.fails(FAILED, "walk", *directed[0], "--starts", tmp_path / "starts.npy", names=["starts.npy"])


@pytest.mark.parametrize("weight,code", [("-1", USAGE), ("nan", FAILED), ("inf", FAILED)])
def test_weights_that_no_step_can_have(plait, tmp_path, weight, code):
    (tmp_path / "g.el").write_text(f"0 1 2\n1 2 {weight}\n")
    plait.fails(code, "walk", tmp_path / "g.el", "--weighted", "-o", tmp_path / "w.npy", names=[weight])


def test_output_that_cannot_be_written(plait, tmp_path, directed):
    plait.fails(FAILED, "walk", *directed[0], "-o", tmp_path / "no folder/w.npy", names=["no folder"])
    plait.fails(FAILED, "walk", *directed[0], "--starts", tmp_path / "none.txt", names=["none.txt"])
    starts = tmp_path / "starts.txt"
    starts.write_text("1\n")
    plait.fails(USAGE, "walk", *directed[0], "--starts", starts, "-o", starts, names=["--starts"])
    assert starts.read_text() == "1\n"


def test_a_graph_without_edges(plait, tmp_path):
    lonely = tmp_path / "lonely.mtx"
    lonely.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 0\n")
    found = plait.json("walk", lonely, "--length", 2, "--verify", "-o", tmp_path / "w.txt", "--ranks", 2, "--q", 2)
    assert (found["steps"], found["stopped"]) == (0, 3)
    assert (tmp_path / "w.txt").read_text() == "0 0 0\n1 1 1\n2 2 2\n"
    assert plait("walk", lonely).code == RIGHT

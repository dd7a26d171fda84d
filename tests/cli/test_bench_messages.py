"""plait bench messages: the components that it finds against networkx, renumbered graphs, and refusals."""

import networkx as nx
import numpy as np
import pytest


@pytest.fixture(scope="module")
def islands(tmp_path_factory):
    """Some paths, circles and lonely vertices, with numbers in any order: (file, number of components)."""
    random = np.random.default_rng(3)
    graph = nx.disjoint_union_all([nx.path_graph(37), nx.cycle_graph(12), nx.star_graph(40), nx.gnm_random_graph(90, 60, 1)])
    numbers = random.permutation(len(graph))
    file = tmp_path_factory.mktemp("islands") / "g.el"
    file.write_text("".join(f"{numbers[a]} {numbers[b]}\n{numbers[b]} {numbers[a]}\n" for a, b in graph.edges))
    return file, len(graph), nx.number_connected_components(graph)


@pytest.mark.parametrize("options", [["--ranks", 1], ["--ranks", 3], ["--ranks", 3, "--reorder", "degree"],
                                     ["--ranks", 2, "--partition", "hash", "--reorder", "rcm"]])
def test_components(plait, islands, options):
    file, vertices, components = islands
    found = plait.json("bench", "messages", file, "--vertices", vertices, "--repetitions", 2, *options)
    assert found["components"] == components and found["rounds"] >= 2
    assert (found["values"] > 0) == (options[1] > 1)
    assert found["bytes"] >= 4 * found["values"]
    assert 0 < found["least_ms"] <= found["median_ms"] <= found["most_ms"]


def test_graphs_that_are_not_their_own_transpose_are_refused(plait, tmp_path):
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n")
    result = plait("bench", "messages", tmp_path / "g.mtx", "--ranks", 2)
    assert result.code == 2 and "plait convert --undirected" in result.err and result.out == ""


@pytest.mark.parametrize("options, text", [(["--transport", "nvshmem"], "--transport"), (["--gpu-timeout", 5], "--gpu-timeout"),
                                           (["--seed", 3], "--seed")])
def test_options_that_do_nothing_are_refused(plait, islands, options, text):
    result = plait("bench", "messages", islands[0], "--ranks", 2, *options)
    assert result.code == 2 and text in result.err

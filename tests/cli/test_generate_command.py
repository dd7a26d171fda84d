"""plait generate: graphs whose form is known, by networkx and NumPy."""

import networkx as nx
import numpy as np
import pytest

from program import USAGE, environment


def generate(plait, path, kind, *options):
    made = plait.json("generate", kind, "-o", path, *options)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    assert made["edges"] == arrays["edge_index"].shape[1]
    return made, arrays


@pytest.mark.parametrize("kind,options,wanted", [
    ("ring", ["--vertices", 9], nx.cycle_graph(9)),
    ("ring", ["--vertices", 3], nx.cycle_graph(3)),
    ("star", ["--vertices", 9], nx.star_graph(8)),
    ("grid", ["--rows", 4, "--columns", 7], nx.grid_2d_graph(4, 7)),
    ("grid", ["--rows", 1, "--columns", 5], nx.path_graph(5)),
])
def test_regular_graphs(plait, tmp_path, kind, options, wanted):
    made, arrays = generate(plait, tmp_path / "g.npz", kind, *options)
    edges = list(zip(*arrays["edge_index"].tolist()))
    assert made["vertices"] == wanted.number_of_nodes()
    assert len(edges) == len(set(edges)) == 2 * wanted.number_of_edges()
    graph = nx.DiGraph(edges)
    assert nx.is_isomorphic(graph, wanted.to_directed())


def test_block_model(plait, tmp_path):
    """The graph is symmetric, has no loops or duplicates, and the exact number and share of edges."""
    options = ["--vertices", 2000, "--edges", 30000, "--communities", 5, "--classes", 5,
               "--leaving", 0.3, "--width", 8, "--seed", 4]
    made, arrays = generate(plait, tmp_path / "g.npz", "dcsbm", *options)
    assert (made["vertices"], made["edges"], made["classes"]) == (2000, 30000, 5)
    source, target = arrays["edge_index"]
    edges = set(zip(source.tolist(), target.tolist()))
    assert len(edges) == 30000 and edges == {(v, u) for u, v in edges}
    assert not (source == target).any()
    # With as many classes as communities, an edge leaves its community if it leaves its class.
    assert np.mean(arrays["y"][source] != arrays["y"][target]) == pytest.approx(0.3, abs=0.001)
    assert set(arrays["y"].tolist()) == set(range(5)) and arrays["x"].shape == (2000, 8)
    split = np.concatenate([arrays[part] for part in ("train", "val", "test")])
    assert sorted(split.tolist()) == list(range(2000))
    assert np.bincount(arrays["y"][arrays["train"]]).tolist() == [20] * 5


def test_presets_shrink(plait, tmp_path):
    made, _ = generate(plait, tmp_path / "g.npz", "dcsbm", "--like", "reddit", "--scale", 0.001,
                       "--no-features")
    assert made["vertices"] == pytest.approx(232965 / 1000, abs=1)
    assert 0 < made["edges"] <= 114615892 / 1000 + 2 and made["feature_width"] == 0


def test_recursive_matrix(plait, tmp_path):
    made, arrays = generate(plait, tmp_path / "g.npz", "rmat", "--vertices", 1000, "--edges", 20000)
    source, target = arrays["edge_index"]
    assert made["vertices"] == 1000 and made["edges"] == 20000
    assert max(source.max(), target.max()) < 1000 and not (source == target).any()
    degree = np.bincount(target, minlength=1000)
    assert degree.max() > 5 * degree.mean()  # heavy tail


@pytest.mark.parametrize("kind,options", [("dcsbm", ["--vertices", 500, "--edges", 4000]),
                                          ("rmat", ["--vertices", 100, "--edges", 900])])
def test_the_seed_decides(plait, tmp_path, kind, options):
    graphs = []
    for seed, threads in [(1, "1"), (1, "2"), (2, "2")]:
        path = tmp_path / "g.plait"
        plait.ok("generate", kind, "-o", path, "--seed", seed, *options,
                 env=environment(OMP_NUM_THREADS=threads))
        graphs.append(path.read_bytes())
    assert graphs[0] == graphs[1] != graphs[2]


@pytest.mark.parametrize("arguments,names", [
    (["ring", "--vertices", 0], ["0"]),
    (["grid", "--rows", 0], ["0"]),
    (["dcsbm", "--edges", 7], ["7", "even"]),
    (["dcsbm", "--leaving", 1.5], ["1.5"]),
    (["dcsbm", "--exponent", 0.5], ["0.5"]),
    (["dcsbm", "--like", "facebook"], ["facebook", "reddit"]),
    (["dcsbm", "--vertices", -5], ["-5"]),
    (["rmat", "--vertices", 10], ["--edges"]),
    (["rmat", "--vertices", 10, "--edges", 5, "-a", 0.9], ["0.9"]),
    (["torus"], ["torus"]),
])
def test_wrong_options(plait, tmp_path, arguments, names):
    plait.fails(USAGE, "generate", *arguments, "-o", tmp_path / "g.npz", names=names)

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


def cliques(sizes):
    """Returns cliques of consecutive vertices, joined in a row."""
    joined = nx.disjoint_union_all([nx.complete_graph(size) for size in sizes])
    firsts = np.cumsum(sizes)[:-1].tolist()
    joined.add_edges_from((first - 1, first) for first in firsts)
    return joined


@pytest.mark.parametrize("kind,options,wanted", [
    ("ring", ["--vertices", 9], nx.cycle_graph(9)),
    ("ring", ["--vertices", 3], nx.cycle_graph(3)),
    ("star", ["--vertices", 9], nx.star_graph(8)),
    ("grid", ["--rows", 4, "--columns", 7], nx.grid_2d_graph(4, 7)),
    ("grid", ["--rows", 1, "--columns", 5], nx.path_graph(5)),
    ("path", ["--vertices", 6], nx.path_graph(6)),
    ("path", ["--vertices", 2], nx.path_graph(2)),
    ("tree", ["--vertices", 20], nx.full_rary_tree(2, 20)),
    ("tree", ["--vertices", 50, "--children", 7], nx.full_rary_tree(7, 50)),
    ("cliques", ["--vertices", 9, "--size", 9], nx.complete_graph(9)),
    ("cliques", ["--vertices", 9, "--size", 100], nx.complete_graph(9)),
    ("cliques", ["--vertices", 10, "--size", 5], nx.barbell_graph(5, 0)),
    ("cliques", ["--vertices", 12, "--size", 5], cliques([5, 5, 2])),
    ("cliques", ["--vertices", 4, "--size", 1], nx.path_graph(4)),
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


def both_ways(arrays):
    """Returns the edges, which are pairs (u, v), (v, u), one pair after the other, in any order."""
    edges = sorted(zip(*arrays["edge_index"].tolist()))
    assert edges == sorted((v, u) for u, v in edges)
    return np.array(edges).T


def test_small_world(plait, tmp_path):
    options = ["--vertices", 5000, "--degree", 6]
    _, ring = generate(plait, tmp_path / "g.npz", "small-world", *options, "--rewired", 0)
    u, v = both_ways(ring)
    assert np.bincount((u - v) % 5000).nonzero()[0].tolist() == [1, 2, 3, 4997, 4998, 4999]
    _, world = generate(plait, tmp_path / "g.npz", "small-world", *options, "--rewired", 0.25)
    u, v = both_ways(world)
    near = np.minimum((u - v) % 5000, (v - u) % 5000) <= 3
    assert len(u) == 30000 and near.mean() == pytest.approx(0.75, abs=0.01)


def test_bipartite(plait, tmp_path):
    _, arrays = generate(plait, tmp_path / "g.npz", "bipartite", "--vertices", 1000, "--left", 10,
                         "--edges", 20000)
    u, v = both_ways(arrays)
    assert len(u) == 20000 and ((u < 10) != (v < 10)).all()
    assert np.bincount(u[u < 10]) == pytest.approx(np.full(10, 1000), rel=0.15)


def test_uniform(plait, tmp_path):
    _, arrays = generate(plait, tmp_path / "g.npz", "uniform", "--vertices", 100, "--edges", 50000)
    for ends in arrays["edge_index"]:
        assert np.bincount(ends) == pytest.approx(np.full(100, 500), rel=0.25)


def test_crawl(plait, tmp_path):
    """Half of the links are short for the most part, and pages have as many links as others, but not
    as many that lead to them."""
    _, arrays = generate(plait, tmp_path / "g.npz", "crawl", "--vertices", 6400, "--edges", 102400)
    source, target = arrays["edge_index"]
    assert (np.bincount(source) == 16).all()
    leading = np.sort(np.bincount(target, minlength=6400))
    assert leading[-64:].sum() > 0.2 * 102400 and leading[3200] < 16
    distance = np.minimum((source - target) % 6400, (target - source) % 6400)
    assert np.mean((distance > 0) & (distance < 64)) > 0.25


def test_presets_shrink(plait, tmp_path):
    made, _ = generate(plait, tmp_path / "g.npz", "dcsbm", "--like", "reddit", "--scale", 0.001,
                       "--no-features")
    assert made["vertices"] == pytest.approx(232965 / 1000, abs=1)
    assert 0 < made["edges"] <= 114615892 / 1000 + 2 and made["feature_width"] == 0


def test_presets_of_sets_and_crawls(plait, tmp_path):
    """Options that are given override the preset's counts."""
    made, arrays = generate(plait, tmp_path / "g.npz", "dcsbm", "--like", "PROTEINS_full", "--scale", 0.1)
    assert made["vertices"] == 4347 and made["edges"] == 16208 and made["feature_width"] == 29
    assert arrays["x"].shape == (4347, 29) and set(arrays["y"]) == {0, 1}
    assert len(arrays["y"]) == arrays["graph_id"].max() + 1 == 111
    made, arrays = generate(plait, tmp_path / "g.npz", "dcsbm", "--like", "ppi", "--scale", 0.05, "--no-features")
    assert arrays["y"].shape == (2847, 121) and made["classes"] == 121
    made, arrays = generate(plait, tmp_path / "g.npz", "crawl", "--like", "it-2004", "--scale", 1e-5)
    assert arrays["x"].shape == (413, 256) and made["classes"] == 64 and set(arrays["y"]) == set(range(7))
    for options, counts in (((), (413, 11507)), (("--vertices", 500), (500, 11507)), (("--edges", 90), (413, 90))):
        made, arrays = generate(plait, tmp_path / "g.npz", "crawl", "--like", "it-2004", "--scale", 1e-5, *options)
        assert (made["vertices"], made["edges"]) == counts and arrays["edge_index"].shape == (2, counts[1])


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
    (["crawl", "--like", "facebook"], ["facebook", "it-2004, uk-domain"]),
    (["crawl", "--like", "reddit"], ["plait generate dcsbm --like reddit"]),
    (["dcsbm", "--like", "uk-domain"], ["plait generate crawl --like uk-domain"]),
    (["dcsbm", "--labels", "graphs"], ["0.2", "where 0 belongs"]),
    (["dcsbm", "--labels", "edges"], ["edges", "vertices, sets or graphs"]),
    (["crawl", "--vertices", 10, "--edges", 10, "--width", 4], ["--width", "--classes"]),
    (["crawl", "--vertices", 10, "--edges", 10, "--no-features"], ["--no-features", "none"]),
    (["crawl", "--vertices", 10], ["--edges", "--like"]),
    (["rmat", "--vertices", 10], ["--edges"]),
    (["rmat", "--vertices", 10, "--edges", 5, "-a", 0.9], ["0.9"]),
    (["torus"], ["torus"]),
])
def test_wrong_options(plait, tmp_path, arguments, names):
    plait.fails(USAGE, "generate", *arguments, "-o", tmp_path / "g.npz", names=names)

"""plait reorder: orders against SciPy and networkx, and renumbered graphs that users cannot tell from
the graphs before."""

import networkx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

from program import USAGE, contents
from random_graphs import random_graphs, write_scipy

METHODS = ("communities", "degree", "rcm", "boba", "metis")


def arrays(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def check_same_arrays(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def matrix_of(edge_index, vertices):
    return scipy.sparse.csr_array((np.ones(edge_index.shape[1]), edge_index[::-1]),
                                  shape=(vertices, vertices))


@pytest.mark.parametrize("method", METHODS)
def test_graph_is_the_same_in_other_formats(plait, tmp_path, communities, communities_npz, method):
    plait.ok("reorder", communities, tmp_path / "r.plait", "--method", method)
    assert plait.json("info", tmp_path / "r.plait")["renumbered"]
    plait.ok("convert", tmp_path / "r.plait", tmp_path / "r.npz")
    check_same_arrays(arrays(tmp_path / "r.npz"), arrays(communities_npz))
    plait.ok("reorder", tmp_path / "r.plait", tmp_path / "again.plait", "--method", "rcm")
    plait.ok("reorder", tmp_path / "again.plait", tmp_path / "undone.plait", "--undo")
    assert (tmp_path / "undone.plait").read_bytes() == communities.read_bytes()


def test_directed_weighted_graphs_with_isolated_vertices(plait, tmp_path):
    graphs = random_graphs(3, 20, shuffled=True)
    write_scipy(tmp_path / "g.npz", graphs)
    plait.ok("convert", tmp_path / "g.npz", tmp_path / "wanted.npz")
    for method in METHODS:
        plait.ok("reorder", tmp_path / "g.npz", tmp_path / "r.plait", "--method", method)
        plait.ok("convert", tmp_path / "r.plait", tmp_path / "found.npz")
        check_same_arrays(arrays(tmp_path / "found.npz"), arrays(tmp_path / "wanted.npz"))


def test_conversions_take_data_by_the_numbers_before(plait, tmp_path, communities):
    plait.ok("reorder", communities, tmp_path / "r.plait", "--method", "communities")
    edges = plait.json("info", communities)["edges"]
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((600, 2), np.float32))
    np.save(tmp_path / "w.npy", rng.random(edges, np.float32))
    for name, graph in (("wanted", communities), ("found", tmp_path / "r.plait")):
        for part, options in (("x", ["--features", tmp_path / "x.npy"]),
                              ("identity", ["--features", "identity"]),
                              ("w", ["--weights", tmp_path / "w.npy", "--undirected"])):
            plait.ok("convert", graph, tmp_path / f"{name}.plait", *options)
            plait.ok("convert", tmp_path / f"{name}.plait", tmp_path / f"{name}-{part}.npz")
    for part in ("x", "identity", "w"):
        check_same_arrays(arrays(tmp_path / f"found-{part}.npz"), arrays(tmp_path / f"wanted-{part}.npz"))


def test_communities_by_networkx(plait, tmp_path):
    """Their modularity is about that of networkx' Louvain communities, and edges get short."""
    plait.ok("generate", "dcsbm", "--vertices", 2000, "--edges", 40000, "--communities", 12,
             "--no-features", "-o", tmp_path / "g.plait")
    found = plait.json("reorder", tmp_path / "g.plait", tmp_path / "r.plait")
    assert found["method"] == "communities"
    assert found["averaged_edge_span"] < 0.5 * found["averaged_edge_span_before"]
    plait.ok("convert", tmp_path / "g.plait", tmp_path / "g.npz")
    edge_index = arrays(tmp_path / "g.npz")["edge_index"]
    graph = networkx.Graph(edge_index.T.tolist())
    best = networkx.community.louvain_communities(graph, seed=1)
    assert found["modularity"] > networkx.community.modularity(graph, best) - 0.01


def halo_rows(plait, path):
    figures = plait.json("partition", path, "--ranks", 4, "--partition", "edges")
    return figures["schemes"][0]["halo_rows"]


def test_fewer_halo_rows(plait, tmp_path):
    plait.ok("generate", "dcsbm", "--like", "products", "--scale", 0.005, "--no-features", "-o",
             tmp_path / "g.plait")
    plait.ok("reorder", tmp_path / "g.plait", tmp_path / "r.plait", "--method", "communities")
    assert halo_rows(plait, tmp_path / "r.plait") < 0.8 * halo_rows(plait, tmp_path / "g.plait")


def test_rcm_by_scipy(plait, tmp_path):
    """Reverse Cuthill-McKee makes edges as short as SciPy's does."""
    plait.ok("generate", "grid", "--rows", 40, "--columns", 25, "-o", tmp_path / "grid.npz")
    grid = matrix_of(arrays(tmp_path / "grid.npz")["edge_index"], 1000)
    shuffle = np.random.default_rng(2).permutation(1000)
    shuffled = grid[shuffle][:, shuffle].tocsr()
    scipy.sparse.save_npz(tmp_path / "g.npz", shuffled)
    plait.ok("reorder", tmp_path / "g.npz", tmp_path / "r.plait", "--method", "rcm")
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(shuffled, symmetric_mode=True)
    wanted = np.abs(np.subtract(*shuffled[order][:, order].nonzero())).mean()
    assert plait.json("info", tmp_path / "r.plait")["averaged_edge_span"] < 1.1 * wanted


def test_threads_do_not_matter(plait, tmp_path, communities):
    for threads in (1, 3):
        plait.ok("reorder", communities, tmp_path / f"{threads}.plait", "--method", "communities",
                 "--threads", threads)
    written = contents(tmp_path)
    assert written[tmp_path / "1.plait"] == written[tmp_path / "3.plait"]


def test_refusals(plait, tmp_path, communities):
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.npz", names=["r.npz", ".plait"])
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--method", "x",
                names=["communities, degree, rcm, boba or metis"])
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--method", "rcm", "--undo",
                names=["--undo"])
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--gpus", 2, names=["--gpus", "1"])
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--ranks", 2, names=["--ranks"])
    plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--undo", "--gpus", 1,
                names=["--undo", "--gpus"])
    for method in ("none", "degree", "rcm", "boba", "metis"):
        plait.fails(USAGE, "reorder", communities, tmp_path / "r.plait", "--method", method, "--gpus", 1,
                    names=["--gpus", method, "on the CPU"])


@pytest.mark.parametrize("kind,wanted", [
    (("dcsbm", "--vertices", 2000, "--edges", 40000), "communities"),  # below 10,000 vertices
    (("dcsbm", "--vertices", 12000, "--edges", 60000), "communities"),
    (("grid", "--rows", 60, "--columns", 60), "none"),
    (("uniform", "--vertices", 3000, "--edges", 30000), "none"),
    (("ring", "--vertices", 20000), "none")])
def test_info_says_what_reorder_does(plait, tmp_path, kind, wanted):
    """Of a graph, and of the graph in the order that was found."""
    plait.ok("generate", *kind, "-o", tmp_path / "g.plait")
    for graph, method in (("g.plait", wanted), ("r.plait", "none")):
        scattered = method != "none"
        assert plait.json("info", tmp_path / graph)["scattered"] is scattered
        assert ("scattered, see plait reorder" in plait.ok("info", tmp_path / graph).out) is scattered
        result = plait.json("reorder", tmp_path / graph, tmp_path / "r2.plait")
        assert result["method"] == method
        (tmp_path / "r2.plait").replace(tmp_path / "r.plait")

"""plait convert and plait info against SciPy, NumPy and networkx."""

import networkx as nx
import numpy as np
import pytest
import scipy.io

import program
from program import USAGE
from random_graphs import (Graphs, random_graphs, without_isolated, write_edge_list,
                           write_matrix_market, write_scipy)


# --- the files as others read them: sorted (row, column, weight) ---


def edges_of_mtx(path):
    matrix = scipy.io.mmread(path, spmatrix=False).tocoo()
    return Graphs(matrix.shape[0], matrix.row, matrix.col, matrix.data, []).edges()


def edges_of_npz(path):
    with np.load(path, allow_pickle=False) as file:
        column, row = file["edge_index"]
        weight = file["edge_weight"] if "edge_weight" in file else None
    return Graphs(0, row, column, weight, []).edges()


def edges_of_txt(path):
    table = np.loadtxt(path, ndmin=2)
    column, row = table[:, :2].T.astype(np.int64)
    return Graphs(0, row, column, table[:, 2] if table.shape[1] == 3 else None, []).edges()


@pytest.mark.parametrize("weights", [None, "float"])
def test_round_trip(plait, tmp_path, weights):
    """mtx -> plait -> mtx -> npz -> txt: loops, duplicates and weights stay, bit for bit. A text
    has no vertices without edges, so they are left out."""
    graphs = without_isolated(random_graphs(11, 20, weights, shuffled=True))
    write_matrix_market(tmp_path / "0.mtx", graphs)
    readers = {".plait": None, ".mtx": edges_of_mtx, ".npz": edges_of_npz, ".txt": edges_of_txt}
    before = tmp_path / "0.mtx"
    for number, (ending, read) in enumerate(readers.items()):
        path = tmp_path / f"{number + 1}{ending}"
        made = plait.json("convert", before, path)
        assert (made["vertices"], made["edges"]) == (graphs.vertices, len(graphs.row))
        if read:
            np.testing.assert_array_equal(read(path).astype(np.float32),
                                          graphs.edges().astype(np.float32))
        before = path
    plait.ok("convert", before, tmp_path / "last.plait")
    described = plait.json("info", tmp_path / "last.plait")
    assert (described["vertices"], described["edges"]) == (graphs.vertices, len(graphs.row))


def test_isolated_vertices_stay(plait, tmp_path):
    """They stay in formats that can say how many vertices there are, the last one included."""
    graphs = Graphs(9, np.array([2]), np.array([4]), None, [])
    write_matrix_market(tmp_path / "0.mtx", graphs)
    for before, after in [("0.mtx", "1.npz"), ("1.npz", "2.plait"), ("2.plait", "3.mtx")]:
        assert plait.json("convert", tmp_path / before, tmp_path / after)["vertices"] == 9
    assert scipy.io.mmread(tmp_path / "3.mtx").shape == (9, 9)
    assert plait.json("info", tmp_path / "2.plait")["isolated"] == 8


DATA_AND_IDS = "features, labels, splits and original ids are left out"


@pytest.mark.parametrize("ending, lost", [
    (".plait", []),
    (".npz", []),
    (".mtx", [DATA_AND_IDS]),
    (".gnna.npz", [DATA_AND_IDS]),
    (".graph", [DATA_AND_IDS]),
    (".txt", ["features, labels and splits are left out", "5 vertices without edges are left out"]),
    (".el", [DATA_AND_IDS, "one vertex without edges is left out"])])
def test_a_warning_tells_what_a_file_leaves_out(plait, tmp_path, ending, lost):
    """Of vertices 0 to 7, only 2, 4 and 6 have edges, so that one comes after the last of these."""
    np.savez(tmp_path / "g.npz", edge_index=np.array([[2, 6, 4, 6], [6, 2, 6, 4]]),
             x=np.ones((8, 1), np.float32), y=np.arange(8), train=np.arange(2),
             original_ids=np.arange(8) * 10)
    out = tmp_path / f"out{ending}"
    result = plait("convert", tmp_path / "g.npz", out)
    assert (result.code, result.lines) == (0, [f"plait: warning: {out}: {line}" for line in lost])
    plait.ok("convert", tmp_path / "g.npz", out, "--quiet")


def networkx_edges(path, *, undirected, loops):
    """Reads the same by networkx, which knows no duplicates."""
    graph = nx.DiGraph()
    with open(path) as lines:
        for line in lines:
            if not line.startswith(("#", "%")):
                graph.add_edge(*(int(word) for word in line.split()[:2]))
    if undirected:
        graph = graph.to_undirected().to_directed()
    if not loops:
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return set(graph.edges)


def read_edges(path):
    """Returns (source, target) of an edge list that was written, with the ids of the source."""
    return [tuple(map(int, line.split()[:2])) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_clean_up_against_networkx(plait, tmp_path, undirected, loops):
    graphs = random_graphs(12, 20)
    write_edge_list(tmp_path / "in.txt", graphs)
    made = plait.json("convert", tmp_path / "in.txt", tmp_path / "out.txt", "--quiet",
                      "--undirected" if undirected else "--no-duplicates",
                      *["--no-loops"] * (not loops))
    edges = read_edges(tmp_path / "out.txt")
    assert len(edges) == len(set(edges)) == made["edges"]
    assert set(edges) == networkx_edges(tmp_path / "in.txt", undirected=undirected, loops=loops)
    assert made["symmetric"] or not undirected


def test_no_loops_keeps_duplicates(plait, tmp_path):
    graphs = random_graphs(13, 10, "integer")
    write_scipy(tmp_path / "in.npz", graphs)
    plait.ok("convert", tmp_path / "in.npz", tmp_path / "out.mtx", "--no-loops")
    kept = graphs.row != graphs.column
    wanted = Graphs(0, graphs.row[kept], graphs.column[kept], graphs.weight[kept], []).edges()
    np.testing.assert_array_equal(edges_of_mtx(tmp_path / "out.mtx"), wanted)


def test_first_of_parallel_edges_is_kept(plait, tmp_path):
    (tmp_path / "in.txt").write_text("7 3 1.5\n3 7 4\n7 3 2.5\n3 3 8\n")
    plait.ok("convert", tmp_path / "in.txt", tmp_path / "out.mtx", "--no-duplicates", "--quiet")
    dense = scipy.io.mmread(tmp_path / "out.mtx").toarray()
    np.testing.assert_array_equal(dense, [[8, 1.5], [4, 0]])  # row 0 is vertex 3


def test_dataset_parts_stay(plait, tmp_path, communities, communities_npz):
    """Features, labels and splits go through a container and back unchanged."""
    plait.ok("convert", communities_npz, tmp_path / "1.plait")
    plait.ok("convert", tmp_path / "1.plait", tmp_path / "2.npz")
    with np.load(communities_npz) as first, np.load(tmp_path / "2.npz") as second:
        assert set(first.files) == {"edge_index", "x", "y", "train", "val", "test"}
        assert set(first.files) == set(second.files)
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name], name)
    assert plait.json("info", tmp_path / "1.plait") == {**plait.json("info", communities),
                                                        "name": "communities"}


def test_sparse_features_and_several_splits(plait, tmp_path):
    rng = np.random.default_rng(3)
    x = scipy.sparse.random_array((20, 50), density=0.1, rng=rng, dtype=np.float32).tocsr()
    part = rng.integers(0, 4, (3, 20))
    arrays = {"edge_index": rng.integers(0, 20, (2, 60), dtype=np.int32), "x_data": x.data,
              "x_indices": x.indices, "x_indptr": x.indptr, "x_shape": np.array(x.shape),
              "y": rng.integers(-1, 4, 20), "train_masks": part == 1, "val_masks": part == 2,
              "test_masks": part == 3}
    np.savez_compressed(tmp_path / "in.npz", **arrays)
    plait.ok("convert", tmp_path / "in.npz", tmp_path / "1.plait")
    plait.ok("convert", tmp_path / "1.plait", tmp_path / "2.npz")
    with np.load(tmp_path / "2.npz") as file:
        for name in set(arrays) - {"edge_index"}:
            np.testing.assert_array_equal(file[name], arrays[name], name)
    described = plait.json("info", tmp_path / "1.plait")
    assert (described["feature_form"], described["feature_width"]) == ("sparse", 50)
    counts = [{"train": int((s == 1).sum()), "validation": int((s == 2).sum()),
               "test": int((s == 3).sum())} for s in part]
    assert described["splits"] == counts


@pytest.mark.parametrize("text,told", [
    ("# SNAP\n# nodes\n18446744073709551615\t0\n0\t9223372036854775808\n", ""),
    ("18446744073709551615,0\r\n0,9223372036854775808\r\n", ""),
    ("source, target\n18446744073709551615 , 0\n% between\n\n0 , 9223372036854775808",
     "line 1 'source, target' is read as the names of columns: the first is the source, the second the target"),
    ("target, source\n0 , 18446744073709551615\n9223372036854775808 , 0",
     "line 1 'target, source' is read as the names of columns: the first is the target, the second the source"),
])
def test_edge_list_dialects(plait, tmp_path, text, told):
    path = tmp_path / "in.edges"
    path.write_bytes(text.encode())
    described = plait("info", path, "--json")
    assert described.err == (told and f"plait: warning: {path}: {told}\n")
    described = described.json
    assert (described["vertices"], described["edges"], described["isolated"]) == (3, 2, 1)
    plait.ok("convert", path, tmp_path / "1.plait", "--quiet")
    plait.ok("convert", tmp_path / "1.plait", tmp_path / "2.txt")
    assert sorted(read_edges(tmp_path / "2.txt")) == [(0, 2**63), (2**64 - 1, 0)]
    plait.ok("convert", tmp_path / "1.plait", tmp_path / "3.npz")
    with np.load(tmp_path / "3.npz") as file:
        assert file["original_ids"].tolist() == [0, 2**63, 2**64 - 1]


def test_npy_edges(plait, tmp_path):
    edges = np.random.default_rng(4).integers(0, 30, (2, 200), dtype=np.int64)
    for order in "CF":
        np.save(tmp_path / "e.npy", np.asarray(edges, order=order))
        plait.ok("convert", tmp_path / "e.npy", tmp_path / "e.mtx")
        np.testing.assert_array_equal(edges_of_mtx(tmp_path / "e.mtx"),
                                      Graphs(30, edges[1], edges[0], None, []).edges())


def test_info_counts(plait, tmp_path):
    graphs = random_graphs(14, 20, "float")
    write_scipy(tmp_path / "g.npz", graphs)
    degree = np.bincount(graphs.row, minlength=graphs.vertices)
    described = plait.json("info", tmp_path / "g.npz")
    wanted = {"schema": 1, "name": "g", "vertices": graphs.vertices, "edges": len(graphs.row),
              "id_bits": 32, "weighted": True, "symmetric": False,
              "largest_degree": degree.max(), "isolated": (degree == 0).sum(),
              "feature_width": 0, "classes": 0, "splits": []}
    assert {key: described[key] for key in wanted} == wanted
    assert described["mean_degree"] == pytest.approx(len(graphs.row) / graphs.vertices)
    text = plait.ok("info", tmp_path / "g.npz").out
    assert f"vertices        {graphs.vertices}" in text and "directed, weighted" in text


def test_an_existing_file_is_replaced(plait, tmp_path):
    (tmp_path / "in.txt").write_text("0 1\n")
    (tmp_path / "out.mtx").write_text("old")
    plait.ok("convert", tmp_path / "in.txt", tmp_path / "out.mtx")
    assert edges_of_mtx(tmp_path / "out.mtx").tolist() == [[1], [0], [1]]
    assert len(program.contents(tmp_path)) == 2


def test_containers_are_reproducible(plait, tmp_path):
    write_scipy(tmp_path / "g.npz", random_graphs(15, 5, "float"))
    for name in ("a", "b"):
        plait.ok("convert", tmp_path / "g.npz", tmp_path / f"{name}.plait")
    assert (tmp_path / "a.plait").read_bytes() == (tmp_path / "b.plait").read_bytes()


@pytest.mark.parametrize("name", ["out.npy", "out.csv", "out", "out.gz"])
def test_formats_that_are_not_written(plait, tmp_path, name):
    (tmp_path / "in.txt").write_text("0 1\n")
    plait.fails(USAGE, "convert", tmp_path / "in.txt", tmp_path / name, names=[name, ".mtx"])

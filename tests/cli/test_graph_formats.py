"""plait convert between Plait's own container and the formats of other programs, both ways, against
the slow readers and writers of graph_files.py."""

import dataclasses
import gzip

import numpy as np
import pytest
import scipy.sparse

from graph_files import FORMATS, edges_of, mgg_files, write_metis, write_mgg
from program import FAILED, USAGE
from random_graphs import Graphs, random_graphs, write_matrix_market, write_scipy
from test_convert_command import edges_of_mtx, edges_of_npz


def graph(vertices, *edges, weights=None):
    column, row = np.array(edges, np.int64).reshape(-1, 2).T
    return Graphs(vertices, row, column, None if weights is None else np.array(weights, float), [])


def undirected(graphs):
    """Adds the reverse of every edge and drops loops. Parallel edges stay, and have the same
    weight."""
    keep = graphs.row != graphs.column
    row, column = graphs.row[keep], graphs.column[keep]
    row, column = np.concatenate([row, column]), np.concatenate([column, row])
    weight = None if graphs.weight is None else (row + column) % 7 + 1.0
    return dataclasses.replace(graphs, row=row, column=column, weight=weight)


def with_last_edge(graphs):
    """Fits files whose vertices end with the last one that has an edge."""
    last = graphs.vertices - 1
    return dataclasses.replace(
        graphs, row=np.append(graphs.row, last), column=np.append(graphs.column, 0),
        weight=None if graphs.weight is None else np.append(graphs.weight, 1))


ODD = {
    "random": lambda weights: random_graphs(21, 12, weights, shuffled=True),
    "no edges": lambda weights: graph(5, weights=weights and []),
    "one vertex": lambda weights: graph(1, weights=weights and []),
    "a loop": lambda weights: graph(1, (0, 0), weights=weights and [3]),
    "isolated last": lambda weights: graph(9, (5, 6), (6, 5), weights=weights and [2, 2]),
    "parallel": lambda weights: graph(3, *[(0, 1), (1, 0)] * 4, weights=weights and [2] * 8),
}


CASES = [(ending, name, weights)
         for ending, f in FORMATS.items() for weights in f.weights for name in ODD]


def make(ending, name, weights):
    graphs = ODD[name](weights)
    f = FORMATS[ending]
    if not f.directed:
        graphs = undirected(graphs)
    return graphs if f.isolated else with_last_edge(graphs)


@pytest.mark.parametrize("ending,name,weights", CASES)
def test_read(plait, tmp_path, ending, name, weights):
    graphs = make(ending, name, weights)
    path = tmp_path / f"in{ending}"
    FORMATS[ending].write(path, graphs)
    made = plait.json("convert", path, tmp_path / "out.mtx")
    assert (made["vertices"], made["edges"]) == (graphs.vertices, len(graphs.row))
    if len(graphs.row):
        np.testing.assert_array_equal(edges_of_mtx(tmp_path / "out.mtx"), graphs.edges())


@pytest.mark.parametrize("ending,name,weights", CASES)
def test_write(plait, tmp_path, ending, name, weights):
    graphs = make(ending, name, weights)
    write_matrix_market(tmp_path / "in.mtx", graphs)
    path = tmp_path / f"out{ending}"
    plait.ok("convert", tmp_path / "in.mtx", path)
    vertices, edges = FORMATS[ending].read(path)
    assert vertices == graphs.vertices
    np.testing.assert_array_equal(edges, graphs.edges())
    # The written file reads back as itself.
    again = tmp_path / f"again{ending}"
    plait.ok("convert", path, again)
    assert again.read_bytes() == path.read_bytes() or ending == ".gnna.npz"


@pytest.mark.parametrize("ending", [".wel", ".wsg", ".gr"])
def test_unweighted_edges_weigh_1(plait, tmp_path, ending):
    graphs = random_graphs(22, 3)
    write_matrix_market(tmp_path / "in.mtx", graphs)
    plait.ok("convert", tmp_path / "in.mtx", tmp_path / f"out{ending}")
    np.testing.assert_array_equal(FORMATS[ending].read(tmp_path / f"out{ending}")[1],
                                  graphs.edges())


def test_metis_numbers_of_vertices_are_left_out(plait, tmp_path):
    """Sizes and weights of vertices are left out, with and without weights of edges."""
    for weights, fmt, numbers in [(None, "10", "7"), (None, "110 3", "5 1 2 3"),
                                  ("integer", "011 2", "4 9"), ("integer", "111", "1 1")]:
        graphs = undirected(random_graphs(23, 5, weights))
        write_metis(tmp_path / "in.graph", graphs, numbers, fmt)
        result = plait("convert", tmp_path / "in.graph", tmp_path / "out.mtx")
        assert result.code == 0 and len(result.lines) == 1
        assert "plait: warning:" in result.err and "left out" in result.err
        np.testing.assert_array_equal(edges_of_mtx(tmp_path / "out.mtx"), graphs.edges())


def test_metis_loops_stand_once_or_twice(plait, tmp_path):
    for text, edges in [("2 2\n1 2\n1\n", 3), ("2 2\n1 1 2\n1\n", 4)]:
        (tmp_path / "in.graph").write_text(text)
        assert plait.json("convert", tmp_path / "in.graph", tmp_path / "out.txt")["edges"] == edges


def test_metis_last_line_may_lack_its_end(plait, tmp_path):
    for text in ["3 1\n2\n1\n", "3 1\n2\n1\n\n", "3 1\n2\n1\n\n\n \n", "3 1\r\n2\r\n1\r\n\r\n"]:
        (tmp_path / "in.graph").write_bytes(text.encode())
        assert plait.json("info", tmp_path / "in.graph")["vertices"] == 3


@pytest.mark.parametrize("offsets_as", ["<i4", "<i8"])
@pytest.mark.parametrize("ids_as", ["<i4", "<i8"])
def test_mgg_of_any_width(plait, tmp_path, offsets_as, ids_as):
    graphs = random_graphs(24, 10)
    write_mgg(tmp_path / "a_beg_pos.bin", graphs, offsets_as, ids_as)
    plait.ok("convert", tmp_path / "a_beg_pos.bin", tmp_path / "out.mtx")
    np.testing.assert_array_equal(edges_of_mtx(tmp_path / "out.mtx"), graphs.edges())
    assert plait.json("info", tmp_path / "a_beg_pos.bin")["name"] == "a"


def test_rows_in_any_order(plait, tmp_path):
    """Neighbours are not sorted, as MGG's and METIS' files may have them."""
    np.array([0, 3, 3, 5]).tofile(tmp_path / "a_beg_pos.bin")
    np.array([2, 0, 1, 1, 0]).tofile(tmp_path / "a_csr.bin")
    np.array([5, 6, 7, 8, 9], np.int32).tofile(tmp_path / "a_weight.bin")
    plait.ok("convert", tmp_path / "a_beg_pos.bin", tmp_path / "a.mtx")
    np.testing.assert_array_equal(edges_of_mtx(tmp_path / "a.mtx"),
                                  [[0, 0, 0, 2, 2], [0, 1, 2, 0, 1], [6, 7, 5, 9, 8]])
    (tmp_path / "b.graph").write_text("3 2\n3 2\n1\n1\n")
    plait.ok("convert", tmp_path / "b.graph", tmp_path / "b.mtx")
    np.testing.assert_array_equal(edges_of_mtx(tmp_path / "b.mtx")[:2],
                                  [[0, 0, 1, 2], [1, 2, 0, 0]])


def test_clean_up_of_rows(plait, tmp_path):
    graphs = random_graphs(25, 5)
    FORMATS[".sg"].write(tmp_path / "in.sg", graphs)
    plait.ok("convert", tmp_path / "in.sg", tmp_path / "out.mtx", "--undirected", "--no-loops")
    dense = scipy.io.mmread(tmp_path / "out.mtx", spmatrix=False).toarray()
    wanted = np.zeros_like(dense)
    wanted[graphs.row, graphs.column] = wanted[graphs.column, graphs.row] = 1
    np.fill_diagonal(wanted, 0)
    np.testing.assert_array_equal(dense, wanted)


@pytest.mark.parametrize("name,edges,weights,names", [
    ("out.graph", [(0, 1)], None, ["directed", "--undirected"]),
    ("out.graph", [(0, 0)], None, ["itself", "--no-loops"]),
    ("out.graph", [(0, 1), (1, 0)], [0, 0], ["weight 0", "1.."]),
    ("out.gr", [(1, 2), (0, 1)], [1, 0.5], ["weight 0.5", "vertex 0 to 1", "--no-weights"]),
    ("out.wsg", [(0, 1)], [3e9], ["3000000000", "2147483647"]),
    ("out.adj", [(0, 1)], [-1.5], ["-1.5"]),
    ("out_beg_pos.bin", [(0, 1)], [0.25], ["0.25"]),
    ("out.sg", [(0, 1)], [2], ["no weights", ".wsg"]),
    ("out.el", [(0, 1)], [2], ["no weights", ".wel"]),
    ("out.gnna.npz", [(0, 1)], [2], ["no weights"]),
])
def test_what_a_format_cannot_hold(plait, tmp_path, name, edges, weights, names):
    write_matrix_market(tmp_path / "in.mtx", graph(3, *edges, weights=weights))
    plait.fails(FAILED, "convert", tmp_path / "in.mtx", tmp_path / name,
                names=[tmp_path / name, *names])


def test_format_by_option(plait, tmp_path):
    graphs = random_graphs(26, 3)
    FORMATS[".sg"].write(tmp_path / "graph.bin", graphs)
    plait.ok("convert", tmp_path / "graph.bin", tmp_path / "out.x", "--format", "sg",
             "--out-format", "ADJ")
    np.testing.assert_array_equal(FORMATS[".adj"].read(tmp_path / "out.x")[1], graphs.edges())
    plait.fails(USAGE, "convert", tmp_path / "graph.bin", tmp_path / "y.mtx", "--format", "gif",
                names=["'gif'", ".sg"])
    (tmp_path / "far.el").write_text("5 1000000000000\n")
    plait.fails(FAILED, "info", tmp_path / "far.el", names=["1000000000000"])
    assert plait.json("convert", tmp_path / "far.el", tmp_path / "z.mtx", "--format", "edges",
                      "--quiet")["vertices"] == 2


# --- features and weights ---


def test_weights_follow_the_edges(plait, tmp_path):
    graphs = random_graphs(27, 8, "float", shuffled=True)
    plain = dataclasses.replace(graphs, weight=None)
    FORMATS[".el"].write(tmp_path / "in.el", with_last_edge(plain))
    weighted = with_last_edge(graphs)
    np.save(tmp_path / "w.npy", weighted.weight)
    np.savez(tmp_path / "w.npz", edge_weight=weighted.weight, other=np.zeros(2))
    for name in ("w.npy", "w.npz"):
        plait.ok("convert", tmp_path / "in.el", tmp_path / "out.mtx", "--weights", tmp_path / name)
        np.testing.assert_array_equal(edges_of_mtx(tmp_path / "out.mtx").astype(np.float32),
                                      weighted.edges().astype(np.float32))
    plait.ok("convert", tmp_path / "out.mtx", tmp_path / "plain.mtx", "--no-weights")
    np.testing.assert_array_equal(edges_of_mtx(tmp_path / "plain.mtx"),
                                  with_last_edge(plain).edges())


def test_weights_by_rows(plait, tmp_path):
    """Weights of a container stand in the order of its rows, sorted by neighbour."""
    graphs = random_graphs(28, 4)
    write_scipy(tmp_path / "in.npz", graphs)
    plait.ok("convert", tmp_path / "in.npz", tmp_path / "in.plait")
    weight = np.arange(len(graphs.row), dtype=np.float32)
    np.save(tmp_path / "w.npy", weight)
    plait.ok("convert", tmp_path / "in.plait", tmp_path / "out.npz", "--weights",
             tmp_path / "w.npy")
    row, column, got = edges_of_npz(tmp_path / "out.npz")
    order = np.lexsort((graphs.column, graphs.row))
    np.testing.assert_array_equal([row, column], [graphs.row[order], graphs.column[order]])
    np.testing.assert_array_equal(got, weight)


def test_features_beside_a_graph(plait, tmp_path):
    rng = np.random.default_rng(5)
    FORMATS[".gr"].write(tmp_path / "in.gr", graph(20, (3, 4), (19, 0)))
    dense = rng.standard_normal((20, 3)).astype(np.float32)
    sparse = scipy.sparse.random_array((20, 50), density=0.1, rng=rng, dtype=np.float32).tocsr()
    np.save(tmp_path / "x.npy", dense)
    np.savez(tmp_path / "x.npz", whatever=dense)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", sparse)
    for name in ("x.npy", "x.npz"):
        plait.ok("convert", tmp_path / "in.gr", tmp_path / "out.npz", "--features", tmp_path / name)
        with np.load(tmp_path / "out.npz") as file:
            np.testing.assert_array_equal(file["x"], dense)
    plait.ok("convert", tmp_path / "in.gr", tmp_path / "out.npz", "--features",
             tmp_path / "sparse.npz")
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_array_equal(file["x_data"], sparse.data)
        np.testing.assert_array_equal(file["x_indices"], sparse.indices)
        np.testing.assert_array_equal(file["x_shape"], sparse.shape)


@pytest.mark.parametrize("option,array,names", [
    ("--features", np.ones((4, 2), np.float32), ["4 rows", "3 vertices"]),
    ("--features", np.ones((3, 0), np.float32), ["0 columns"]),
    ("--features", np.ones((3, 2), int), ["i8"]),
    ("--weights", np.ones(5, np.float32), ["(5,)", "(2,)"]),
    ("--weights", np.array([1, np.nan]), ["nan"]),
    ("--weights", np.ones((2, 1)), ["(2, 1)"]),
])
def test_wrong_features_and_weights(plait, tmp_path, option, array, names):
    (tmp_path / "in.txt").write_text("0 1\n1 2\n")
    np.save(tmp_path / "a.npy", array)
    plait.fails(FAILED, "convert", tmp_path / "in.txt", tmp_path / "out.plait", option,
                tmp_path / "a.npy", names=[tmp_path / "a.npy", *names])


# --- the Open Graph Benchmark ---


def put_gzip(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)


def ogb_parts(seed, vertices=40, edges=150):
    rng = np.random.default_rng(seed)
    return {"index": rng.integers(0, vertices, (2, edges)),
            "x": rng.standard_normal((vertices, 5)).astype(np.float32),
            "y": rng.integers(-1, 4, vertices), "part": rng.integers(0, 4, vertices)}


def write_splits(folder, parts):
    for number, name in enumerate(("train", "valid", "test"), 1):
        put_gzip(folder / f"split/time/{name}.csv.gz", np.argwhere(parts["part"] == number))


def write_ogb_texts(folder, parts):
    put_gzip(folder / "raw/edge.csv.gz", parts["index"].T)
    put_gzip(folder / "raw/num-node-list.csv.gz", [[len(parts["x"])]])
    put_gzip(folder / "raw/num-edge-list.csv.gz", [[parts["index"].shape[1]]])
    put_gzip(folder / "raw/node-feat.csv.gz", [[repr(float(v)) for v in row] for row in parts["x"]])
    put_gzip(folder / "raw/node-label.csv.gz", [["nan" if y < 0 else y] for y in parts["y"]])
    write_splits(folder, parts)


def write_ogb_arrays(folder, parts):
    (folder / "raw").mkdir(parents=True)
    np.savez(folder / "raw/data.npz", edge_index=parts["index"], node_feat=parts["x"],
             num_nodes_list=np.array([len(parts["x"])]),
             num_edges_list=np.array([parts["index"].shape[1]]))
    y = np.where(parts["y"] < 0, np.nan, parts["y"]).astype(np.float32)
    np.savez(folder / "raw/node-label.npz", node_label=y[:, None])
    write_splits(folder, parts)


@pytest.mark.parametrize("write", [write_ogb_texts, write_ogb_arrays])
def test_ogb_folder(plait, tmp_path, write):
    parts = ogb_parts(31)
    write(tmp_path / "arxiv", parts)
    plait.ok("convert", tmp_path / "arxiv", tmp_path / "out.npz")
    source, target = parts["index"].tolist()
    np.testing.assert_array_equal(
        edges_of_npz(tmp_path / "out.npz"),
        edges_of(40, list(zip(source, target, [1] * len(source))))[1])
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_array_equal(file["x"], parts["x"])
        np.testing.assert_array_equal(file["y"], parts["y"])
        for number, name in enumerate(("train", "val", "test"), 1):
            np.testing.assert_array_equal(file[name], np.flatnonzero(parts["part"] == number))
    assert plait.json("info", tmp_path / "arxiv")["name"] == "arxiv"


def test_ogb_several_members_and_labels(plait, tmp_path):
    """gzip files may be joined; vertices may have several labels."""
    folder = tmp_path / "proteins"
    write_ogb_texts(folder, ogb_parts(32))
    joined = gzip.compress(b"0,1\n1,") + gzip.compress(b"2\n") + gzip.compress(b"")
    (folder / "raw/edge.csv.gz").write_bytes(joined)
    (folder / "raw/num-edge-list.csv.gz").unlink()
    labels = np.random.default_rng(3).integers(0, 2, (40, 5))
    put_gzip(folder / "raw/node-label.csv.gz", labels)
    plait.ok("convert", folder, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_array_equal(file["y"], labels)
    assert plait("convert", folder, tmp_path / "out.mtx").code == 0
    assert edges_of_mtx(tmp_path / "out.mtx").T.tolist() == [[1, 0, 1], [2, 1, 1]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_ogb_arrays_of_several_labels(plait, tmp_path, order):
    parts = ogb_parts(33)
    write_ogb_arrays(tmp_path / "proteins", parts)
    labels = np.random.default_rng(4).integers(0, 2, (40, 6))
    np.savez(tmp_path / "proteins/raw/node-label.npz", node_label=np.asarray(labels, np.float32, order=order))
    plait.ok("convert", tmp_path / "proteins", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_array_equal(file["y"], labels)
    result = plait.json("train", tmp_path / "proteins", "--epochs", "2")
    assert len(result["loss"]) == 2


OGB_DAMAGE = {
    "edge outside": ("edge.csv.gz", b"0,1\n3,40\n", ["line 2", "'40'", "0..39"]),
    "no second column": ("edge.csv.gz", b"0,1\n3\n", ["line 2", "missing"]),
    "edge count": ("num-edge-list.csv.gz", b"7\n", ["number of edges", "150"]),
    "two graphs": ("num-node-list.csv.gz", b"20\n20\n", ["2 graphs"]),
    "no vertices": ("num-node-list.csv.gz", b"0\n", ["no vertices"]),
    "few features": ("node-feat.csv.gz", b"1,2\n3,4\n", ["2 rows", "40 vertices"]),
    "ragged features": ("node-feat.csv.gz", b"1,2\n30000\n", ["line 2", "missing"]),
    "wide features": ("node-feat.csv.gz", b"1,2\n3,4,5\n", ["line 2", "more than the 2"]),
    "word feature": ("node-feat.csv.gz", b"1,x\n", ["line 1", "'x'"]),
    "label of no class": ("node-label.csv.gz", b"1.5\n" * 40, ["vertex 0", "1.5"]),
    "few labels": ("node-label.csv.gz", b"1\n", ["1 labels", "40 vertices"]),
    "few sets of labels": ("node-label.csv.gz", b"1,0\n", ["1 labels", "40 vertices"]),
    "half a label": ("node-label.csv.gz", b"1,0\n0,0.5\n" * 20, ["vertex 1", "0.5", "0 or 1"]),
    "ragged labels": ("node-label.csv.gz", b"1,0\n10000\n" * 20, ["line 2"]),
}


@pytest.mark.parametrize("case", OGB_DAMAGE)
def test_wrong_ogb_folder(plait, tmp_path, case):
    name, text, names = OGB_DAMAGE[case]
    write_ogb_texts(tmp_path / "d", ogb_parts(33))
    (tmp_path / "d/raw" / name).write_bytes(gzip.compress(text))
    plait.fails(FAILED, "convert", tmp_path / "d", tmp_path / "out.plait",
                names=[tmp_path / "d/raw" / name, "; ", *names])


def test_damaged_gzip(plait, tmp_path):
    write_ogb_texts(tmp_path / "d", ogb_parts(34))
    path = tmp_path / "d/raw/edge.csv.gz"
    good = path.read_bytes()
    wrong_sum = good[:-8] + bytes([good[-8] ^ 1]) + good[-7:]
    for content in (b"", b"0,1\n", good[:-1], good[:len(good) // 2], wrong_sum, good + b"more"):
        path.write_bytes(content)
        plait.fails(FAILED, "info", tmp_path / "d", names=[path, "byte", "; "])


def test_ogb_vertex_in_two_parts(plait, tmp_path):
    write_ogb_texts(tmp_path / "d", ogb_parts(35))
    for name in ("train", "test"):
        put_gzip(tmp_path / f"d/split/time/{name}.csv.gz", [[5]])
    plait.fails(FAILED, "info", tmp_path / "d", names=["test.csv.gz", "vertex 5"])


def test_mgg_lacks_a_file(plait, tmp_path):
    write_mgg(tmp_path / "a_beg_pos.bin", graph(3, (0, 1)))
    mgg_files(tmp_path / "a_beg_pos.bin")[0].unlink()
    plait.fails(FAILED, "info", tmp_path / "a_beg_pos.bin", names=["a_csr.bin", "no such file"])

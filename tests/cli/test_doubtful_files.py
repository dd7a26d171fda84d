"""Files that could be read in another way, or not wholly: what was read is right or refused, and a
warning names what a user may not expect."""

import zipfile

import numpy as np
import pytest
import scipy.sparse

from program import FAILED, USAGE
from test_convert_command import edges_of_npz
from test_graph_formats import ogb_parts, put_gzip, write_ogb_arrays, write_ogb_texts

COUNTS = "5 4\n0 1\n1 2\n2 3\n4 0\n"
SNAP = "# Undirected graph: x\n# Nodes: 3 Edges: 2\n1\t2\n2\t3\n"

# Content, options, then vertices and edges, and what a warning says (None: there is none).
TEXTS = {
    "counts": (COUNTS, [], 5, 4, "line 1 '5 4' is read as the counts of 5 vertices"),
    "counts of a matrix": ("5 5 4\n0 1 3\n1 2 1\n2 3 9\n4 0 2\n", [], 5, 4, "'5 5 4' is read as"),
    "an edge": (COUNTS, ["--first-line", "edge"], 6, 5, None),
    "skipped": ("x1,2\n2,3\n4,5\n", ["--first-line", "skip"], 4, 2, None),
    "names": ("source,target\n0,1\n", [], 2, 1, "'source,target' is read as the names"),
    "names, skipped": ("id,source,target\n0,1,2\n", ["--first-line", "skip"], 2, 1, None),
    "undirected": (SNAP, [], 3, 4, "line 1 '# Undirected graph: x' says that the graph is undirected"),
    "directed": (SNAP, ["--directed"], 3, 2, None),
    "of KONECT": ("% sym unweighted\n1 2\n2 3\n", [], 3, 4, "--directed reads each line as one edge"),
    "isolated": ("0 1\n1 2\n", ["--vertices", 9], 9, 2, None),
    "gaps": ("0 1\n1 7\n", ["--vertices", 8], 8, 2, None),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts(plait, tmp_path, case):
    text, options, vertices, edges, warning = TEXTS[case]
    path = tmp_path / "g.txt"
    path.write_text(text)
    result = plait("info", path, *options, "--json")
    assert (result.json["vertices"], result.json["edges"]) == (vertices, edges)
    assert result.json["symmetric"] is (edges == 4 and vertices == 3)
    if warning is None:
        assert result.err == ""
    else:
        assert result.err.startswith(f"plait: warning: {path}: ") and warning in result.err
        assert len(result.lines) == 1
        plait.ok("info", path, *options, "--quiet")


def test_told_undirected_is_not_told_again(plait, tmp_path):
    (tmp_path / "g.txt").write_text(SNAP)
    assert plait.json("convert", tmp_path / "g.txt", tmp_path / "g.plait", "--undirected")["edges"] == 4


@pytest.mark.parametrize("text, names", [
    ("x1,2\n2,3\n4,5\n", ["line 1", "source 'x1'"]),
    ("id,source,target\n0,1,2\n", ["line 1", "'id,source,target' names columns that are not", "--first-line skip"]),
    ("5 5 7\n0 1\n", ["line 1", "'5 5 7' has not the columns of the edges after it", "--first-line skip"]),
    ("1,000 2\n", ["line 1", "'1,000 2' has a comma between two of its columns alone"]),
])
def test_wrong_lines(plait, tmp_path, text, names):
    (tmp_path / "g.csv").write_text(text)
    plait.fails(FAILED, "info", tmp_path / "g.csv", names=names)


def test_ranks_warn_once_and_know_the_vertices(plait, tmp_path):
    (tmp_path / "g.txt").write_text("source target\n0 1\n1 2\n")
    np.save(tmp_path / "x.npy", np.ones((6, 2), "f4"))
    result = plait("aggregate", tmp_path / "g.txt", "--features", tmp_path / "x.npy", "--out",
                   tmp_path / "y.npy", "--vertices", 6, "--ranks", 2)
    assert (result.code, result.err.count("names of columns")) == (0, 1)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy")[:, 0], [0, 1, 1, 0, 0, 0])


MTX = "%%MatrixMarket matrix coordinate pattern general\n{0} {0} 1\n1 2\n"
STATED = {  # formats that state the number of vertices, here 6
    "g.mtx": MTX.format(6),
    "g.gr": "p sp 6 1\na 1 2 3\n",
    "g.graph": "6 1\n2\n1\n\n\n\n\n",
    "g.adj": "AdjacencyGraph\n6\n1\n0\n1\n1\n1\n1\n1\n1\n",
}


def test_vertices_are_compared_with_what_a_file_states(plait, tmp_path):
    for name, text in STATED.items():
        (tmp_path / name).write_text(text)
        assert plait.json("info", tmp_path / name, "--vertices", 6)["vertices"] == 6
        plait.fails(FAILED, "info", tmp_path / name, "--vertices", 7,
                    names=["6 vertices, where --vertices says 7", "leave out --vertices"])
    plait.ok("convert", tmp_path / "g.mtx", tmp_path / "g.plait")
    plait.fails(FAILED, "info", tmp_path / "g.plait", "--vertices", 7, names=["6 vertices"])
    np.savez(tmp_path / "x.npz", edge_index=[[0], [1]], x=np.ones((6, 1), "f4"))
    plait.fails(FAILED, "info", tmp_path / "x.npz", "--vertices", 7, names=["6 vertices"])
    np.save(tmp_path / "e.npy", [[0, 1], [1, 2]])
    assert plait.json("info", tmp_path / "e.npy", "--vertices", 7)["vertices"] == 7
    plait.fails(FAILED, "info", tmp_path / "e.npy", "--vertices", 2, names=["value 2 is outside 0..1"])
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    plait.fails(FAILED, "info", tmp_path / "e.txt", "--vertices", 2, names=["line 2", "outside 0..1"])


def test_far_more_vertices_than_edges_can_name(plait, tmp_path):
    """A few bytes do not take gigabytes, unless the user says so too."""
    (tmp_path / "g.mtx").write_text(MTX.format(400_000_000))
    plait.fails(FAILED, "info", tmp_path / "g.mtx",
                names=["line 2", "400000000 vertices", "give --vertices 400000000"])
    write_ogb_texts(tmp_path / "d", ogb_parts(36))
    put_gzip(tmp_path / "d/raw/num-node-list.csv.gz", [[400_000_000]])
    plait.fails(FAILED, "info", tmp_path / "d", names=["num-node-list.csv.gz", "400000000"])
    (tmp_path / "g.mtx").write_text(MTX.format(5_000_000))
    for command in (["info"], ["partition", "--ranks", 2], ["plan", "--width", 8]):
        plait.ok(command[0], tmp_path / "g.mtx", *command[1:], "--vertices", 5_000_000)
    plait.ok("reorder", tmp_path / "g.mtx", tmp_path / "g.plait", "--method", "degree", "--vertices", 5_000_000)


def test_options_without_effect_are_refused(plait, tmp_path):
    (tmp_path / "g.mtx").write_text(STATED["g.mtx"])
    (tmp_path / "g.txt").write_text("0 1\n")
    for options in (["--directed"], ["--first-line", "edge"]):
        plait.fails(USAGE, "info", tmp_path / "g.mtx", *options, names=["edge lists", options[0]])
    plait.fails(USAGE, "info", tmp_path / "g.txt", "--directed", names=["no comment says"])
    plait.fails(USAGE, "info", tmp_path / "g.txt", "--first-line", "names", names=["edge, counts or skip"])
    for options in (["--vertices", 0], ["--vertices", "many"]):
        plait.fails(USAGE, "info", tmp_path / "g.txt", *options, names=["--vertices"])
    plait.fails(USAGE, "convert", tmp_path / "g.txt", tmp_path / "g.plait", "--directed", "--undirected",
                names=["--directed"])
    plait.fails(USAGE, "study", "split", "--vertices", 5, names=["--vertices", "graph"])


def test_archives_of_other_names(plait, tmp_path):
    index = np.array([[0, 1, 2], [1, 2, 0]])
    np.savez(tmp_path / "g.npz", edge_index=index, num_nodes=9, weights=np.ones(3), labels=np.arange(9)[:, None],
             features=np.ones((9, 2), "f4"), train_idx=np.array([0]), pos=np.ones((9, 3)), name=np.array("x"))
    result = plait("info", tmp_path / "g.npz", "--json")
    found = result.json
    assert (found["vertices"], found["weighted"], found["feature_width"], found["classes"]) == (9, True, 2, 9)
    assert found["splits"] == [{"train": 1, "validation": 0, "test": 0}]
    assert result.err == f"plait: warning: {tmp_path / 'g.npz'}: arrays that are not read are left out: name, pos\n"


@pytest.mark.parametrize("form", ["coo", "csc", "bsr"])
def test_matrices_of_scipy(plait, tmp_path, form):
    rng = np.random.default_rng(5)
    square = scipy.sparse.random(60, 60, 0.1, "csr", rng=rng)
    square.data = np.round(square.data + 1, 2)
    x = scipy.sparse.random(60, 12, 0.2, "csr", "f4", rng=rng)
    for name, matrix in (("a", square), ("x", x)):
        scipy.sparse.save_npz(tmp_path / f"{name}.npz", matrix.asformat(form))
        scipy.sparse.save_npz(tmp_path / f"{name}-csr.npz", matrix)
    for kind in ("", "-csr"):
        plait.ok("convert", tmp_path / f"a{kind}.npz", tmp_path / f"out{kind}.npz", "--features",
                 tmp_path / f"x{kind}.npz")
    np.testing.assert_array_equal(edges_of_npz(tmp_path / "out.npz"), edges_of_npz(tmp_path / "out-csr.npz"))
    with np.load(tmp_path / "out.npz") as ours, np.load(tmp_path / "out-csr.npz") as theirs:
        assert set(ours) == set(theirs)
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], name)


def test_files_of_pytorch_are_told(plait, tmp_path):
    with zipfile.ZipFile(tmp_path / "new.pt", "w") as file:
        file.writestr("g/data.pkl", b"\x80\x02}.")
        file.writestr("g/data/0", bytes(8))
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    for path in (tmp_path / "new.pt", tmp_path / "old.pt"):
        plait.fails(FAILED, "info", path, names=[path, "torch.save", "numpy.savez"])
    (tmp_path / "g.txt").write_text("0 1\n")
    plait.fails(FAILED, "convert", tmp_path / "g.txt", tmp_path / "g.plait", "--features", tmp_path / "new.pt",
                names=["torch.save"])


def test_data_of_ogb_that_are_not_read(plait, tmp_path):
    write_ogb_texts(tmp_path / "t", ogb_parts(37))
    put_gzip(tmp_path / "t/raw/node_year.csv.gz", [[2020]] * 40)
    assert "files of raw/ are left out: node_year.csv.gz" in plait("info", tmp_path / "t").err
    parts = ogb_parts(37)
    write_ogb_arrays(tmp_path / "a", parts)
    np.savez(tmp_path / "a/raw/data.npz", edge_index=parts["index"], node_feat=parts["x"],
             num_nodes_list=np.array([len(parts["x"])]), node_year=np.ones(40))
    assert "arrays of raw/data.npz are left out: node_year" in plait("info", tmp_path / "a").err

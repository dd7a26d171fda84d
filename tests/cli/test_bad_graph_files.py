"""Graph files that are wrong: one line that names the file, the place, the value and what to do,
exit code 1, and nothing written. Truncations and bit flips of every byte are tested, and fuzzed, in
the tests of the readers; here is what a user meets."""

import io
import os
import resource
import zipfile

import numpy as np
import pytest
import scipy.sparse

from container_file import container, triangle
from program import FAILED

BANNER = "%%MatrixMarket matrix coordinate pattern general\n"
REAL = "%%MatrixMarket matrix coordinate real general\n"

TEXTS = {  # name -> content, and what the line must say
    "empty.mtx": ("", ["line 1"]),
    "array.mtx": ("%%MatrixMarket matrix array real general\n", ["line 1", "'array'"]),
    "complex.mtx": ("%%MatrixMarket matrix coordinate complex general\n", ["'complex'"]),
    "skew.mtx": ("%%MatrixMarket matrix coordinate real skew-symmetric\n", ["'skew-symmetric'"]),
    "no-size.mtx": (BANNER + "% only this\n", ["size line"]),
    "negative.mtx": (BANNER + "-3 -3 1\n1 1\n", ["line 2", "'-3'", "1..", "negative"]),
    "overflow.mtx": (BANNER + "3 3 99999999999999999999\n1 1\n",
                     ["line 2", "'99999999999999999999'"]),
    "promise.mtx": (BANNER + "3 3 1000000000000\n1 1\n", ["line 2", "1000000000000", "holds 1"]),
    "short.mtx": (BANNER + "3 3 3\n1 1\n2 2\n", ["line 2", "3 entries", "holds 2"]),
    "long.mtx": (BANNER + "3 3 1\n1 1\n2 2\n", ["line 2", "1 entries", "holds 2"]),
    "flat.mtx": (BANNER + "3 4 1\n1 1\n", ["line 2", "3 rows and 4 columns", "square"]),
    "no-vertices.mtx": (BANNER + "0 0 0\n", ["line 2", "'0'", "1.."]),
    "row-0.mtx": (BANNER + "3 3 1\n0 1\n", ["line 3", "'0'", "1..3"]),
    "row-4.mtx": (BANNER + "3 3 2\n1 1\n4 1\n", ["line 4", "row '4'", "1..3"]),
    "column-4.mtx": (BANNER + "3 3 1\n1 4\n", ["line 3", "column '4'", "1..3"]),
    "minus-row.mtx": (BANNER + "3 3 1\n-1 1\n", ["line 3", "'-1'", "1..3"]),
    "cut.mtx": (BANNER + "3 3 2\n1 1\n2", ["line 4", "missing"]),
    "word.mtx": (BANNER + "3 3 1\none two\n", ["line 3", "'one'"]),
    "nan.mtx": (REAL + "3 3 1\n1 2 nan\n", ["line 3", "'nan'", "finite"]),
    "inf.mtx": (REAL + "3 3 1\n1 2 1e999\n", ["line 3", "'1e999'", "finite"]),
    "no-value.mtx": (REAL + "3 3 1\n1 2\n", ["line 3", "missing"]),
    "upper.mtx": ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n1 3\n",
                  ["line 3", "(1, 3)", "diagonal"]),
    "empty.txt": ("", ["no edge", "0 vertices"]),
    "comments.txt": ("# nothing\n# here\n", ["no edge"]),
    "one-id.txt": ("1 2\n3\n", ["line 2", "missing"]),
    "negative.txt": ("1 2\n3 -4\n", ["line 2", "'-4'", "negative"]),
    "overflow.txt": ("1 18446744073709551616\n", ["line 1", "'18446744073709551616'"]),
    "word.csv": ("1,2\n3,x\n", ["line 2", "'x'"]),
    "fewer-columns.txt": ("1 2 0.5\n3 4\n", ["line 2", "weight", "missing"]),
    "more-columns.txt": ("1 2\n3 4 0.5\n", ["line 2", "2 columns"]),
    "nan.txt": ("1 2 0.5\n3 4 nan\n", ["line 2", "'nan'", "finite"]),
    "empty.graph": ("", ["header is missing"]),
    "no-vertices.graph": ("0 0\n", ["line 1", "'0'", "1.."]),
    "promise.graph": ("1000000000000 1\n2\n1\n", ["line 1", "1000000000000", "lines for 2"]),
    "edges.graph": ("% c\n2 2\n2\n1\n", ["line 2", "2 edges", "2 ends"]),
    "one-way.graph": ("3 1\n2 3\n\n\n", ["vertex 0", "reverse"]),
    "unequal.graph": ("2 1 1\n2 5\n1 6\n", ["vertex 0", "same weight"]),
    "neighbour-0.graph": ("2 1\n2\n0\n", ["line 3", "'0'", "1..2"]),
    "neighbour-3.graph": ("2 1\n3\n1\n", ["line 2", "'3'", "1..2"]),
    "more-lines.graph": ("2 1\n2\n1\n1\n", ["line 4", "2 vertices"]),
    "no-weight.graph": ("2 1 1\n2 5\n1\n", ["line 3", "1 numbers"]),
    "no-size.graph": ("2 1 110 2\n1 1 1 2\n1 1\n", ["line 3", "3 for the vertex"]),
    "nan.graph": ("2 1 1\n2 nan\n1 1\n", ["line 2", "'nan'"]),
    "fmt.graph": ("2 1 12\n", ["line 1", "fmt 12"]),
    "five.graph": ("2 1 1 1 1\n", ["line 1", "more than 4"]),
    "word.graph": ("2 1\n2\nx\n", ["line 3", "'x'"]),
    "empty.gr": ("", ["problem line"]),
    "late.gr": ("a 1 2 3\np sp 2 1\n", ["line 1", "problem line"]),
    "max.gr": ("p max 2 1\na 1 2 3\n", ["line 1", "shortest path"]),
    "promise.gr": ("p sp 2 1000000000000\na 1 2 3\n", ["line 1", "1000000000000", "holds 1"]),
    "twice.gr": ("p sp 2 1\np sp 2 1\na 1 2 3\n", ["line 2", "second"]),
    "outside.gr": ("c\np sp 2 1\na 1 3 3\n", ["line 3", "target '3'", "1..2"]),
    "no-weight.gr": ("p sp 2 1\na 1 2\n", ["line 2", "weight", "missing"]),
    "more.gr": ("p sp 2 1\na 1 2 3 4\n", ["line 2", "3 numbers"]),
    "letter.gr": ("p sp 2 1\na 1 2 3\nb 1 2 3\n", ["line 3", "c, p or a"]),
    "empty.adj": ("", ["AdjacencyGraph"]),
    "kind.adj": ("HyperGraph\n1\n0\n0\n", ["line 1", "'HyperGraph'"]),
    "no-vertices.adj": ("AdjacencyGraph\n0\n0\n", ["line 2", "'0'", "1.."]),
    "promise.adj": ("AdjacencyGraph\n2\n1000000000000\n0\n1\n1\n",
                    ["line 2", "1000000000000", "holds 3"]),
    "offset.adj": ("AdjacencyGraph\n2\n1\n0\n2\n1\n", ["line 5", "'2'", "0..1"]),
    "falls.adj": ("AdjacencyGraph\n3\n2\n0\n2\n1\n1\n1\n", ["vertex 2", "1 is below", "2"]),
    "first.adj": ("AdjacencyGraph\n2\n1\n1\n1\n0\n", ["vertex 0", "1 is not 0"]),
    "target.adj": ("AdjacencyGraph\n2\n1\n0\n1\n2\n", ["line 6", "target '2'", "0..1"]),
    "inf.adj": ("WeightedAdjacencyGraph\n2\n1\n0\n1\n1\ninf\n", ["line 7", "'inf'"]),
    "two-columns.wel": ("1 2 3\n1 2\n", ["line 2", "weight", "missing"]),
    "unweighted.wel": ("1 2\n", ["line 1", "weight", "missing"]),
    "far.el": ("1 2\n2 99999999\n", ["largest id is 99999999", "2 edges"]),
    "short.sg": ("\0" * 16, ["header", "16 bytes"]),
    "neither.sg": ("\2" + "\0" * 16, ["byte 0", "value 2"]),
    "no-vertices.sg": ("\0" * 17, ["byte 9", "0", "1.."]),
    "negative.sg": ("\0" + "\0" * 8 + "\xff" * 8, ["byte 9", "-1"]),
    "promise.sg": ("\0" + "\0" * 7 + "\x7f\1" + "\0" * 7 + "\0" * 16, ["header", "33 bytes"]),
    "offset.sg": ("\0" + "\1" + "\0" * 7 + "\1" + "\0" * 7 + "\0" * 8 + "\2" + "\0" * 11,
                  ["offsets", "(1)", "value 2", "0..1"]),
    "outside.sg": ("\0" + "\1" + "\0" * 7 + "\1" + "\0" * 7 + "\0" * 8 + "\1" + "\0" * 7 + "\1\0\0\0",
                   ["edges", "(0)", "value 1", "0..0"]),
    "one-way.sg": ("\0" + "\1" + "\0" * 7 + "\2" + "\0" * 7 + "\0" * 8 + ("\1" + "\0" * 7) * 2
                   + "\1\0\0\0", ["vertex 0", "reverse"]),
    "words.plait": ("not a container", ["header"]),
    "words.npz": ("not an archive", ["archive"]),
    "words.npy": ("not an array", ["mark"]),
    "words.docx": ("1 2\n", [".docx", ".mtx"]),
    "words": ("1 2\n", ["ending", ".mtx"]),
    "packed.txt": ("\x1f\x8b\x08", ["gzip", "gunzip"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(plait, tmp_path, name):
    text, names = TEXTS[name]
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    plait.fails(FAILED, "convert", tmp_path / name, tmp_path / "out.plait",
                names=[tmp_path / name, "; ", *names])


MGG = {  # offsets, neighbours and weights
    "no offsets": ([], [], None, ["last number"]),
    "edges": ([0, 1, 3], [0, 1], None, ["last number", "16 bytes"]),
    "falls": ([0, 2, 1, 3], [0, 1, 2], None, ["vertex 2", "1 is below", "2"]),
    "first": ([1, 1, 2], [0, 1], None, ["vertex 0", "1 is not 0"]),
    "negative offset": ([0, -1, 2], [0, 1], None, ["(1)", "-1"]),
    "neighbour": ([0, 1, 2], [0, 2], None, ["neighbours", "(1)", "value 2", "0..1"]),
    "negative": ([0, 1, 2], [0, -1], None, ["neighbours", "-1"]),
    "few weights": ([0, 1, 2], [0, 1], [1, 1, 1], ["weights", "24 bytes", "2 edges"]),
}


@pytest.mark.parametrize("case", MGG)
def test_mgg(plait, tmp_path, case):
    *arrays, names = MGG[case]
    for part, numbers in zip(("beg_pos", "csr", "weight"), arrays):
        if numbers is not None:
            np.array(numbers, "<i8").tofile(tmp_path / f"g_{part}.bin")
    plait.fails(FAILED, "convert", tmp_path / "g_beg_pos.bin", tmp_path / "out.plait",
                names=[tmp_path / "g_beg_pos.bin", "; ", *names])


def archive(**changes):
    """Returns a right graph archive, with changes; None leaves an array out."""
    arrays = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), "x": np.ones((3, 2), np.float32),
              "y": np.array([0, 1, 0]), "train": np.array([0]), "val": np.array([1]),
              "test": np.array([2])}
    return {name: a for name, a in (arrays | changes).items() if a is not None}


def scipy_arrays(**changes):
    matrix = scipy.sparse.csr_array(np.eye(3, dtype=np.float32))
    arrays = {"format": np.array(b"csr"), "shape": np.array(matrix.shape), "data": matrix.data,
              "indices": matrix.indices, "indptr": matrix.indptr}
    return arrays | changes


NAN = np.array([[1, 2], [np.nan, 3], [4, 5]], np.float32)
ARCHIVES = {
    "negative id": (archive(edge_index=np.array([[0, -7], [1, 2]])), ["edge_index", "-7"]),
    "id outside": (archive(edge_index=np.array([[0, 3], [1, 2]])),
                   ["edge_index", "(0, 1)", "value 3", "0..2"]),
    "float ids": (archive(edge_index=np.ones((2, 3))), ["edge_index", "f8", "integers"]),
    "three rows": (archive(edge_index=np.ones((3, 2), int)), ["edge_index", "(3, 2)"]),
    "no edges": (archive(edge_index=None), ["edge_index"]),
    "no vertices": ({"edge_index": np.zeros((2, 0), int)}, ["no vertices"]),
    "huge id": ({"edge_index": np.array([[0], [2**62]])}, [str(2**62), "1 edges"]),
    "objects": (archive(x=np.array([[1], [2], [3]], object)), ["x", "pickle"]),
    "nan feature": (archive(x=NAN), ["x", "(1, 0)", "nan", "finite"]),
    "infinite feature": (archive(x=np.full((3, 2), 1e300)), ["x", "(0, 0)", "1e+300"]),
    "cube of features": (archive(x=np.ones((3, 2, 2), np.float32)), ["x", "(3, 2, 2)"]),
    "label below -1": (archive(y=np.array([0, -2, 1])), ["y", "(1)", "-2", "-1.."]),
    "label too large": (archive(y=np.array([0, 2**40, 1])), ["y", str(2**40)]),
    "split outside": (archive(train=np.array([3])), ["train", "value 3", "0..2"]),
    "split negative": (archive(val=np.array([-1])), ["val", "-1", "0..2"]),
    "in two parts": (archive(test=np.array([0, 2])), ["test", "vertex 0"]),
    "nan weight": (archive(edge_weight=np.array([1, np.nan, 1])), ["edge_weight", "(1)", "nan"]),
    "few weights": (archive(edge_weight=np.ones(2)), ["edge_weight", "(2,)", "(3,)"]),
    "dia": (scipy_arrays(format=np.array(b"dia")), ["format", "csr"]),
    "not square": (scipy_arrays(shape=np.array([3, 4])), ["shape", "3 x 4"]),
    "negative shape": (scipy_arrays(shape=np.array([-3, -3])), ["shape", "-3"]),
    "huge shape": (scipy_arrays(shape=np.array([2**62, 2**62])), ["indptr", str(2**62 + 1)]),
    "column outside": (scipy_arrays(indices=np.array([0, 5, 2])), ["indices", "value 5", "0..2"]),
    "offsets fall": (scipy_arrays(indptr=np.array([0, 2, 1, 3])), ["indptr"]),
    "offsets beyond": (scipy_arrays(indptr=np.array([0, 1, 2, 9])), ["indptr", "9", "0..3"]),
    "no data": ({k: v for k, v in scipy_arrays().items() if k != "data"}, ["data", "missing"]),
    "GNNAdvisor outside": ({"src_li": np.array([0, 3]), "dst_li": np.array([1, 1]),
                            "num_nodes": np.array(3)}, ["src_li", "value 3", "0..2"]),
    "GNNAdvisor ends": ({"src_li": np.array([0, 1]), "dst_li": np.array([1]),
                         "num_nodes": np.array(3)}, ["dst_li", "1 elements", "2"]),
    "GNNAdvisor vertices": ({"src_li": np.array([0]), "dst_li": np.array([0])},
                            ["num_nodes", "missing"]),
    "sparse columns outside": (
        archive(x=None, x_data=np.ones(1, np.float32), x_indices=np.array([7]),
                x_indptr=np.array([0, 1, 1, 1]), x_shape=np.array([3, 5])),
        ["x_indices", "value 7", "0..4"]),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(plait, tmp_path, case):
    arrays, names = ARCHIVES[case]
    np.savez_compressed(tmp_path / "g.npz", **arrays)
    plait.fails(FAILED, "convert", tmp_path / "g.npz", tmp_path / "out.plait",
                names=[tmp_path / "g.npz", "; ", *names])


def test_archive_that_promises_more(plait, tmp_path):
    """The header of a member promises 2^40 elements, of which 2 follow."""
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "<i8", "fortran_order": False,
                                                  "shape": (2, 2**39)})
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as file:
        file.writestr("edge_index.npy", member.getvalue() + bytes(16))
    plait.fails(FAILED, "info", tmp_path / "g.npz", names=[tmp_path / "g.npz", "edge_index", "16"])


@pytest.mark.parametrize("ending,share", [(".plait", 0.1), (".plait", 0.6), (".npz", 0.5),
                                          (".npz", 0.99), (".npy", 0.1), (".npy", 0.9)])
def test_truncated(plait, tmp_path, communities, communities_npz, ending, share):
    path = tmp_path / ("g" + ending)
    if ending == ".npy":
        np.save(path, np.ones((2, 100), int))
    else:
        path.write_bytes({".plait": communities, ".npz": communities_npz}[ending].read_bytes())
    os.truncate(path, int(path.stat().st_size * share))
    plait.fails(FAILED, "convert", path, tmp_path / "out.mtx", names=[path, "; "])


@pytest.mark.parametrize("ending", [".plait", ".npz"])
def test_flipped_bit(plait, tmp_path, communities, communities_npz, ending):
    content = bytearray({".plait": communities, ".npz": communities_npz}[ending].read_bytes())
    content[len(content) // 2] ^= 4
    path = tmp_path / ("g" + ending)
    path.write_bytes(content)
    plait.fails(FAILED, "convert", path, tmp_path / "out.mtx", names=[path, "; "])


def with_sections(**changes):
    return triangle() | {name.replace("_", " "): array for name, array in changes.items()}


CONTAINERS = {  # right checksums, wrong content
    "id outside": (container(with_sections(neighbours=np.array([2, 9, 1], "u4"))),
                   ["entry 1", "9", "0..2"]),
    "rows not sorted": (container(with_sections(neighbours=np.array([2, 1, 0], "u4"),
                                                offsets=np.array([0, 0, 3, 3], "u8"))),
                        ["neighbour list", "entry 1", "1 follows 2"]),
    "not symmetric": (container(triangle(), header={"flags": 1}),
                      ["vertex 0", "edge to vertex 2", "no reverse"]),
    "offsets fall": (container(with_sections(offsets=np.array([0, 2, 1, 3], "u8"))),
                     ["offsets", "value 1"]),
    "offsets beyond": (container(with_sections(offsets=np.array([0, 1, 2, 2**63], "u8"))),
                       ["offsets", str(2**63)]),
    "more vertices": (container(triangle(), header={"vertices": 1000}), ["offsets", "1001"]),
    "wide ids": (container(triangle(), header={"vertices": 2**59}), ["32-bit", str(2**59)]),
    "too many vertices": (container(triangle(), header={"vertices": 2**63}), [str(2**63), "2^60"]),
    "more edges": (container(triangle(), header={"edges": 2**62 + 3}), ["neighbours"]),
    "fewer edges": (container(triangle(), header={"edges": 2}), ["neighbours"]),
    "newer version": (container(triangle(), header={"version": 4}), ["newer", "version 4"]),
    "nan weight": (container(with_sections(weights=np.array([1, np.nan, 1], "f4"))),
                   ["weights", "entry 1", "nan"]),
    "nan feature": (container(with_sections(features=NAN), header={"width": 2}),
                    ["features", "entry 2", "nan"]),
    "features overflow": (container(with_sections(features=NAN), header={"width": 2**63}),
                          ["features"]),
    "label outside": (container(with_sections(labels=np.array([0, 1, 3], "i4")),
                                header={"classes": 3}), ["vertex 2", "value 3", "-1..2"]),
    "label below": (container(with_sections(labels=np.array([-5, 1, 2], "i4")),
                              header={"classes": 3}), ["vertex 0", "value -5", "-1..2"]),
    "split outside": (container(with_sections(splits=np.array([1, 2, 4], "u1")),
                                header={"splits": 1}), ["vertex 2", "value 4", "0..3"]),
    "no vertices": (container({"offsets": np.array([0], "u8"), "neighbours": np.zeros(0, "u4")}),
                    ["no vertices"]),
}


@pytest.mark.parametrize("case", CONTAINERS)
def test_containers(plait, tmp_path, case):
    content, names = CONTAINERS[case]
    (tmp_path / "g.plait").write_bytes(content)
    plait.fails(FAILED, "convert", tmp_path / "g.plait", tmp_path / "out.mtx",
                names=[tmp_path / "g.plait", "; ", *names])


def test_the_container_of_these_tests_is_right(plait, tmp_path):
    (tmp_path / "g.plait").write_bytes(container(triangle()))
    described = plait.json("info", tmp_path / "g.plait")
    assert (described["name"], described["vertices"], described["edges"]) == ("hand", 3, 3)


@pytest.mark.parametrize("name,words", [("missing.mtx", "no such file"), ("folder.mtx", "folder"),
                                        ("pipe.mtx", "not a regular file")])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_no_file(plait, tmp_path, name, words, ranks):
    (tmp_path / "folder.mtx").mkdir()
    os.mkfifo(tmp_path / "pipe.mtx")
    np.save(tmp_path / "x.npy", np.ones((3, 1), np.float32))
    plait.fails(FAILED, "aggregate", tmp_path / name, "--features", tmp_path / "x.npy", "--out",
                tmp_path / "y.npy", "--ranks", ranks, names=[tmp_path / name, words])


def test_places_that_cannot_be_looked_at(plait, tmp_path):
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    for path, words in ((tmp_path / "loop.txt", "oo many levels"), (tmp_path / ("a" * 300 + ".txt"), "too long")):
        plait.fails(FAILED, "info", path, names=[path, words])


def test_an_archive_without_arrays(plait, tmp_path):
    zipfile.ZipFile(tmp_path / "none.npz", "w").close()
    (tmp_path / "empty.npz").touch()
    for name in ("none.npz", "empty.npz"):
        plait.fails(FAILED, "info", tmp_path / name, names=[tmp_path / name, "no array"])


def test_the_mark_of_the_byte_order_is_no_text(plait, tmp_path):
    text = BANNER + "3 3 2\n1 2\n2 3\n"
    (tmp_path / "plain.mtx").write_text(text)
    (tmp_path / "marked.mtx").write_text(text, encoding="utf-8-sig")
    plain, marked = (plait.json("info", tmp_path / f"{name}.mtx") for name in ("plain", "marked"))
    assert marked | {"name": ""} == plain | {"name": ""}


FEATURES = {
    "rows": (np.ones((4, 2), np.float32), ["4 rows", "3 vertices"]),
    "nan": (NAN, ["(1, 0)", "nan"]),
    "integers": (np.ones((3, 2), int), ["i8", "f4"]),
    "three dimensions": (np.ones((3, 1, 1), np.float32), ["(3, 1, 1)"]),
    "objects": (np.array([[1], [2], [None]], object), ["pickle"]),
}


@pytest.mark.parametrize("case", FEATURES)
@pytest.mark.parametrize("ranks", [1, 2])
def test_features_of_aggregate(plait, tmp_path, case, ranks):
    x, names = FEATURES[case]
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "y.npy").write_text("stays")
    plait.fails(FAILED, "aggregate", tmp_path / "g.txt", "--features", tmp_path / "x.npy", "--out",
                tmp_path / "y.npy", "--ranks", ranks, names=[tmp_path / "x.npy", *names])


def test_wrong_file_on_three_ranks_is_one_line(plait, tmp_path):
    """All ranks find the same mistake; it is reported once."""
    (tmp_path / "g.mtx").write_text(BANNER + "3 3 1\n9 9\n")
    np.save(tmp_path / "x.npy", np.ones((3, 1), np.float32))
    for command in (["aggregate", "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy"],
                    ["train"]):
        plait.fails(FAILED, *command, tmp_path / "g.mtx", "--ranks", 3,
                    names=[tmp_path / "g.mtx", "line 3", "'9'", "1..3"])


def test_memory_is_bounded_by_the_file(plait, tmp_path):
    """A file of a megabyte that promises terabytes is refused while little memory may be taken."""
    (tmp_path / "g.mtx").write_text(BANNER + f"{2**40} {2**40} 3\n" + "1 1\n" * 3 + "%" * 2**20)
    limit = 4 << 30  # of addresses: libtorch alone takes more than one GiB
    plait.fails(FAILED, "info", tmp_path / "g.mtx", names=[tmp_path / "g.mtx"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))

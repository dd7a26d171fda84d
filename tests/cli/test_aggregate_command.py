"""plait aggregate against SciPy: over a thousand random graphs, all numbers of ranks, strategies
and partitions, all formats of input."""

import itertools
import string

import numpy as np
import pytest

import program
import random_graphs
from program import USAGE

RANKS = (1, 2, 3, 4)
SCHEMES = ("edges", "vertices", "clusters", "hash", "metis")
STRATEGIES = ("replicate", "bulk", "get")
OPS = ("sum", "mean", "weighted")
FORMATS = (".mtx", ".npz", ".csv", ".plait")
WIDTHS = (1, 70, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 5, 24, 100, 128)
CASES = list(itertools.product(RANKS, SCHEMES))
GRAPHS_A_CASE = 64
assert len(CASES) * GRAPHS_A_CASE >= 1000


def save_graphs(plait, path, graphs):
    """Writes in the format of the name; returns the graphs as the file gives them."""
    if path.suffix == ".csv":
        graphs = random_graphs.without_isolated(graphs)
        random_graphs.write_edge_list(path, graphs, ",", "\r\n")
    elif path.suffix == ".mtx":
        random_graphs.write_matrix_market(path, graphs)
    elif path.suffix == ".npz":
        random_graphs.write_scipy(path, graphs)
    else:
        source = path.with_suffix(".mtx")
        random_graphs.write_matrix_market(source, graphs)
        plait.ok("convert", source, path)
    return graphs


def save_features(path, vertices, width, seed, integer):
    rng, shape = np.random.default_rng(seed), (vertices, width)
    x = rng.integers(-8, 9, shape) if integer else rng.standard_normal(shape)
    np.save(path, x.astype(np.float32))
    return x.astype(np.float32).astype(np.float64)


def check_blocks(graphs, x, y, op="sum", transposed=False, exact=True):
    """Checks each graph by itself: equal, or within 1e-5 of the sum of the terms' absolute values."""
    error = np.abs(y - graphs.matrix(op, transposed) @ x)
    scale = graphs.matrix(op, transposed, absolute=True) @ np.abs(x)
    for number, block in enumerate(graphs.blocks):
        limit = 0 if exact else 1e-5 * scale[block]
        assert (error[block] <= limit).all(), f"graph {number} of {len(block)} vertices"


@pytest.mark.parametrize("ranks,scheme", CASES)
def test_random_graphs(plait, tmp_path, ranks, scheme):
    number = CASES.index((ranks, scheme))
    op, transposed = OPS[number % 3], number // 3 % 2 == 1
    integer = op != "mean" and number % 4 < 2
    graphs = random_graphs.random_graphs(
        number, GRAPHS_A_CASE, weights="integer" if integer else [None, "float"][op == "weighted"],
        shuffled=number % 2 == 0)
    path = tmp_path / ("graphs" + FORMATS[(ranks + number) % 4])
    graphs = save_graphs(plait, path, graphs)
    x = save_features(tmp_path / "x.npy", graphs.vertices, WIDTHS[number], number, integer)
    results = []
    for strategy in STRATEGIES:
        plait.ok("aggregate", path, "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy",
                 "--op", op, "--strategy", strategy, "--partition", scheme, "--ranks", ranks,
                 *["--transposed"] * transposed)
        results.append(np.load(tmp_path / "y.npy"))
    assert results[0].dtype == np.float32 and results[0].shape == x.shape
    check_blocks(graphs, x, results[0], op, transposed, exact=integer)
    for y in results[1:]:
        assert y.tobytes() == results[0].tobytes(), "strategies differ"


@pytest.mark.parametrize("op,reduce", [("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("ranks", [1, 3])
def test_extrema(plait, tmp_path, op, reduce, ranks):
    """Rows have several edges, one or none; NumPy and every strategy give the same bits."""
    graphs = random_graphs.random_graphs(5, 8)
    random_graphs.write_matrix_market(tmp_path / "g.mtx", graphs)
    x = save_features(tmp_path / "x.npy", graphs.vertices, 7, 3, integer=False)
    wanted = np.zeros_like(x)
    for row in range(graphs.vertices):
        if (neighbours := graphs.column[graphs.row == row]).size:
            wanted[row] = reduce.reduce(x[neighbours])
    assert (wanted == 0).all(1).any() and (wanted != 0).any()
    for strategy in STRATEGIES:
        plait.ok("aggregate", tmp_path / "g.mtx", "--features", tmp_path / "x.npy", "--out",
                 tmp_path / "y.npy", "--op", op, "--ranks", ranks, "--strategy", strategy,
                 "--partition", "hash")
        assert (np.load(tmp_path / "y.npy") == wanted).all()


def test_extrema_have_no_transpose(plait, tmp_path):
    plait.fails(USAGE, "aggregate", "g.mtx", "--features", "x.npy", "--out", "y.npy", "--op", "min",
                "--transposed", names=["--transposed goes with sum, mean and weighted"])


@pytest.mark.parametrize("number,scheme", list(enumerate(SCHEMES)))
@pytest.mark.parametrize("vertices", [1, 3])
def test_fewer_vertices_than_ranks(plait, tmp_path, vertices, number, scheme):
    """A ring with a loop on vertex 0; most ranks own nothing."""
    column = np.append((np.arange(vertices) + 1) % vertices, 0)
    graphs = random_graphs.Graphs(vertices, np.append(np.arange(vertices), 0), column, None,
                                  [np.arange(vertices)])
    random_graphs.write_scipy(tmp_path / "ring.npz", graphs)
    x = save_features(tmp_path / "x.npy", vertices, 5, number, integer=True)
    plait.ok("aggregate", tmp_path / "ring.npz", "--features", tmp_path / "x.npy", "--out",
             tmp_path / "y.npy", "--ranks", 4, "--partition", scheme, "--strategy",
             STRATEGIES[(number + vertices) % 3])
    check_blocks(graphs, x, np.load(tmp_path / "y.npy"))


def test_no_edges(plait, tmp_path):
    """Only isolated vertices: y is 0, also the mean."""
    graphs = random_graphs.Graphs(5, *np.zeros((2, 0), int), None, [np.arange(5)])
    random_graphs.write_matrix_market(tmp_path / "none.mtx", graphs)
    save_features(tmp_path / "x.npy", 5, 3, 0, integer=False)
    for ranks in (1, 2):
        plait.ok("aggregate", tmp_path / "none.mtx", "--features", tmp_path / "x.npy", "--out",
                 tmp_path / "y.npy", "--op", "mean", "--ranks", ranks)
        assert not np.load(tmp_path / "y.npy").any()


def test_symmetric_matrix_market_is_mirrored(plait, tmp_path):
    lower = {(2, 1): 4.0, (3, 3): 5.0, (3, 1): -1.5}
    lines = ["%%MatrixMarket matrix coordinate real symmetric", "3 3 3"]
    lines += [f"{i} {j} {w}" for (i, j), w in lower.items()]
    (tmp_path / "g.mtx").write_text("\n".join(lines))  # the last line does not end
    dense = np.zeros((3, 3))
    for (i, j), w in lower.items():
        dense[i - 1, j - 1] = dense[j - 1, i - 1] = w
    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.float32))
    plait.ok("aggregate", tmp_path / "g.mtx", "--features", tmp_path / "x.npy", "--out",
             tmp_path / "y.npy", "--op", "weighted")
    assert (np.load(tmp_path / "y.npy") == dense).all()


def test_a_weighted_sum_needs_weights(plait, tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    save_features(tmp_path / "x.npy", 3, 2, 0, integer=False)
    plait.fails(USAGE, "aggregate", tmp_path / "g.txt", "--features", tmp_path / "x.npy", "--out",
                tmp_path / "y.npy", "--op", "weighted", "--ranks", 2, names=["no edge weights; use --op sum"])


@pytest.mark.parametrize("form", ["double", "fortran", "vector"])
def test_forms_of_features(plait, tmp_path, form):
    graphs = random_graphs.random_graphs(77, 3)
    random_graphs.write_scipy(tmp_path / "g.npz", graphs)
    x = np.random.default_rng(1).integers(-8, 9, (graphs.vertices, 4)).astype(np.float64)
    if form == "vector":
        x = x[:, 0]
    np.save(tmp_path / "x.npy", np.asfortranarray(x, np.float32) if form == "fortran" else x)
    plait.ok("aggregate", tmp_path / "g.npz", "--features", tmp_path / "x.npy", "--out",
             tmp_path / "y.npy", "--ranks", 2)
    wanted = graphs.matrix("sum") @ x
    assert (np.load(tmp_path / "y.npy") == wanted.reshape(len(wanted), -1)).all()


@pytest.mark.parametrize("scheme", ["edges", "hash"])
def test_bytes_fetched(plait, tmp_path, scheme):
    """Rank 0 fetches each row of its halo once; `get` reads one row per remote edge; `replicate` all."""
    graphs = random_graphs.random_graphs(5, 10, shuffled=True)
    random_graphs.write_scipy(tmp_path / "g.npz", graphs)
    width = 6
    save_features(tmp_path / "x.npy", graphs.vertices, width, 5, integer=False)
    part = plait.json("partition", tmp_path / "g.npz", "--partition", scheme, "--ranks", 3,
                      "--dim", width)["schemes"][0]["ranks"][0]
    rows = {"bulk": part["halo_rows"], "get": part["remote_edges"],
            "replicate": graphs.vertices - part["vertices"]}
    for strategy, count in rows.items():
        result = plait.json("aggregate", tmp_path / "g.npz", "--features", tmp_path / "x.npy",
                            "--out", tmp_path / "y.npy", "--ranks", 3, "--partition", scheme,
                            "--strategy", strategy)
        assert result["bytes_fetched"] == count * 8 * 4, strategy  # padded to 16 bytes
        assert (result["ranks"], result["strategy"], result["schema"]) == (3, strategy, 1)
        assert (result["rows"], result["width"]) == (graphs.vertices, width)


@pytest.mark.parametrize("option", ["--op", "--strategy", "--partition"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_unknown_choice(plait, tmp_path, option, ranks):
    graphs = random_graphs.random_graphs(5, 1)
    random_graphs.write_scipy(tmp_path / "g.npz", graphs)
    save_features(tmp_path / "x.npy", graphs.vertices, 2, 5, integer=False)
    plait.fails(USAGE, "aggregate", tmp_path / "g.npz", "--features", tmp_path / "x.npy", "--out",
                tmp_path / "y.npy", option, "sideways", "--ranks", ranks, names=["'sideways'"])


def test_text_output(plait, tmp_path):
    graphs = random_graphs.random_graphs(6, 1)
    random_graphs.write_scipy(tmp_path / "g.npz", graphs)
    save_features(tmp_path / "x.npy", graphs.vertices, 2, 5, integer=False)
    out = plait.ok("aggregate", tmp_path / "g.npz", "--features", tmp_path / "x.npy", "--out",
                   tmp_path / "y.npy", "--ranks", 2).out
    assert len(out.splitlines()) == 1 and set(out) <= set(string.printable)
    assert f"{tmp_path / 'y.npy'}: {graphs.vertices} x 2" in out
    assert set(program.contents(tmp_path)) == {tmp_path / n for n in ("g.npz", "x.npy", "y.npy")}

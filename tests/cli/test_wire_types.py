"""--wire bf16: rows that cross between ranks are rounded to bfloat16, and no other number is."""

import numpy as np
import pytest

import program
from program import USAGE

NODES = 61
RANKS = (2, 3)
# Ties, numbers beyond bfloat16's largest and below its least, and numbers that it has.
SPECIAL = np.array([1.00390625, 1.01171875, 3.4028235e38, -float.fromhex("0x1.ffp127"), float.fromhex("0x1.fefffep127"),
                    1e-40, 4e-41, 1e-45, -0.0, 0.3], np.float32)


def rounded(x):
    """Returns the nearest numbers with 8 bits, ties to even, by arithmetic in double precision."""
    x = x.astype(np.float64)
    _, exponent = np.frexp(x)
    unit = np.ldexp(1.0, np.maximum(exponent, -125) - 8)
    with np.errstate(invalid="ignore"):
        near = np.where(np.isfinite(x), np.rint(x / unit) * unit, x)
    return np.where(np.abs(near) >= 2.0**128, np.copysign(np.inf, near), near)


def owners_by_vertices(ranks):
    """Returns the rank of each vertex by --partition vertices."""
    starts = np.arange(ranks + 1) * NODES // ranks
    return np.searchsorted(starts, np.arange(NODES), "right") - 1


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """Random edges (source, target), as a file of NumPy; every vertex is named."""
    rng = np.random.default_rng(5)
    index = np.concatenate([rng.integers(0, NODES, (2, 500)), np.tile(np.arange(NODES), (2, 1))], 1).astype(np.int64)
    weight = rng.random(index.shape[1], dtype=np.float32) + 0.5
    path = tmp_path_factory.mktemp("wire") / "g.npz"
    np.savez(path, edge_index=index, edge_weight=weight)
    return path, index, weight


def check_sums(y, x, edges, owner, op, transposed):
    """Each row of y is the sum of its neighbours' rows, those of other ranks rounded."""
    _, index, weight = edges
    source, target = index[::-1] if transposed else index
    factor = weight.astype(np.float64) if op == "weighted" else np.ones(len(weight))
    count = np.bincount(index[1], minlength=NODES)
    if op == "mean" and transposed:
        x = (x / count[:, None].astype(np.float32)).astype(np.float32)
    crosses = owner[source] != owner[target]
    rows = np.where(crosses[:, None], rounded(x[source]), x[source].astype(np.float64)) * factor[:, None]
    wanted, bound = np.zeros(x.shape), np.zeros(x.shape)
    np.add.at(wanted, target, rows)
    np.add.at(bound, target, np.abs(rows))
    divided = count[:, None] if op == "mean" and not transposed else 1
    assert (np.abs(y - wanted / divided) <= 1e-6 * bound / divided).all(), op


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("width,op,transposed", [(1, "sum", False), (3, "weighted", True), (17, "mean", False),
                                                 (17, "mean", True)])
def test_remote_rows_are_rounded(plait, tmp_path, edges, ranks, width, op, transposed):
    x = np.random.default_rng(width).standard_normal((NODES, width), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    run = ("aggregate", edges[0], "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy", "--op", op,
           "--partition", "vertices", "--ranks", ranks, *["--transposed"] * transposed)
    made = []
    for strategy in ("bulk", "replicate"):
        assert plait.json(*run, "--wire", "bf16", "--strategy", strategy)["wire"] == "bf16"
        made.append(np.load(tmp_path / "y.npy"))
        check_sums(made[-1], x, edges, owners_by_vertices(ranks), op, transposed)
    assert made[0].tobytes() == made[1].tobytes()
    assert plait.json(*run)["wire"] == "fp32"
    assert 1e-4 < np.abs(np.load(tmp_path / "y.npy") - made[0]).max() < 1
    assert "bf16 on the wire" in plait.ok(*run, "--wire", "bf16").out


def test_numbers_without_neighbours(plait, tmp_path):
    """Each vertex reads one other, so that its result is what crossed, bit by bit."""
    ends = np.arange(NODES)
    np.savez(tmp_path / "g.npz", edge_index=np.stack([ends, (ends + 20) % NODES]))
    x = SPECIAL[(ends[:, None] + np.arange(3)) % len(SPECIAL)]
    np.save(tmp_path / "x.npy", x)
    plait.ok("aggregate", tmp_path / "g.npz", "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy",
             "--partition", "vertices", "--ranks", 3, "--wire", "bf16")
    owner, source = owners_by_vertices(3), (ends - 20) % NODES
    wanted = np.where((owner[source] != owner)[:, None], rounded(x[source]), x[source]).astype(np.float32)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


def test_training_and_inference(plait, tmp_path, communities):
    """Losses are near those of fp32 and not the same; a resumed run goes on with them, by either type of rows."""
    whole, part = tmp_path / "w.safetensors", tmp_path / "p.safetensors"
    run = ("train", communities, "--ranks", 2, "--epochs", 20)
    plain = plait.json(*run)
    narrow = plait.json(*run, "--wire", "bf16", "--checkpoint", whole)
    assert (plain["wire"], narrow["wire"]) == ("fp32", "bf16")
    assert narrow["loss"] != plain["loss"]
    np.testing.assert_allclose(narrow["loss"], plain["loss"], rtol=0.02)
    assert {t["strategy"] for t in narrow["trials"]} <= {"bulk", "replicate"}
    plait.ok("train", communities, "--ranks", 2, "--epochs", 8, "--wire", "bf16", "--checkpoint", part)
    assert plait.json(*run, "--wire", "bf16", "--resume", part)["loss"] == narrow["loss"]
    np.testing.assert_allclose(plait.json(*run, "--resume", part)["loss"], narrow["loss"], rtol=0.02)
    infer = ("infer", communities, "--checkpoint", whole, "--out", tmp_path / "s.npy")
    scores = []
    for options in (("--ranks", 2), ("--ranks", 2, "--wire", "bf16"), ("--ranks", 3, "--wire", "bf16")):
        assert plait.json(*infer, *options)["wire"] == ("bf16" if "--wire" in options else "fp32")
        scores.append(np.load(tmp_path / "s.npy"))
    for other in scores[1:]:
        assert 0 < np.abs(other - scores[0]).max() < 0.02 * np.abs(scores[0]).max()


def test_measured_times_are_of_fp32(plait, tmp_path, communities):
    """Times that plait tune measured choose nothing for rows of another type, and trials of such rows choose nothing
    for fp32."""
    env = program.environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    plait.ok("tune", communities, "--ranks", 2, "--widths", 16, "--repetitions", 1, "--quiet", env=env)
    told = plait("train", communities, "--ranks", 2, "--epochs", 1, "--wire", "bf16", "--explain", env=env)
    assert told.code == 0 and "plait tune measures no rows that cross as less than fp32" in told.err


REFUSED = [
    (("train", "GRAPH"), ["bf16", "one rank"]),
    (("train", "GRAPH", "--ranks", 2, "--model", "gat"), ["attention", "fp32 on the wire"]),
    (("train", "GRAPH", "--ranks", 2, "--model", "sage", "--aggregation", "max"), ["maxima", "fp32 on the wire"]),
    (("train", "GRAPH", "--ranks", 2, "--model", "mlp"), ["mlp", "moves no rows"]),
    (("train", "GRAPH", "--ranks", 2, "--sampled"), ["--wire does nothing in this run", "without --sampled"]),
    (("train", "GRAPH", "--ranks", 2, "--exact"), ["bf16", "exact"]),
    (("train", "GRAPH", "--ranks", 2, "--strategy", "get"), ["strategy get", "bulk"]),
    (("infer", "GRAPH", "--checkpoint", "CHECKPOINT", "--out", "OUT"), ["bf16", "one rank"]),
    (("infer", "GRAPH", "--checkpoint", "CHECKPOINT", "--out", "OUT", "--ranks", 2), ["attention"]),
    (("infer", "GRAPH", "--checkpoint", "CHECKPOINT", "--out", "OUT", "--memory-limit", "1G"), ["--wire"]),
    (("aggregate", "GRAPH", "--features", "X", "--out", "OUT"), ["bf16", "one rank"]),
    (("aggregate", "GRAPH", "--features", "X", "--out", "OUT", "--ranks", 2, "--op", "max"), ["maxima"]),
    (("aggregate", "GRAPH", "--features", "X", "--out", "OUT", "--ranks", 2, "--strategy", "get"), ["strategy get"]),
    (("plan", "GRAPH", "--width", 16), ["bf16", "one rank"]),
    (("plan", "GRAPH", "--width", 16, "--ranks", 2, "--train", "--model", "gat"), ["attention"]),
    (("plan", "GRAPH", "--store", "--ranks", 2), ["--wire"]),
    (("bench", "aggregate", "GRAPH", "--ranks", 1), ["bf16", "one rank"]),
]


@pytest.fixture(scope="module")
def attention(communities, tmp_path_factory):
    path = tmp_path_factory.mktemp("attention") / "c.safetensors"
    program.Plait(path.parent).ok("train", communities, "--model", "gat", "--epochs", 1, "--checkpoint", path)
    return path


@pytest.mark.parametrize("arguments,names", REFUSED)
def test_refused_where_nothing_crosses_so(plait, tmp_path, communities, attention, arguments, names):
    np.save(tmp_path / "x.npy", np.ones((600, 2), np.float32))
    files = {"GRAPH": communities, "CHECKPOINT": attention, "X": tmp_path / "x.npy", "OUT": tmp_path / "out.npy"}
    plait.fails(USAGE, *(files.get(a, a) for a in arguments), "--wire", "bf16", names=names)


def test_unknown_types(plait, communities):
    plait.fails(USAGE, "train", communities, "--wire", "fp8", names=["fp8", "fp32 or bf16"])

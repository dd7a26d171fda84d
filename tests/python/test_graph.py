"""plait.Graph: accepted and refused edges, files, and the times when the C++ graph is made anew."""

import gc
import os
import pathlib
import subprocess

import networkx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

import graph_cases
import plait
import plait._edges.adjacency
from edges import assert_close, random_edges
from plait._files import file_errors
from ranks import HERE, Ranks

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
INDEX = torch.tensor([[0, 1, 2], [1, 2, 0]])


def test_counts():
    graph = plait.Graph(INDEX)
    assert (graph.num_nodes, graph.num_edges, graph.is_weighted) == (3, 3, False)
    assert plait.Graph(INDEX, 9).num_nodes == 9
    assert plait.Graph(torch.empty(2, 0, dtype=torch.long)).num_nodes == 0
    assert repr(plait.Graph(INDEX, 5, torch.ones(3))) == "Graph(5 nodes, 3 edges, weighted)"


def test_statistics_are_counts_over_edges():
    edges = torch.randint(0, 40, (2, 200), generator=torch.Generator().manual_seed(3))
    graph, stats = plait.Graph(edges, 40), plait.Graph(edges, 40).stats()
    degrees = np.sort(np.bincount(edges[1].numpy(), minlength=40))
    assert stats["mean_degree"] == graph.num_edges / 40
    assert stats["median_degree"] == degrees[19] and stats["largest_degree"] == degrees[-1]
    assert stats["percentile_99_degree"] == degrees[-1] and stats["isolated"] == (degrees == 0).sum()
    assert stats["top_percent_share"] == pytest.approx(degrees[-1] / graph.num_edges)
    assert stats["averaged_edge_span"] == pytest.approx(
        (edges[0] - edges[1]).abs().double().mean().item())
    assert set(stats) - set(plait.Graph(edges, 40).stats(communities=False)) == {
        "scattered", "communities", "largest_community", "inner_edges", "modularity"}


def test_communities_that_are_cliques():
    """Two cliques of 20 nodes, joined by one edge; networkx knows the modularity of these parts."""
    joined = networkx.barbell_graph(20, 0)
    pairs = torch.tensor(list(joined.edges)).t()
    stats = plait.Graph(torch.cat([pairs, pairs.flip(0)], 1), 40).stats()
    parts = [range(20), range(20, 40)]
    assert (stats["communities"], stats["largest_community"]) == (2, 20)
    assert stats["modularity"] == pytest.approx(networkx.community.modularity(joined, parts))
    assert stats["inner_edges"] == 380 / 381


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("change", [
    lambda index: index, lambda index: index.t().contiguous().t(), lambda index: index[:, ::2]])
def test_any_integers_in_any_layout(dtype, change):
    edges = random_edges(13)
    x = torch.randn(edges.num_nodes, 3)
    graph = plait.Graph(change(edges.index.to(dtype)), edges.num_nodes)
    edges.index = change(edges.index)
    assert_close(plait.aggregate(graph, x), edges.matrix("sum") @ x.double().numpy())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_rows_of_ids_of_any_integers(dtype):
    """PyTorch itself takes uint8 as a mask."""
    rows, ids = torch.arange(12.).view(3, 4), torch.tensor([[1, 2], [1, 0]])
    assert torch.equal(plait.gather(rows, ids.to(dtype), plait.Graph(INDEX, 3)), rows[ids])


@pytest.mark.parametrize("name,method", [("tensor", plait.Graph.own), ("rows", plait.Graph.gather)])
@pytest.mark.parametrize("value", [None, 3, [1.0, 2.0, 3.0]])
def test_rows_that_are_no_tensor(name, method, value):
    with pytest.raises(TypeError, match=f"^{name} is a {type(value).__name__}, not a tensor; give one with a row "):
        method(plait.Graph(INDEX), value)


def test_rows_of_numpy():
    rows = np.arange(6.0).reshape(3, 2)
    for method in (plait.Graph.own, plait.Graph.gather):
        assert torch.equal(method(plait.Graph(INDEX), rows), torch.from_numpy(rows))


@pytest.mark.parametrize("index,options,words", [
    (INDEX.float(), {}, "edge_index holds Float; use integers"),
    (INDEX.bool(), {}, "edge_index holds Bool"),
    (INDEX.to(torch.complex64), {}, "edge_index holds ComplexFloat"),
    (INDEX.t(), {}, "edge_index has shape (3, 2), but must have (2, edges)"),
    (INDEX[0], {}, "shape (3)"),
    (INDEX[None], {}, "shape (1, 2, 3)"),
    (INDEX.to("meta"), {"num_nodes": 3}, "edge_index is on meta"),
    (INDEX.to_sparse(), {}, "edge_index is a sparse tensor"),
    (INDEX, {"num_nodes": 2},
     "edge_index[0, 2] is 2, outside 0..1; correct it, or raise num_nodes to 3"),
    (INDEX - 1, {}, "edge_index[0, 0] is -1, outside 0..1; correct it"),
    (torch.tensor([[0, 1], [-(2**63), 0]]), {}, "edge_index[1, 0] is -9223372036854775808"),
    (torch.tensor([[0, 2**63 - 1], [0, 0]]), {"num_nodes": 2}, "is 9223372036854775807, outside"),
    (torch.tensor([[0, 2**63 - 1], [0, 0]]), {}, "edge_index has the id 9223372036854775807, which is too large"),
    (INDEX, {"num_nodes": 0}, "edge_index[0, 0] is 0, an id where there are no nodes"),
    (INDEX, {"num_nodes": -1}, "num_nodes is -1"),
    (INDEX, {"edge_weight": torch.ones(2)},
     "edge_weight has shape (2), but edge_index has 3 edges"),
    (INDEX, {"edge_weight": torch.ones(3, 1)}, "edge_weight has shape (3, 1)"),
    (INDEX, {"edge_weight": torch.ones(3).double()}, "edge_weight holds Double; only float32"),
    (INDEX, {"edge_weight": torch.ones(3, dtype=torch.long)}, "edge_weight holds Long"),
    (INDEX, {"edge_weight": torch.tensor([1, float("nan"), 2])}, "edge_weight[1] is nan"),
    (INDEX, {"edge_weight": torch.tensor([1, 2, float("inf")])}, "edge_weight[2] is inf"),
    (INDEX, {"edge_weight": torch.ones(3, device="meta")}, "edge_weight is on meta"),
])
def test_wrong_edges(index, options, words):
    with pytest.raises(ValueError) as error:
        plait.Graph(index, **options)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_wrong_types():
    with pytest.raises(TypeError, match="edge_index is a list"):
        plait.Graph([[0], [1]])
    with pytest.raises(TypeError, match="edge_weight is a list"):
        plait.Graph(INDEX, None, [1, 1, 1])
    with pytest.raises(TypeError, match="num_nodes is 3.5, not a whole number"):
        plait.Graph(INDEX, 3.5)
    with pytest.raises(ValueError, match=f"num_nodes is {2**70}, which is beyond 64 bits"):
        plait.Graph(INDEX, 2**70)


# Calls with a whole number, and numbers that are none or too large for them.
WHOLE = {
    "num_nodes": lambda n, path: plait.Graph(INDEX, n),
    "vertices": lambda n, path: plait.Graph.load(path, vertices=n),
    "walk_length": lambda n, path: plait.random_walk(INDEX, torch.tensor([0]), n),
    "num_walks": lambda n, path: plait.RandomWalks(INDEX).neighbors(torch.tensor([0]), 2, n),
    "num_nodes of pairs": lambda n, path: plait.NonEdges(INDEX, n),
    "count": lambda n, path: plait.NonEdges(INDEX, 4).sample(n),
    "ranks": lambda n, path: plait.advise(torch.nn.Linear(2, 2), plait.Graph(INDEX), ranks=n),
    "rank": lambda n, path: plait.init(rank=n, world_size=2, address="127.0.0.1:1"),
    "num_embeddings": lambda n, path: plait.nn.EmbeddingBag(n, 4),
    "samples": lambda n, path: plait.nn.EmbeddingBags([4, 5], 4, samples=n),
    "hidden": lambda n, path: plait.nn.ModelConfig("gcn", 2, 2, hidden=n),
}


@pytest.mark.parametrize("call", WHOLE)
@pytest.mark.parametrize("number", [-1, 2**63, 2**70, -(2**70), True, 2.5, "3", np.int64(-1), np.uint64(2**63)], ids=repr)
def test_numbers_that_are_not_whole_or_out_of_range(call, number, tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    with pytest.raises((TypeError, ValueError)) as error:
        WHOLE[call](number, tmp_path / "g.txt")
    assert "\n" not in str(error.value) and "Declaration" not in str(error.value)


def test_numbers_of_numpy(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    for number in (np.int32(7), np.int64(7), np.uint8(7)):
        assert plait.Graph(INDEX, number).num_nodes == plait.Graph.load(tmp_path / "g.txt", vertices=number).num_nodes == 7
    assert plait.nn.EmbeddingBag(np.int64(7), np.int64(2), padding_idx=np.int64(-1)).padding_idx == 6


@pytest.mark.parametrize("name", ["partition", "strategy", "reorder", "wire"])
def test_words_that_are_none(name):
    with pytest.raises(TypeError, match=f"{name} is 5, not a text"):
        plait.Graph(INDEX, **{name: 5})


def test_a_first_line_that_is_no_word(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n")
    with pytest.raises(TypeError, match="first_line is 1, not a text"):
        plait.Graph.load(tmp_path / "g.txt", first_line=1)


@pytest.mark.parametrize("check", graph_cases.CHECKS)
def test_failures_and_copies(check):
    check()


def test_failures_and_copies_on_two_ranks():
    Ranks(2, HERE / "graph_cases.py").succeed()


@pytest.mark.parametrize("nodes", [2**50, 2**61, 2**62])
def test_more_nodes_than_memory(nodes):
    graph = plait.Graph(INDEX, nodes)  # an id range costs nothing until the graph is made
    with pytest.raises(RuntimeError, match="free") as error:
        graph.adjacency()
    assert "\n" not in str(error.value)


def test_first_wrong_edge_of_many():
    index = torch.zeros(2, 3_000_000, dtype=torch.long)
    index[1, 2_000_000:] = 7
    with pytest.raises(ValueError, match=r"edge_index\[1, 2000000\] is 7, outside 0..4"):
        plait.Graph(index, 5)


def test_moves_with_all_its_tensors():
    graph = plait.Graph(INDEX, 3, torch.ones(3))
    graph.x, graph.train_mask = torch.ones(3, 2), torch.ones(3, dtype=torch.bool)
    assert graph.to("meta") is graph
    moved = (graph.edge_index, graph.edge_weight, graph.x, graph.train_mask)
    assert all(t.device.type == "meta" for t in moved) and graph.y is None


def test_device():
    """The first GPU of a process that was started by itself, or the CPU."""
    there = torch.cuda.is_available()
    assert plait.device() == (torch.device("cuda", 0) if there else torch.device("cpu"))


# --- when the C++ graph is made ---


@pytest.fixture
def made(monkeypatch):
    """Returns the list of all C++ objects that are made, one entry for each."""
    calls = []
    make = plait._edges.adjacency._make

    def counted(*arguments):
        calls.append(arguments[1:])
        return make(*arguments)

    monkeypatch.setattr(plait._edges.adjacency, "_make", counted)
    return calls


def test_made_once_for_all_layers(made):
    index, x = INDEX.clone(), torch.randn(3, 4)
    for _ in range(3):
        for conv in (plait.nn.GCNConv(4, 4), plait.nn.GCNConv(4, 2)):
            conv(x, index)
    assert len(made) == 1
    graph = plait.Graph(index)
    plait.nn.GCNConv(4, 4)(x, graph)
    assert len(made) == 1
    plait.aggregate(graph, x)  # without loops
    plait.aggregate(graph, x, "mean")
    assert len(made) == 2


def test_made_anew_when_tensors_change(made):
    index, weight, x = INDEX.clone(), torch.ones(3), torch.eye(3)
    conv = plait.nn.GCNConv(3, 3, normalize=False, bias=False)
    torch.nn.init.eye_(conv.lin.weight)

    def dense():
        a = torch.zeros(3, 3)
        a[index[1], index[0]] = weight
        return a

    def check(times):
        for _ in range(2):
            assert torch.equal(conv(x, index, weight), dense())
        assert len(made) == times

    check(1)
    weight[1] = 5
    check(2)
    index[0, 0] = 2
    check(3)
    weight = weight * 2  # another tensor
    check(4)
    index.data = INDEX.clone()
    check(5)
    other = torch.full((3,), 3.0)
    for w in (weight, other, weight, other):  # in turns
        conv(x, index, w)
    assert len(made) == 6


def test_forgotten_with_the_tensors():
    gc.collect()
    before = len(plait._edges.adjacency._made)
    index = INDEX.clone()
    conv = plait.nn.GCNConv(3, 1, normalize=False, bias=False)
    torch.nn.init.ones_(conv.lin.weight)
    for _ in range(50):  # a new weight may stand where an earlier one stood
        weight = torch.rand(3)
        assert torch.equal(conv(torch.ones(3, 3), index, weight)[INDEX[1], 0], weight * 3)
        del weight
    entries = plait._edges.adjacency._made[index].entries
    assert len(entries) <= 2  # weights that are gone leave nothing behind
    assert len(plait._edges.adjacency._made) == before + 1
    del index, entries
    gc.collect()
    assert len(plait._edges.adjacency._made) == before


def test_inference_tensors_are_not_remembered(made):
    conv, x = plait.nn.GCNConv(3, 3), torch.eye(3)
    with torch.inference_mode():
        index = INDEX.clone()
        first = conv(x, index)
        index[0, 0] = 2
        assert not torch.equal(conv(x, index), first)
        assert len(made) == 2
        graph = plait.Graph(index)  # holds a copy that is
    conv(x, graph)
    conv(x, graph)
    assert len(made) == 3


# --- files ---


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_load_archive(tmp_path):
    edges = random_edges(21, weighted=True)
    n = edges.num_nodes
    random = np.random.default_rng(0)
    x = random.standard_normal((n, 5)).astype(np.float32)
    y = random.integers(-1, 4, n)
    part = random.integers(0, 4, n)
    path = npz(tmp_path / "g.npz", edge_index=edges.index.numpy(), edge_weight=edges.weight.numpy(),
               x=x, y=y, train=np.flatnonzero(part == 1), val=np.flatnonzero(part == 2),
               test=np.flatnonzero(part == 3), original_ids=np.arange(n) * 10)
    graph = plait.Graph.load(path)
    assert (graph.num_nodes, graph.num_edges) == (n, edges.index.size(1))
    assert torch.equal(graph.x, torch.from_numpy(x))
    assert torch.equal(graph.y, torch.from_numpy(y))
    for value, mask in ((1, graph.train_mask), (2, graph.val_mask), (3, graph.test_mask)):
        assert mask.dtype == torch.bool and np.array_equal(mask.numpy(), part == value)
    assert torch.equal(graph.original_ids, 10 * torch.arange(n))
    aggregated = plait.aggregate(graph, graph.x, "weighted")
    assert_close(aggregated, edges.matrix() @ x.astype(np.float64))


def test_load_says_what_it_does_not_read(tmp_path):
    path = npz(tmp_path / "g.npz", edge_index=INDEX.numpy(), pos=np.ones(3))
    with pytest.warns(UserWarning, match="arrays that are not read are left out: pos"):
        plait.Graph.load(path)
    with pytest.warns(UserWarning, match="left out: pos"):
        plait.store.load(path)


def test_load_by_options(tmp_path):
    """The number of nodes, and what lines of an edge list are."""
    path = tmp_path / "g.txt"
    path.write_text("# Undirected graph\n5 2\n0 1\n1 2\n")
    with pytest.warns(UserWarning) as told:
        graph = plait.Graph.load(path)
    assert (graph.num_nodes, graph.num_edges) == (5, 4)
    assert all(word in " ".join(str(w.message) for w in told) for word in ("'5 2' is read as", "; first_line='edge' reads", "; directed=True reads"))
    graph = plait.Graph.load(path, directed=True, first_line="skip", vertices=9)
    assert (graph.num_nodes, graph.num_edges) == (9, 2)
    for options, names in (({"vertices": 2}, "outside 0..1"), ({"vertices": 0}, "at least 1"),
                           ({"first_line": "names"}, "auto, edge, counts or skip")):
        with pytest.raises(ValueError, match=names):
            plait.Graph.load(path, **({"first_line": "skip"} | options))


MANY = "%%MatrixMarket matrix coordinate pattern general\n400000000 400000000 1\n1 2\n"


@pytest.mark.parametrize("name, text, options, remedy", [
    ("g.mtx", MANY, {}, "if the number is right, give vertices=400000000"),
    ("g.mtx", MANY, {"vertices": 3}, "400000000 vertices, where vertices says 3; leave out vertices"),
    ("g.mtx", MANY, {"first_line": "skip"}, "first_line is for edge lists as text"),
    ("g.mtx", MANY, {"directed": True}, "directed=True is for edge lists as text"),
    ("g.txt", "0 1\n", {"directed": True}, "directed=True has no effect"),
    ("g.txt", "5 9\n0 1\n", {"first_line": "counts"}, "correct it, or give first_line='skip'"),
    ("g.txt", "0 x\n", {"first_line": "counts"}, "leave out first_line"),
])
def test_refusals_name_arguments(tmp_path, name, text, options, remedy):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        plait.Graph.load(path, **options)
    assert remedy in str(refused.value) and "--" not in str(refused.value)


@pytest.mark.parametrize("text, remedy", [
    ("5 2\n0 1\n1 4\n", "; first_line='edge' reads it as an edge"),
    ("5 2\n0 1\n1 9\n", "if it holds counts, give first_line='counts' or 'skip'"),
    ("# 5 vertices, 1 edges\n0 1\n", "; vertices=5 adds the others"),
])
def test_warnings_name_arguments(tmp_path, text, remedy):
    path = tmp_path / "g.txt"
    path.write_text(text)
    with pytest.warns(UserWarning) as told:
        plait.Graph.load(path)
    assert any(str(w.message).endswith(remedy) for w in told) and not any("--" in str(w.message) for w in told)


def test_load_renumbered(tmp_path):
    """Nodes have the ids that they had before plait reorder."""
    program = os.environ.get("PLAIT_PROGRAM", CHECKOUT / "build/bin/plait")
    before, after = tmp_path / "g.plait", tmp_path / "r.plait"
    for command in (["generate", "dcsbm", "--vertices", 300, "--edges", 2000, "-o", before],
                    ["reorder", before, after, "--method", "communities"]):
        subprocess.run([program, *map(str, command)], check=True, capture_output=True, timeout=300)
    assert before.read_bytes() != after.read_bytes()
    wanted, graph = plait.Graph.load(before), plait.Graph.load(after)
    for name in ("edge_index", "x", "y", "train_mask"):
        assert torch.equal(getattr(graph, name), getattr(wanted, name)), name


def test_load_sparse_features_and_several_splits(tmp_path):
    x = scipy.sparse.random(3, 8, 0.4, "csr", np.float32, random_state=1)
    masks = {name: np.eye(3, dtype=bool)[[k, k - 1]] for k, name in
             enumerate(("train_masks", "val_masks", "test_masks"))}
    path = npz(tmp_path / "g.npz", edge_index=INDEX.numpy(), x_indptr=x.indptr, x_indices=x.indices,
               x_data=x.data, x_shape=np.array(x.shape), **masks)
    graph = plait.Graph.load(str(path))
    assert np.array_equal(graph.x.numpy(), x.toarray())
    for name, mask in masks.items():
        assert np.array_equal(getattr(graph, name[:-1]).numpy(), mask)


def test_load_without_anything_but_edges(tmp_path):
    a = scipy.sparse.csr_matrix(([1.0, 2.0], ([0, 3], [1, 2])), shape=(6, 6))
    scipy.io.mmwrite(tmp_path / "g.mtx", a)
    graph = plait.Graph.load(tmp_path / "g.mtx")
    assert (graph.num_nodes, graph.num_edges) == (6, 2)
    assert all(getattr(graph, name) is None for name in plait.Graph._FIELDS)
    assert np.array_equal(plait.aggregate(graph, torch.eye(6), "weighted").numpy(), a.toarray())


def test_errors_of_files_are_pythons(tmp_path, monkeypatch):
    """They are told by their types, each in one line that names the file."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("folder").mkdir()
    pathlib.Path("plain").write_text("x")
    pathlib.Path("loop.npz").symlink_to("loop.npz")
    model = plait.nn.Model(plait.nn.ModelConfig("gcn", 4, 2))

    def save(path):
        plait.save_checkpoint(model, path)

    for use, path, kind in (
            (plait.Graph.load, "none.npz", FileNotFoundError), (plait.Graph.load, "none.plait", FileNotFoundError),
            (plait.Graph.load, "folder", IsADirectoryError), (plait.Graph.load, "plain/g.npz", NotADirectoryError),
            (plait.Graph.load, "", FileNotFoundError), (plait.Graph.load, "loop.npz", OSError),
            (plait.Graph.load, "n" * 300, OSError), (plait.store.load, "none.plait", FileNotFoundError),
            (plait.store.load, "folder", IsADirectoryError), (plait.load_checkpoint, "none", FileNotFoundError),
            (plait.load_checkpoint, "folder", IsADirectoryError), (save, "none/c", FileNotFoundError),
            (save, "folder", IsADirectoryError), (save, "plain/c", NotADirectoryError)):
        with pytest.raises(kind) as error:
            use(path)
        assert "\n" not in str(error.value) and error.value.filename == path and error.value.errno
    with pytest.raises(PermissionError, match="cannot be written: permission denied: 'c'"):
        with file_errors("c"):
            raise RuntimeError("c: cannot be written: permission denied")
    for other in (torch.OutOfMemoryError("no memory"), RuntimeError("c: something else")):
        with pytest.raises(type(other)) as error, file_errors("c"):
            raise other
        assert error.value is other


def test_load_what_is_wrong(tmp_path):
    bad = npz(tmp_path / "bad.npz", edge_index=np.array([[0, -1], [1, 1]]))
    (tmp_path / "short.npz").write_bytes(bad.read_bytes()[:-40])
    (tmp_path / "empty.mtx").write_text("")
    for name in ("bad.npz", "short.npz", "empty.mtx"):
        with pytest.raises(ValueError) as error:
            plait.Graph.load(tmp_path / name)
        assert name in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(ValueError, match="zero byte after 'a'"):
        plait.Graph.load("a\0b")

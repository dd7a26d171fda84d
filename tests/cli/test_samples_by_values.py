"""plait train --sampled by the weights of edges, with replacement, and by times. Vertices and edges that no sample may
hold change no loss; with all neighbours, losses are those of a graph from which others have taken these edges."""

import numpy as np
import pytest

from training import check_same_curve
from valued_graph import valued_graph

SETTINGS = ("--epochs", 4, "--lr", 0.05, "--seed", 3)
COURSE = ("--hidden", 8, *SETTINGS)
SAGE = ("--model", "sage", *COURSE)
STEPS = ("--sampled", "--fanout", "3,2", "--batch", 30)


@pytest.fixture(scope="module")
def graph():
    return valued_graph()


def losses(plait, path, *options):
    return np.array(plait.json("train", path, *options)["loss"])


def other_features(graph, vertices):
    x = graph.x.copy()
    x[vertices] = 100
    return x


@pytest.mark.parametrize("model", ["sage", "gcn", "gat", "gin"])
@pytest.mark.parametrize("again", [(), ("--with-replacement",)])
def test_edges_of_weight_0_are_never_drawn(plait, graph, model, again):
    hidden = np.setdiff1d(np.arange(200), graph.train)[:60]
    weight = np.where(np.isin(graph.source, hidden), 0, graph.weight).astype(np.float32)
    paths = [graph.save(plait.folder, name, x=x, weight=weight)
             for name, x in (("a", graph.x), ("b", other_features(graph, hidden)))]
    run = ("--model", model, *COURSE, "--norm", "none", "--layers", 2, *STEPS, *again)
    a, b = (losses(plait, path, *run, "--by-weight") for path in paths)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    a, b = (losses(plait, path, *run) for path in paths)
    # GCN multiplies what it reads by the weight, and so reads nothing over these edges either way.
    assert (np.abs(a / b - 1).max() > 1e-3) == (model != "gcn")


@pytest.mark.parametrize("timed", ["vertices", "edges"])
@pytest.mark.parametrize("rule", [(), ("--latest",), ("--with-replacement",), ("--by-weight",)])
def test_nothing_later_than_an_example_is_read(plait, graph, timed, rule):
    """Some vertices, or all edges that leave them, are later than all examples."""
    late = np.setdiff1d(np.arange(200), graph.train)[:60]
    vertices, edges = graph.vertex_times.copy(), graph.edge_times.copy()
    vertices[late] = 10**15
    edges[np.isin(graph.source, late)] = 10**15
    for name, times in (("v", vertices), ("e", edges), ("x", graph.vertex_times)):
        np.save(plait.folder / f"{name}.npy", times)
    options = {"vertices": ("--vertex-times", plait.folder / "v.npy"),
               "edges": ("--edge-times", plait.folder / "e.npy", "--example-times", plait.folder / "x.npy")}[timed]
    paths = [graph.save(plait.folder, name, x=x) for name, x in (("a", graph.x), ("b", other_features(graph, late)))]
    a, b = (losses(plait, path, *SAGE, *STEPS, *options, *rule) for path in paths)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    a, b = (losses(plait, path, *SAGE, *STEPS) for path in paths)
    assert np.abs(a / b - 1).max() > 1e-3


@pytest.mark.parametrize("model", ["sage", "gin"])
@pytest.mark.parametrize("reorder", [(), ("--reorder", "degree")])
def test_all_edges_in_time_are_a_graph_without_the_others(plait, graph, model, reorder):
    """With one layer each example reads its own edges alone, so the others can be left out for all."""
    vertices, edges = graph.save_times(plait.folder)
    run = ("--model", model, *SETTINGS, "--layers", 1, *(("--norm", "none") if model == "gin" else ()))
    early = losses(plait, graph.save(plait.folder, "early", edges=~graph.later()), *run)
    timed = losses(plait, graph.save(plait.folder), *run, "--sampled", "--fanout", -1, "--batch", 500, "--vertex-times", vertices,
                   "--edge-times", edges, *reorder)
    check_same_curve(timed, early)
    assert np.abs(losses(plait, plait.folder / "g.npz", *run) / early - 1).max() > 1e-3


def test_times_of_examples_may_be_others_than_those_of_vertices(plait, graph):
    """An example that asks at the end of time reads all."""
    vertices, _ = graph.save_times(plait.folder)
    np.save(plait.folder / "end.npy", np.full(200, np.iinfo(np.int64).max))
    run = (*SAGE, "--sampled", "--fanout", -1, "--batch", 500)
    found = losses(plait, graph.save(plait.folder), *run, "--vertex-times", vertices, "--example-times", plait.folder / "end.npy")
    check_same_curve(found, losses(plait, plait.folder / "g.npz", *run))


def test_all_edges_by_weight_keep_their_weights(plait, graph):
    weight = np.where(np.arange(len(graph.weight)) % 3 == 0, 0, graph.weight).astype(np.float32)
    whole = graph.save(plait.folder, weight=weight)
    all_of = ("--sampled", "--fanout", -1, "--batch", 500, "--by-weight")
    run = ("--model", "gcn", *COURSE)
    check_same_curve(losses(plait, whole, *run, *all_of), losses(plait, whole, *run))
    others = graph.save(plait.folder, "others", edges=weight > 0)
    check_same_curve(losses(plait, whole, *SAGE, *all_of), losses(plait, others, *SAGE))


WAYS = {
    "by weight": ("--by-weight",),
    "with replacement": ("--with-replacement",),
    "both": ("--by-weight", "--with-replacement"),
    "in time": ("--vertex-times", "vertices.npy", "--edge-times", "edges.npy"),
    "in time, by weight, with replacement": ("--edge-times", "edges.npy", "--example-times", "vertices.npy", "--by-weight",
                                             "--with-replacement"),
    "the latest": ("--vertex-times", "vertices.npy", "--latest"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_curves_do_not_depend_on_ranks(plait, graph, way, model):
    """Each way has losses of its own; several steps per epoch, the last one with a part of a batch."""
    graph.save_times(plait.folder)
    values = [plait.folder / word if str(word).endswith(".npy") else word for word in WAYS[way]]
    run = (graph.save(plait.folder), "--model", model, *COURSE, "--sampled", "--fanout", "3,2")
    one = losses(plait, *run, *values, "--batch", 36)
    assert np.abs(one / losses(plait, *run, "--batch", 36) - 1).max() > 1e-3
    for ranks, partition in ((2, "edges"), (3, "hash")):
        check_same_curve(losses(plait, *run, *values, "--batch", 36 // ranks, "--ranks", ranks, "--partition", partition), one)


def test_cooperative_batches_by_weight_are_those_of_one_rank(plait, graph):
    run = (graph.save(plait.folder), "--model", "gcn", *COURSE, "--sampled", "--fanout", "3,2", "--by-weight")
    one = losses(plait, *run, "--batch", 36)
    for ranks in (2, 3):
        check_same_curve(losses(plait, *run, "--batch", 36 // ranks, "--ranks", ranks, "--cooperative"), one)


def test_checkpoints_keep_the_way(plait, graph):
    vertices, _ = graph.save_times(plait.folder)
    path, file = graph.save(plait.folder), plait.folder / "c.safetensors"
    np.save(plait.folder / "other.npy", graph.vertex_times + 1)
    run = ("train", path, "--model", "sage", "--seed", 3, *STEPS)
    timed = (*run, "--vertex-times", vertices)
    whole = plait.json(*timed, "--epochs", 4)
    assert whole["sampled"]["times"] == "uniform" and not whole["sampled"]["by_weight"]
    plait.ok(*timed, "--epochs", 2, "--checkpoint", file)
    check_same_curve(plait.json(*timed, "--epochs", 4, "--resume", file)["loss"], whole["loss"])
    for other in (run, (*timed, "--latest"), (*timed, "--by-weight"), (*timed, "--with-replacement"),
                  (*run, "--vertex-times", plait.folder / "other.npy"), (*timed, "--example-times", vertices)):
        plait.fails(1, *other, "--epochs", 4, "--resume", file, names=["steps"])


@pytest.mark.parametrize("options, words", [
    (("--by-weight",), ["--by-weight", "no edge weights"]),
    (("--edge-times", "edges.npy"), ["--example-times", "--vertex-times"]),
    (("--example-times", "vertices.npy"), ["--example-times", "--edge-times"]),
    (("--latest",), ["--latest", "--vertex-times"]),
    (("--vertex-times", "vertices.npy", "--latest", "--with-replacement"), ["--latest", "--with-replacement"]),
    (("--vertex-times", "vertices.npy", "--cooperative"), ["times", "--cooperative"]),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_settings_that_make_no_sense_are_told(plait, graph, options, words, ranks):
    graph.save_times(plait.folder)
    np.savez(plait.folder / "g.npz", edge_index=np.stack([graph.source, graph.target]), x=graph.x, y=graph.y, train=graph.train)
    options = [plait.folder / word if word.endswith(".npy") else word for word in options]
    plait.fails(2, "train", plait.folder / "g.npz", *STEPS, *options, "--ranks", ranks, names=words)


@pytest.mark.parametrize("option, times, words", [
    ("--vertex-times", np.zeros(7, np.int64), ["(7,)", "(200,)", "vertices"]),
    ("--edge-times", np.zeros(7, np.int64), ["(7,)", "edges"]),
    ("--example-times", np.zeros((200, 1), np.int64), ["(200, 1)"]),
    ("--vertex-times", np.zeros(200), ["f8", "integers"]),
    ("--vertex-times", np.full(200, 2**63, np.uint64), ["element (0)"]),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_bad_files_of_times_are_told(plait, graph, option, times, words, ranks):
    np.save(plait.folder / "t.npy", times)
    others = ("--vertex-times", graph.save_times(plait.folder)[0]) if option == "--example-times" else ()
    plait.fails(1, "train", graph.save(plait.folder), *STEPS, option, plait.folder / "t.npy", *others, "--ranks", ranks,
                names=words)


def test_weights_below_0_are_told(plait, graph):
    path = graph.save(plait.folder, weight=-graph.weight)
    plait.fails(2, "train", path, *SAGE, *STEPS, "--by-weight", names=[f"{path.stem}: ", "the weight of edge 0 is"])


@pytest.mark.parametrize("option", [("--by-weight",), ("--vertex-times", "t.npy"), ("--latest",), ("--with-replacement",)])
def test_they_are_for_samples(plait, graph, option):
    plait.fails(2, "train", graph.save(plait.folder), *option, names=[option[0], "--sampled"])

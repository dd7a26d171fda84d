"""Training, inference and aggregation of a renumbered graph give the results of the graph before, by
the numbers that vertices had then."""

import numpy as np
import pytest

from program import FAILED, Plait
from training import check_same_curve, directed_archive

MODELS = (["gcn"], ["gat", "--dropout", 0.5], ["sage", "--aggregation", "max", "--norm", "batch"],
          ["gin", "--folds", 5])


@pytest.fixture(scope="module")
def graphs(communities, tmp_path_factory):
    """The graph, and the same one renumbered."""
    folder = tmp_path_factory.mktemp("reordered")
    Plait(folder).ok("reorder", communities, folder / "r.plait", "--method", "communities")
    return communities, folder / "r.plait"


def curve(plait, graph, *options, seed=3):
    return plait.json("train", graph, "--epochs", 6, "--seed", seed, "--model", *options)["loss"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model[0])
def test_loss_curves(plait, graphs, model):
    """Dropout of features and attention, folds, ties of maxima and norms."""
    wanted = curve(plait, graphs[0], *model)
    check_same_curve(curve(plait, graphs[1], *model, "--ranks", 2), wanted)
    if model[0] == "gat":
        assert not np.allclose(curve(plait, graphs[0], *model, seed=4), wanted, rtol=1e-4)


def test_loss_curves_of_a_directed_graph(plait, tmp_path):
    directed_archive(tmp_path / "d.npz", 150)
    plait.ok("reorder", tmp_path / "d.npz", tmp_path / "r.plait", "--method", "rcm")
    for options in (["gcn", "--dropout", 0.4], ["sage", "--partition", "hash", "--ranks", 3]):
        check_same_curve(curve(plait, tmp_path / "r.plait", *options),
                         curve(plait, tmp_path / "d.npz", *options))


@pytest.mark.parametrize("options", [[], ["--ranks", 3, "--partition", "hash"], ["--op", "max"]])
def test_aggregation(plait, tmp_path, graphs, options):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.integers(-8, 8, (600, 5)).astype(np.float32))
    for name, graph in zip("ab", graphs):
        plait.ok("aggregate", graph, "--features", tmp_path / "x.npy", "--out",
                 tmp_path / f"{name}.npy", *options)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_inference_and_checkpoints(plait, tmp_path, graphs):
    """A checkpoint goes on on either graph; scores of vertices stand where they did, also by layers."""
    before, after = graphs
    full = curve(plait, before, "gcn")
    for first, then in (graphs, reversed(graphs)):
        plait.ok("train", first, "--seed", 3, "--epochs", 4, "--checkpoint", tmp_path / "c.safetensors")
        resumed = plait.json("train", then, "--seed", 3, "--epochs", 6, "--resume",
                             tmp_path / "c.safetensors", "--checkpoint", tmp_path / "d.safetensors")
        check_same_curve(resumed["loss"], full)
    results = {}
    for name, graph, options in (("a", before, []), ("b", after, []), ("c", after, ["--ranks", 2]),
                                 ("d", after, ["--ranks", 2, "--memory-limit", "1G"]),
                                 ("e", before, ["--classes"]), ("f", after, ["--classes"])):
        out = tmp_path / f"{name}.npy"
        figures = plait.json("infer", graph, "--checkpoint", tmp_path / "d.safetensors", "--out", out,
                             *options)
        results[name] = np.load(out), figures["accuracy"]
    for name in "bcd":
        np.testing.assert_allclose(results[name][0], results["a"][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(results["f"][0], results["e"][0])
    assert len({accuracy for _, accuracy in results.values()}) == 1


def test_errors_name_vertices_by_their_numbers(plait, tmp_path):
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate real general\n"
                                    "5 5 6\n1 2 1\n2 1 1\n4 1 1\n4 2 1\n4 3 1\n5 1 -9\n")
    np.save(tmp_path / "x.npy", np.ones((5, 2), np.float32))
    plait.ok("convert", tmp_path / "g.mtx", tmp_path / "x.npz", "--features", tmp_path / "x.npy")
    arrays = dict(np.load(tmp_path / "x.npz"))
    np.savez(tmp_path / "g.npz", **arrays, y=np.array([0, 1, 0, 1, 0]), train=np.arange(3),
             val=np.array([3]), test=np.array([4]))
    plait.ok("reorder", tmp_path / "g.npz", tmp_path / "r.plait", "--method", "degree")
    for graph in ("g.npz", "r.plait"):
        plait.fails(FAILED, "train", tmp_path / graph, "--model", "gcn", names=["vertex 4 has degree"])


def test_reordering_in_memory(plait, tmp_path, communities):
    """--reorder changes no result, on one rank or several."""
    np.save(tmp_path / "x.npy", np.random.default_rng(1).integers(-8, 8, (600, 3)).astype(np.float32))
    aggregate = ["aggregate", communities, "--features", tmp_path / "x.npy", "--out"]
    plait.ok(*aggregate, tmp_path / "a.npy")
    for reorder in ("auto", "communities", "degree", "rcm", "boba", "metis"):
        ranks = 1 if reorder == "degree" else 2
        plait.ok(*aggregate, tmp_path / "b.npy", "--ranks", ranks, "--reorder", reorder)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_reordering_in_memory_for_training(plait, tmp_path, communities):
    wanted = curve(plait, communities, "gat", "--dropout", 0.5)
    for options in ([], ["--ranks", 2]):
        check_same_curve(curve(plait, communities, "gat", "--dropout", 0.5, "--reorder", "boba", *options),
                         wanted)
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", communities, "--epochs", 3, "--checkpoint", checkpoint, "--reorder", "rcm")
    infer = ["infer", communities, "--checkpoint", checkpoint, "--out"]
    for name, options in (("a", []), ("b", ["--reorder", "metis", "--ranks", 2]),
                          ("c", ["--reorder", "communities", "--memory-limit", "1G"])):
        plait.ok(*infer, tmp_path / f"{name}.npy", *options)
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), np.load(tmp_path / "a.npy"),
                                   rtol=1e-4, atol=1e-5)


def test_reordering_before_figures(plait, tmp_path):
    """plait partition and plait plan see the order, and a file's own is only changed if asked for."""
    plait.ok("generate", "dcsbm", "--like", "products", "--scale", 0.005, "--no-features", "-o",
             tmp_path / "g.plait")
    plait.ok("reorder", tmp_path / "g.plait", tmp_path / "r.plait", "--method", "communities")

    def halo(graph, *options):
        return plait.json("partition", tmp_path / graph, "--ranks", 4, "--partition", "edges",
                          *options)["schemes"][0]["halo_rows"]

    def bytes_of(graph, *options):
        return plait.json("plan", tmp_path / graph, "--ranks", 4, "--dim", 64, *options)["total"]

    assert halo("r.plait") == halo("g.plait", "--reorder", "communities") < halo("g.plait")
    assert bytes_of("r.plait") == bytes_of("g.plait", "--reorder", "auto") < bytes_of("g.plait")

"""plait bench model: what it computes against PyG's models on the data that it should have made, its options,
and the graphs and strategies that it takes."""

import numpy as np
import pytest
import safetensors.numpy
import torch

import pyg_reference
from made_data import made_features, made_labels
from program import DOES_NOT_FIT, USAGE, contents, environment
from pyg_reference import Settings

MADE = ("--width", 24, "--classes", 5)
CPU = {"bulk", "get", "replicate"}
ONCE = ("--repetitions", 1)

MODELS = {
    "gcn": Settings("gcn", 16, layers=2),
    "sage": Settings("sage", 12),
    "sage by maximum": Settings("sage", 12, layers=2, aggregation="max", residual=True),
    "gin": Settings("gin", 8, layers=3, norm="batch"),
    "gat": Settings("gat", 16, layers=2, heads=4, output_heads=2, activation="elu"),
}


@pytest.fixture
def bench(plait, communities):
    """Runs with --json, on made data; with one repetition unless the options say how many."""
    def run(*options, graph=communities, made=MADE):
        once = () if "--repetitions" in options else ONCE
        return plait.json("bench", "model", graph, *made, *once, *options)
    return run


@pytest.fixture(scope="module")
def made_archive(communities_npz, tmp_path_factory):
    """The same graph with the data that should be made as its own, and all vertices in training."""
    path = tmp_path_factory.mktemp("made") / "made.npz"
    edges = np.load(communities_npz)["edge_index"]
    np.savez(path, edge_index=edges, x=made_features(600, 24), y=made_labels(600, 5, seed=3),
             train=np.arange(600))
    return path


def test_fields(bench):
    found = bench("--ranks", 2, "--training", "--repetitions", 3)
    assert [row["work"] for row in found["rows"]] == ["inference", "training"] * 3
    assert {row["strategy"] for row in found["rows"]} == CPU
    for row in found["rows"]:
        assert 0 < row["least_ms"] <= row["median_ms"] <= row["most_ms"] and row["setup_s"] > 0
        assert 0 <= row["difference"] < 1e-4 and row["bytes"] > 0
    assert (found["vertices"], found["edges"], found["ranks"], found["device"]) == (600, 6000, 2, "cpu")
    assert (found["model"], found["layers"], found["hidden"], found["dropout"]) == ("gcn", 2, 16, 0.5)
    assert found["parameters"] == 24 * 16 + 16 + 16 * 5 + 5
    assert len(found["loss"]) == 3 and found["does_not_fit"] == []


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_losses_are_those_of_pyg(plait, bench, made_archive, settings, tmp_path):
    """The first losses, and so all steps between them: forward, backward and Adam. Initial weights are those
    of plait train. A graph's own data give the same losses as made ones."""
    options = [*settings.options(), "--dropout", 0]
    weights = tmp_path / "weights.safetensors"
    plait.ok("train", made_archive, *options, "--epochs", 1, "--lr", 0, "--weight-decay", 0, "--seed", 3,
             "--checkpoint", weights)
    graph = pyg_reference.Graph(made_archive)
    model = graph.model(settings, safetensors.numpy.load_file(weights))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.reset_running_stats()
    rate = 0.005 if settings.model == "gat" else 0.01
    wanted = pyg_reference.train(graph, settings, model, epochs=3, rate=rate, decay=5e-4)
    assert abs(wanted[2] / wanted[0] - 1) > 1e-3
    for ranks in (1, 3):
        run = ("--training", "--seed", 3, "--ranks", ranks, "--partition", "hash", *options)
        for found in (bench(*run), bench(*run, graph=made_archive, made=())):
            np.testing.assert_allclose(found["loss"], wanted, rtol=1e-4)


@pytest.mark.parametrize("options,parameters", [
    (("--layers", 3), 24 * 16 + 16 + 16 * 16 + 16 + 16 * 5 + 5),
    (("--hidden", 20), 24 * 20 + 20 + 20 * 5 + 5),
    (("--residual",), 24 * 16 * 2 + 16 + 16 * 5 * 2 + 5),
    (("--norm", "layer"), 24 * 16 + 16 + 2 * 16 + 16 * 5 + 5),
    (("--width", 7), 7 * 16 + 16 + 16 * 5 + 5),
    (("--dim", 7), 7 * 16 + 16 + 16 * 5 + 5),
    (("--classes", 9), 24 * 16 + 16 + 16 * 9 + 9),
    (("--model", "sage", "--hidden", 8), 2 * 24 * 8 + 8 + 2 * 8 * 5 + 5),
    (("--model", "gat", "--hidden", 8, "--heads", 2, "--output-heads", 3),
     24 * 8 + 3 * 8 + 8 * 15 + 2 * 15 + 5),
])
def test_shape_of_the_model(bench, options, parameters):
    given = dict(zip(MADE[::2], MADE[1::2], strict=True))
    for name in ("--width", "--classes"):
        if name in options or name == "--width" and "--dim" in options:
            del given[name]
    made = [word for pair in given.items() for word in pair]
    assert bench(*options, made=made)["parameters"] == parameters


@pytest.mark.parametrize("option", [("--activation", "elu"), ("--dropout", 0), ("--seed", 4),
                                    ("--model", "sage", "--aggregation", "max"), ("--classes", 5, "--width", 25)])
def test_options_that_change_losses(bench, option):
    model = option[:2] if option[0] == "--model" else ()
    made = () if "--width" in option else MADE
    usual, other = bench("--training", *model), bench("--training", *option, made=made)
    assert abs(usual["loss"][0] / other["loss"][0] - 1) > 1e-6


def test_losses_depend_on_neither_ranks_nor_numbers(bench):
    usual = bench("--training")["loss"]
    for options in (("--ranks", 3), ("--ranks", 2, "--reorder", "degree"), ("--ranks", 4, "--partition", "hash")):
        np.testing.assert_allclose(bench("--training", *options)["loss"], usual, rtol=1e-5)


def test_bytes(bench):
    """Rows that a rank reads once each, 16 and 5 floats padded to 8, for the two layers of gcn; replicate
    brings all rows of other ranks; a step of training moves gradients as well, and rows in both directions."""
    found = bench("--ranks", 2, "--partition", "vertices", "--training")
    of = {(row["work"], row["strategy"]): row["bytes"] for row in found["rows"]}
    assert of["inference", "bulk"] < of["inference", "replicate"] == 300 * (16 + 8) * 4
    assert of["training", "bulk"] >= 2 * of["inference", "bulk"]
    other = bench("--ranks", 2, "--partition", "clusters", "--strategies", "bulk")
    assert other["partition"] == "clusters" and other["rows"][0]["bytes"] != of["inference", "bulk"]
    renumbered = bench("--ranks", 2, "--partition", "vertices", "--strategies", "bulk", "--reorder", "communities")
    assert renumbered["rows"][0]["bytes"] < of["inference", "bulk"]


def test_strategies_and_repetitions(bench):
    found = bench("--ranks", 2, "--strategies", "replicate,auto,replicate")
    assert [row["strategy"] for row in found["rows"]] == ["replicate", "bulk", "replicate"]
    assert all(row["least_ms"] == row["most_ms"] for row in found["rows"])  # one repetition
    assert found["rows"][0]["difference"] == 0 and found["loss"] == []
    assert [row["strategy"] for row in bench()["rows"]] == ["bulk"]  # one rank moves nothing
    many = bench("--repetitions", 9)["rows"][0]
    assert many["least_ms"] < many["most_ms"]


def test_own_data_and_standard_data(plait, communities, tmp_path):
    """Of what a graph lacks, and what the options say, data are made; its file stays as it is."""
    ring = tmp_path / "ring.plait"
    plait.ok("generate", "ring", "-o", ring)
    before = contents(tmp_path) | contents(communities.parent)
    cases = {
        (communities, ()): (32, False, 7, False),
        (communities, ("--width", 9)): (9, True, 7, False),
        (communities, ("--classes", 3)): (32, False, 3, True),
        (ring, ()): (64, True, 16, True),
        (ring, ("--width", 5, "--classes", 2)): (5, True, 2, True),
    }
    for (graph, options), wanted in cases.items():
        found = plait.json("bench", "model", graph, *options, *ONCE)
        fields = ("width", "features_made", "classes", "labels_made")
        assert tuple(found[field] for field in fields) == wanted
    text = plait.ok("bench", "model", ring, "--ranks", 2, "--training", *ONCE).out
    assert "64 features (made), 16 classes (made)" in text and "2 ranks" in text
    assert text.count("inference") == text.count("training") == 3
    text = plait.ok("bench", "model", communities, *ONCE).out
    assert "32 features (of the graph), 7 classes (of the graph)" in text
    assert contents(tmp_path) | contents(communities.parent) == before


def test_sets_of_graphs_and_label_sets(plait, tmp_path):
    """Their own labels are of graphs, or several per vertex; made ones are one per vertex."""
    rng = np.random.default_rng(5)
    edges = np.concatenate([rng.integers(0, 20, (2, 60)) + 20 * g for g in range(4)], axis=1)
    x = rng.random((80, 6), dtype=np.float32)
    path = tmp_path / "set.npz"
    np.savez(path, edge_index=edges, x=x, graph_id=np.repeat(np.arange(4), 20), y=np.arange(4) % 2)
    run = ("bench", "model", path, "--model", "gin", "--hidden", 4, "--layers", 2, "--norm", "none", "--training",
           "--ranks", 2, *ONCE)
    layers = 6 * 4 + 4 + 3 * (4 * 4 + 4)
    found = plait.json(*run)
    assert (found["classes"], found["parameters"]) == (2, layers + 4 * 4 + 4 + 4 * 2 + 2)
    found = plait.json(*run, "--classes", 3)
    assert (found["classes"], found["labels_made"]) == (3, True)
    assert found["parameters"] == 6 * 4 + 4 + 4 * 4 + 4 + 4 * 3 + 3 + 3 * 3 + 3
    np.savez(path, edge_index=edges, x=x, y=rng.integers(0, 2, (80, 5)))
    found = plait.json(*run)
    assert (found["classes"], found["labels_made"]) == (5, False) and 0.3 < found["loss"][0] < 3


@pytest.mark.parametrize("options,names", [
    (("--strategies", "luck"), ["luck", "bulk"]),
    (("--strategies", "bulk,pipelined", "--ranks", 2), ["pipelined", "--gpus"]),
    (("--strategies", "partial"), ["partial", "--gpus"]),
    (("--model", "gat", "--gpus", 1, "--strategies", "pipelined,partial"), ["the rows themselves"]),
    (("--model", "sage", "--aggregation", "max", "--gpus", 2, "--strategies", "get"), ["the rows themselves"]),
    (("--transport", "nvshmem", "--ranks", 2), ["--transport", "--gpus"]),
    (("--gpus", 3), ["asks for 3 GPUs"]),
    (("--gpus", 1, "--ranks", 2), ["--gpus", "--ranks"]),
    (("--model", "gpt"), ["gpt", "gcn, mlp, sage, gin, gat"]),
    (("--model", "gat", "--hidden", 10, "--heads", 4, "--ranks", 2), ["10", "multiple"]),
    (("--width", 0), ["--width"]),
    (("--classes", 0), ["--classes"]),
    (("--repetitions", 0), ["--repetitions"]),
    (("--partition", "cake"), ["cake", "metis"]),
])
def test_refused_before_anything_starts(plait, communities, options, names):
    plait.fails(USAGE, "bench", "model", communities, *options, names=names,
                env=environment(CUDA_VISIBLE_DEVICES=""))


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_does_not_fit(plait, tmp_path, ranks):
    path = tmp_path / "path.plait"
    plait.ok("generate", "path", "--vertices", 2**20, "-o", path)
    plait.fails(DOES_NOT_FIT, "bench", "model", path, "--width", 2**20, "--ranks", ranks,
                names=["features", "only"])
    plait.fails(DOES_NOT_FIT, "bench", "model", path, "--hidden", 65536, "--layers", 64, "--ranks", ranks)

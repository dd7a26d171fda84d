"""plait train --sampled on GPUs: losses are those of CPU ranks that take the same number of examples together.
scripts/gpu-test runs it.
"""

import pathlib
import signal
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from valued_graph import valued_graph

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS == 0, reason="no GPU")
MODELS = {
    "gcn": ("--model", "gcn"),
    "sage by mean": ("--model", "sage", "--hidden", 20),
    "sage by maximum": ("--model", "sage", "--aggregation", "max", "--residual"),
    "gin": ("--model", "gin", "--norm", "none", "--layers", 3, "--fanout", "4,3,2"),
    "gin with batch norm": ("--model", "gin", "--layers", 2),
    "gat": ("--model", "gat", "--hidden", 24, "--heads", 4, "--output-heads", 3),
}


def curve(plait, graph, options, examples, *ranks):
    """The losses of 4 epochs of several steps, the last one with a part of a batch."""
    fanout = () if "--fanout" in options else ("--fanout", "5,3")
    found = plait.json("train", graph, *options, *fanout, "--epochs", 4, "--seed", 3, "--sampled",
                       "--batch", examples // int(ranks[1]), *ranks)
    return np.array(found["loss"]), np.array(found["val_loss_by_epoch"])


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_losses_are_those_of_the_cpu(graph, tmp_path, model, gpus):
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait = program.Plait(tmp_path)
    # A vertex that several ranks sample counts several times in batch norm: as many ranks on both sides.
    ranks = gpus if model == "gin with batch norm" else 1
    wanted = curve(plait, graph, MODELS[model], 256, "--ranks", ranks)
    found = curve(plait, graph, MODELS[model], 256, "--gpus", gpus)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    assert wanted[0][0] != wanted[0][-1]


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A graph with sparse features, edge weights and loops."""
    path = tmp_path_factory.mktemp("words") / "g.npz"
    rng = np.random.default_rng(2)
    edges = rng.integers(0, 900, (9000, 2))
    words = rng.random((900, 300)) < 0.03
    np.savez(path, edge_index=edges.T, edge_weight=rng.uniform(0.5, 2, 9000).astype(np.float32),
             x_data=np.ones(words.sum(), np.float32), x_indices=words.nonzero()[1], x_shape=[900, 300],
             x_indptr=np.concatenate([[0], words.sum(1).cumsum()]), y=rng.integers(0, 5, 900))
    return path


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_bags_of_words_and_renumbered_weighted_graphs(words, tmp_path, model):
    """Vertices are in another order in memory."""
    plait = program.Plait(tmp_path)
    options = ("--folds", 3, "--reorder", "degree", *MODELS[model])
    wanted = curve(plait, words, options, 64, "--ranks", 1)
    found = curve(plait, words, options, 64, "--gpus", 1)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", ["gcn", "sage by mean", "gat"])
def test_a_structure_that_is_shared_out_gives_the_same_samples(words, tmp_path, model, gpus):
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait = program.Plait(tmp_path)
    options = ("--folds", 3, *MODELS[model])
    wanted = curve(plait, words, (*options, "--structure", "replicated"), 64, "--gpus", gpus)
    found = curve(plait, words, (*options, "--structure", "sharded"), 64, "--gpus", gpus)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


VALUES = {
    "by weight": ("--by-weight",),
    "with replacement": ("--with-replacement",),
    "by weight, with replacement": ("--by-weight", "--with-replacement"),
    "in time": ("--vertex-times", "vertices.npy", "--edge-times", "edges.npy"),
    "in time, by weight, with replacement": ("--edge-times", "edges.npy", "--example-times", "vertices.npy", "--by-weight",
                                             "--with-replacement"),
    "the latest": ("--vertex-times", "vertices.npy", "--latest"),
}


@pytest.mark.parametrize("gpus, structure", [(1, "replicated"), (1, "sharded"), (2, "sharded")])
@pytest.mark.parametrize("model", ["gcn", "sage by mean", "gat"])
@pytest.mark.parametrize("way", VALUES)
def test_samples_by_values_are_those_of_the_cpu(tmp_path, model, way, gpus, structure):
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait, valued = program.Plait(tmp_path), valued_graph()
    valued.save_times(tmp_path)
    options = (*MODELS[model], *(tmp_path / word if word.endswith(".npy") else word for word in VALUES[way]))
    path = valued.save(tmp_path)
    wanted = curve(plait, path, options, 36, "--ranks", 1)
    found = curve(plait, path, (*options, "--structure", structure), 36, "--gpus", gpus)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("partition", ["edges", "hash"])
@pytest.mark.parametrize("model", MODELS)
def test_cooperative_batches_are_those_of_the_cpu(graph, tmp_path, model, partition, gpus):
    """A vertex counts once in batch norm, whatever the number of GPUs."""
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait = program.Plait(tmp_path)
    options = (*MODELS[model], "--cooperative", "--partition", partition)
    wanted = curve(plait, graph, options, 256, "--ranks", 1)
    found = curve(plait, graph, options, 256, "--gpus", gpus)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("model", ["gcn", "gat"])
@pytest.mark.parametrize("way", ["by weight", "with replacement"])
def test_cooperative_batches_of_bags_of_words(words, tmp_path, model, way):
    plait = program.Plait(tmp_path)
    gpus = min(GPUS, 2)
    options = ("--folds", 3, "--reorder", "degree", "--cooperative", *MODELS[model], *VALUES[way])
    wanted = curve(plait, words, options, 64, "--ranks", 1)
    found = curve(plait, words, (*options, "--structure", "sharded"), 64, "--gpus", gpus)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_gpus_without_examples_take_part_in_cooperative_batches(graph, tmp_path):
    plait = program.Plait(tmp_path)
    run = ("train", graph, "--model", "sage", "--epochs", 1, "--seed", 3, "--sampled", "--cooperative", "--fanout", "2,3")
    gpus = min(GPUS, 2)
    found = plait.json(*run, "--batch", 2 // gpus, "--gpus", gpus)["loss"]
    np.testing.assert_allclose(found, plait.json(*run, "--batch", 2)["loss"], rtol=1e-4)


@pytest.mark.parametrize("cooperative", [(), ("--cooperative",)])
@pytest.mark.parametrize("gpus", [1, 2])
def test_a_run_goes_on_from_the_middle_of_an_epoch(graph, tmp_path, gpus, cooperative):
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait, path = program.Plait(tmp_path), tmp_path / "c.safetensors"
    run = ("train", graph, "--model", "sage", "--sampled", "--fanout", "5,3", "--batch", 4, "--gpus", gpus, *cooperative)
    process = program.start(*run, "--epochs", 2, "--checkpoint", path, "--checkpoint-steps", 5)
    program.wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(signal.SIGINT)
    assert program.result_of(process, timeout=60).code == program.INTERRUPTED
    whole = plait.json(*run, "--epochs", 2)
    rest = plait.json(*run, "--epochs", 2, "--resume", path)
    np.testing.assert_allclose(rest["loss"], whole["loss"], rtol=1e-5)


@pytest.mark.parametrize("model", ["gcn", "sage by maximum", "gat"])
def test_runs_repeat_and_prefetch_changes_nothing(graph, tmp_path, model):
    plait = program.Plait(tmp_path)
    first = curve(plait, graph, MODELS[model], 256, "--gpus", 1)
    for ahead in (0, 5):
        again = curve(plait, graph, (*MODELS[model], "--prefetch", ahead), 256, "--gpus", 1)
        np.testing.assert_allclose(first[0], again[0], rtol=1e-6)


def test_rounded_products_give_nearly_the_same_losses(graph, tmp_path):
    plait = program.Plait(tmp_path)
    plain = curve(plait, graph, MODELS["sage by mean"], 256, "--gpus", 1)
    for precision in ("tf32", "bf16"):
        rounded = curve(plait, graph, (*MODELS["sage by mean"], "--precision", precision), 256, "--gpus", 1)
        np.testing.assert_allclose(rounded[0], plain[0], rtol=2e-2)
        assert rounded[0].tolist() != plain[0].tolist()


@pytest.mark.parametrize("model", ["sage by mean", "gat"])
def test_products_of_bf16_are_those_of_the_cpu(graph, tmp_path, model):
    plait = program.Plait(tmp_path)
    options = (*MODELS[model], "--precision", "bf16")
    wanted = curve(plait, graph, options, 256, "--ranks", 1)
    found = curve(plait, graph, options, 256, "--gpus", 1)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3)


REPLAYED = {
    "gcn": ("--model", "gcn"),
    "gcn without dropout": ("--model", "gcn", "--dropout", 0),
    "sage by mean": ("--model", "sage", "--hidden", 20),
    "sage by maximum": ("--model", "sage", "--aggregation", "max", "--residual"),
    "gin": ("--model", "gin", "--norm", "none", "--layers", 3, "--fanout", "4,3,2"),
    "gin with layer norm": ("--model", "gin", "--norm", "layer", "--layers", 2),
    "gat": ("--model", "gat", "--hidden", 24, "--heads", 4, "--output-heads", 3),
    "all neighbours": ("--model", "sage", "--fanout", "-1,100"),
}


def steps_of(graph, tmp_path, options, gpus, examples=32, epochs=2):
    """A run with replayed steps and one without; an epoch has some steps, the last of a short batch."""
    plait = program.Plait(tmp_path)
    fanout = () if "--fanout" in options else ("--fanout", "5,3")
    run = ("train", graph, *options, *fanout, "--epochs", epochs, "--seed", 3, "--sampled", "--batch", examples // gpus,
           "--gpus", gpus)
    return plait.json(*run, "--recorded"), plait.json(*run, "--unrecorded")


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", REPLAYED)
def test_replayed_steps_give_the_losses_of_unrecorded_ones(graph, tmp_path, model, gpus):
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    replayed, unrecorded = steps_of(graph, tmp_path, REPLAYED[model], gpus)
    np.testing.assert_allclose(replayed["loss"], unrecorded["loss"], rtol=1e-5)
    np.testing.assert_allclose(replayed["val_loss_by_epoch"], unrecorded["val_loss_by_epoch"], rtol=1e-4)
    assert unrecorded["replayed_steps"] == 0
    assert replayed["replayed_steps"] >= 4  # the room has seen all batches of epoch 0


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", ["sage by mean", "gat"])
def test_batches_that_do_not_fit_take_a_step_of_their_own(graph, tmp_path, model, gpus):
    """All neighbours of single vertices differ much, so that the first 32 do not tell how large the largest are."""
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    options = (*REPLAYED[model], "--lr", 1e-4, "--fanout", "-1,-1")
    replayed, unrecorded = steps_of(graph, tmp_path, options, gpus, examples=gpus, epochs=4)
    np.testing.assert_allclose(replayed["loss"], unrecorded["loss"], rtol=1e-5)
    assert 32 <= replayed["replayed_steps"] < 4 * 120 // gpus


@pytest.mark.parametrize("options", [("--model", "gin", "--norm", "batch", "--layers", 2), ("--model", "sage", "--cooperative")])
def test_steps_that_take_all_rows_together_are_not_replayed(graph, tmp_path, options):
    replayed, unrecorded = steps_of(graph, tmp_path, options, min(GPUS, 2), epochs=1)
    assert replayed["replayed_steps"] == 0
    np.testing.assert_allclose(replayed["loss"], unrecorded["loss"], rtol=1e-5)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("model", ["sage by mean", "gat"])
def test_a_run_that_goes_on_takes_the_same_way_with_each_batch(graph, tmp_path, model, gpus):
    """To the last bit: the room for batches is as large as before the interruption."""
    if gpus > GPUS:
        pytest.skip("fewer GPUs")
    plait, path = program.Plait(tmp_path), tmp_path / "c.safetensors"
    run = ("train", graph, *REPLAYED[model], "--sampled", "--fanout", "5,3", "--batch", 4, "--gpus", gpus, "--seed", 3,
           "--recorded")
    process = program.start(*run, "--epochs", 4, "--checkpoint", path, "--checkpoint-steps", 5)
    program.wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(signal.SIGINT)
    assert program.result_of(process, timeout=60).code == program.INTERRUPTED
    whole = plait.json(*run, "--epochs", 4)
    rest = plait.json(*run, "--epochs", 4, "--resume", path)
    assert 0 < rest["replayed_steps"] < whole["replayed_steps"]
    assert rest["loss"] == whole["loss"]


def test_samples_by_times_and_weights_are_replayed(tmp_path):
    plait, valued = program.Plait(tmp_path), valued_graph()
    valued.save_times(tmp_path)
    path = valued.save(tmp_path)
    for way in ("with replacement", "in time, by weight, with replacement"):
        options = (*REPLAYED["gat"], *(tmp_path / word if word.endswith(".npy") else word for word in VALUES[way]))
        run = ("train", path, *options, "--fanout", "5,3", "--sampled", "--batch", 36, "--epochs", 2, "--gpus", 1)
        replayed = plait.json(*run, "--recorded")
        np.testing.assert_allclose(replayed["loss"], plait.json(*run, "--unrecorded")["loss"], rtol=1e-5)
        assert replayed["replayed_steps"] > 0

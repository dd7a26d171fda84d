"""plait train --sampled. With all neighbours and one step per epoch it is training on the whole graph, which
other tests compare with PyG; with some neighbours, curves do not depend on the ranks."""

import json
import signal

import numpy as np
import pytest

from program import check_one_line, result_of, start, wait_until
from training import check_same_curve, history_of, metadata_of

COURSE = ("--epochs", 6, "--lr", 0.05, "--seed", 3)
MODELS = {
    "gcn": ("--model", "gcn"),
    "gcn that widens rows": ("--model", "gcn", "--hidden", 48, "--layers", 3, "--norm", "layer"),
    "gcn of one layer": ("--model", "gcn", "--layers", 1),
    "mlp": ("--model", "mlp"),
    "sage": ("--model", "sage", "--hidden", 8),
    "sage that widens rows, residual": ("--model", "sage", "--hidden", 48, "--layers", 3, "--residual"),
    "sage by maximum": ("--model", "sage", "--aggregation", "max", "--residual", "--hidden", 20),
    "sage by minimum": ("--model", "sage", "--aggregation", "min", "--hidden", 20),
    "gin": ("--model", "gin", "--norm", "none", "--layers", 3, "--hidden", 12),
    "gat": ("--model", "gat", "--hidden", 24, "--heads", 4, "--output-heads", 3),
    "gatv2": ("--model", "gatv2", "--hidden", 12, "--heads", 3),
    "transformer": ("--model", "transformer", "--hidden", 12, "--heads", 4, "--output-heads", 2),
    "gat without dropout": ("--model", "gat", "--hidden", 12, "--heads", 6, "--dropout", 0, "--residual"),
}
SAMPLED = ("--sampled", "--batch", 64, "--fanout", "3,2")


@pytest.mark.parametrize("archive", ["dense", "sparse"])
@pytest.mark.parametrize("model", MODELS)
def test_all_neighbours_are_the_whole_graph(plait, archives, archive, model):
    run = ("train", archives[archive], *MODELS[model], *COURSE)
    whole = plait.json(*run)
    all_neighbours = () if model == "mlp" else ("--fanout", -1)  # mlp reads none
    sampled = plait.json(*run, "--sampled", *all_neighbours, "--batch", 100000)
    check_same_curve(sampled["loss"], whole["loss"])
    check_same_curve(sampled["val_loss_by_epoch"], whole["val_loss_by_epoch"])
    assert sampled["loss"][0] != sampled["loss"][-1]


@pytest.mark.parametrize("model", ["gcn", "sage", "sage by maximum", "gat"])
def test_curves_do_not_depend_on_ranks(plait, archives, model):
    """Several steps per epoch, the last one with a part of a batch."""
    run = ("train", archives["dense"], *MODELS[model], *COURSE, "--sampled", "--fanout", "3,2")
    one = plait.json(*run, "--batch", 48)
    for ranks, partition in ((2, "edges"), (3, "hash"), (4, "edges")):
        many = plait.json(*run, "--batch", 48 // ranks, "--ranks", ranks, "--partition", partition)
        check_same_curve(many["loss"], one["loss"])
        check_same_curve(many["val_loss_by_epoch"], one["val_loss_by_epoch"])
    other = plait.json(*run[:-1], "4,1", "--batch", 48)
    assert np.abs(np.array(other["loss"]) / one["loss"] - 1).max() > 1e-3


def test_ranks_without_examples_take_part(plait, archives):
    run = ("train", archives["sparse"], "--model", "gcn", *COURSE, "--sampled", "--fanout", "2,2")
    one = plait.json(*run, "--batch", 99)  # the second step has one example
    three = plait.json(*run, "--batch", 33, "--ranks", 3)
    check_same_curve(three["loss"], one["loss"])


def test_batch_norm_over_ranks_trains(plait, archives):
    """Its statistics are of the rows of all ranks, so ranks agree on weights."""
    run = ("train", archives["dense"], "--model", "gin", *COURSE, "--layers", 2, *SAMPLED)
    assert np.isfinite(plait.json(*run, "--ranks", 2)["loss"]).all()


def test_runs_repeat_and_prefetch_changes_nothing(plait, archives):
    run = ("train", archives["dense"], "--model", "sage", *COURSE[:-2], *SAMPLED)
    first = plait.json(*run, "--seed", 3)
    for ahead in (0, 9):
        assert first["loss"] == plait.json(*run, "--seed", 3, "--prefetch", ahead)["loss"]
    assert first["sampled"] == {"batch": 64, "fanout": [3, 2], "prefetch": 2, "structure": "auto",
                                "cooperative": False, "by_weight": False, "with_replacement": False, "times": "none"}
    assert first["loss"] != plait.json(*run, "--seed", 4)["loss"]


def test_a_run_goes_on_from_its_checkpoint(plait, archives):
    run = ("train", archives["dense"], "--model", "sage", "--seed", 3, *SAMPLED)
    whole = plait.json(*run, "--epochs", 6)
    plait.ok(*run, "--epochs", 2, "--checkpoint", plait.folder / "c.safetensors")
    rest = plait.json(*run, "--epochs", 6, "--resume", plait.folder / "c.safetensors",
                      "--checkpoint", plait.folder / "d.safetensors")
    check_same_curve(rest["loss"], whole["loss"])
    assert len(history_of(plait.folder / "d.safetensors")) == 6
    for other in (run[:-1] + ("4,2",), run[:-4], (*run[:-4], "--batch", 32, *run[-2:])):
        plait.fails(1, *other, "--epochs", 6, "--resume", plait.folder / "c.safetensors", names=["steps"])
    plait.fails(1, *run, "--reorder", "degree", "--resume", plait.folder / "c.safetensors", names=["steps", "order"])


def test_no_samples_are_the_whole_graph(plait, archives):
    run = ("train", archives["dense"], *COURSE)
    assert plait.json(*run, "--sampled=false")["loss"] == plait.json(*run)["loss"]


def test_divergence_in_the_first_epoch_is_told(plait, archives):
    plait.fails(1, "train", archives["dense"], *SAMPLED, "--lr", 1e30, names=["lower the learning rate"])


def under_way(path):
    """Returns the steps of the epoch that a checkpoint leaves under way, their time, and the losses of ranks."""
    return json.loads(metadata_of(path).get("under_way", "[0, 0, []]"))


LONG = ("--model", "sage", "--sampled", "--fanout", "3,2", "--seed", 3)  # with thousands of steps if a step takes few


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_signal_ends_the_run_between_steps(plait, archives, ranks):
    """The run goes on from its last step, and has the losses of one without a break."""
    path = plait.folder / "c.safetensors"
    run = ("train", archives["dense"], *LONG, "--batch", 1, "--ranks", ranks)
    process = start(*run, "--epochs", 100000, "--checkpoint", path, "--checkpoint-every", 1)
    wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(signal.SIGINT)
    result = result_of(process, timeout=30)
    assert result.code == 130, result
    done, (steps, _, losses) = len(history_of(path)), under_way(path)
    words = f"{done} epoch{'s' * (done > 1)}" + f" and {steps} of " * (steps > 0)
    check_one_line(result, [f"interrupted after {words}", f"--resume {path}"])
    assert len(losses) == (ranks if steps else 0)
    rest = plait.json(*run, "--epochs", done + 1, "--resume", path)
    assert rest["loss"] == plait.json(*run, "--epochs", done + 1)["loss"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_goes_on_from_the_middle_of_its_first_epoch(plait, archives, number):
    """Weights are those after the last step, of which scores can be made."""
    path = plait.folder / "c.safetensors"
    run = ("train", archives["dense"], *LONG, "--batch", 1)
    process = start(*run, "--epochs", 2, "--checkpoint", path, "--checkpoint-steps", 7)
    wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(number)
    result = result_of(process, timeout=30)
    assert not history_of(path), "it was too quick to be interrupted"
    steps = under_way(path)[0]
    if number == signal.SIGINT:
        check_one_line(result, [f"interrupted in the first epoch, after {steps} of ", f"--resume {path}"])
    else:
        assert steps % 7 == 0
    plait.ok("infer", archives["dense"], "--checkpoint", path, "--out", plait.folder / "y.npy")
    whole = plait.json(*run, "--epochs", 2)
    assert plait.json(*run, "--epochs", 2, "--resume", path)["loss"] == whole["loss"]
    halves = (*run[:-1], 1, "--epochs", 2)
    plait.fails(1, *halves, "--ranks", 2, "--resume", path, names=["steps"])


def test_other_ranks_go_on_from_the_middle_of_an_epoch(plait, archives):
    """They take the same examples together; a step that was saved twice, or not reached, is no step lost."""
    path = plait.folder / "c.safetensors"
    run = ("train", archives["dense"], *LONG, "--epochs", 3)
    whole = plait.json(*run, "--batch", 4)
    process = start(*run, "--batch", 2, "--ranks", 2, "--checkpoint", path, "--checkpoint-steps", 3)
    wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(signal.SIGKILL)
    result_of(process, timeout=30)
    for ranks in (1, 2, 4):
        rest = plait.json(*run, "--batch", 4 // ranks, "--ranks", ranks, "--resume", path)
        check_same_curve(rest["loss"], whole["loss"])


def test_renumbered_graphs_have_the_same_curve_with_all_neighbours(plait, archives):
    run = ("train", archives["dense"], "--model", "gcn", *COURSE, "--sampled", "--fanout", -1, "--batch", 64)
    check_same_curve(plait.json(*run, "--reorder", "degree")["loss"], plait.json(*run)["loss"])


def test_sampled_training_learns_as_training_on_the_whole_graph(plait):
    plait.ok("generate", "dcsbm", "--vertices", 3000, "--edges", 60000, "--communities", 6, "--classes", 6, "--width", 16,
             "--seed", 1, "-o", plait.folder / "g.plait")
    run = ("train", plait.folder / "g.plait", "--model", "sage", "--hidden", 32, "--lr", 0.01)
    whole = plait.json(*run, "--epochs", 60)
    sampled = plait.json(*run, "--epochs", 30, "--sampled", "--batch", 128, "--fanout", "10,5")
    assert sampled["test_accuracy"] > 0.6 and sampled["test_accuracy"] > whole["test_accuracy"] - 0.03


@pytest.mark.parametrize("model", ["gcn", "sage", "gat"])
def test_rounded_products_give_nearly_the_same_losses(plait, archives, model):
    run = ("train", archives["dense"], *MODELS[model], *COURSE, *SAMPLED)
    plain, rounded = plait.json(*run), plait.json(*run, "--precision", "bf16")
    assert (plain["precision"], rounded["precision"]) == ("fp32", "bf16")
    # Rounded attention differs more with each step: by 2.3% after six epochs with this seed.
    np.testing.assert_allclose(rounded["loss"], plain["loss"], rtol=3e-2 if model == "gat" else 2e-2)
    assert rounded["loss"] != plain["loss"]
    check_same_curve(plait.json(*run, "--precision", "fp32")["loss"], plain["loss"])
    two = plait.json(*run[:-3], 32, *run[-2:], "--precision", "bf16", "--ranks", 2)
    np.testing.assert_allclose(two["loss"], rounded["loss"], rtol=2e-3)


@pytest.mark.parametrize("options, words", [
    (("--sampled", "--fanout", "3,2,1"), ["--fanout has 3 numbers", "2 layers"]),
    (("--sampled", "--fanout", "0"), ["--fanout", "'0' is no number of edges", "-1 for all"]),
    (("--sampled", "--fanout", "-2"), ["--fanout", "-2"]),
    (("--sampled", "--fanout", "99999999999"), ["--fanout", "99999999999"]),
    (("--sampled", "--batch", "0"), ["--batch"]),
    (("--fanout", "3"), ["--fanout", "--sampled"]),
    (("--fanout", "3", "--sampled=false"), ["--fanout", "--sampled"]),
    (("--sampled", "--fanout", "9" * 5000), ["'99999"]),
    (("--sampled", "--batch", "1", "--norm", "batch"), ["1 of", "--batch"]),
    (("--batch", "3"), ["--batch", "--sampled"]),
    (("--checkpoint-steps", "3"), ["--checkpoint-steps", "--sampled"]),
    (("--sampled", "--checkpoint-steps", "-1"), ["--checkpoint-steps"]),
    (("--sampled", "--checkpoint-steps", "3"), ["--checkpoint-steps", "--checkpoint"]),
    (("--structure", "sharded"), ["--structure", "--sampled"]),
    (("--sampled", "--structure", "sharded"), ["--structure", "--gpus"]),
    (("--sampled", "--structure", "cake"), ["cake", "sharded"]),
    (("--sampled", "--exact"), ["--exact", "--sampled"]),
    (("--tf32",), ["--tf32", "--gpus"]),
    (("--unrecorded",), ["--unrecorded", "--gpus"]),
    (("--precision", "tf32"), ["--precision tf32", "--gpus"]),
    (("--precision", "fp8"), ["fp8", "bf16"]),
    (("--precision", "bf16", "--exact"), ["--precision bf16", "--exact"]),
    (("--precision", "bf16", "--tf32"), ["--precision", "--tf32"]),
    (("--sampled", "--optimise", "on"), ["--optimise", "--sampled"]),
])
def test_bad_settings_are_told(plait, archives, options, words):
    plait.fails(2, "train", archives["dense"], *options, names=words)

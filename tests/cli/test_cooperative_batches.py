"""plait train --sampled --cooperative: ranks sample each batch together, and compute each of its vertices once. The
batch is the one of a single rank, so the curves are, whoever owns which vertex."""

import signal

import pytest

from program import result_of, start, wait_until
from test_sampled_training import COURSE, LONG, MODELS
from training import check_same_curve

TOGETHER = ("--sampled", "--cooperative", "--fanout")
WAYS = ((1, "edges"), (2, "edges"), (3, "hash"), (4, "metis"))  # ranks and their partition


def fanouts(model):
    """Returns fan-outs for the layers of a model of MODELS, as a list."""
    options = MODELS[model]
    layers = options[options.index("--layers") + 1] if "--layers" in options else 2
    return ",".join(map(str, (3, 2, 4)[:layers]))


@pytest.mark.parametrize("archive", ["dense", "sparse"])
@pytest.mark.parametrize("model", sorted(MODELS.keys() - {"mlp"}))
def test_curves_are_those_of_one_rank(plait, archives, archive, model):
    run = ("train", archives[archive], *MODELS[model], *COURSE)
    one = plait.json(*run, "--sampled", "--fanout", fanouts(model), "--batch", 48)
    assert one["sampled"]["cooperative"] is False
    for ranks, partition in WAYS[archive == "sparse":: 1 + (archive == "sparse")]:
        together = plait.json(*run, *TOGETHER, fanouts(model), "--batch", 48 // ranks, "--ranks", ranks,
                              "--partition", partition)
        check_same_curve(together["loss"], one["loss"])
        check_same_curve(together["val_loss_by_epoch"], one["val_loss_by_epoch"])
        assert together["sampled"]["cooperative"] is True


def test_batch_norm_counts_each_vertex_once(plait, archives):
    """Ranks that sample for themselves count a vertex that several of them sample several times. In a course of this
    seed no normalised number comes so near to 0 that rounding decides whether ReLU lets it through."""
    run = ("train", archives["dense"], "--model", "gin", "--layers", 3, "--norm", "batch", "--epochs", 6, "--lr", 0.05,
           "--seed", 5)
    one = plait.json(*run, "--sampled", "--fanout", "3,2,2", "--batch", 48)
    for ranks, partition in WAYS[1:]:
        together = plait.json(*run, *TOGETHER, "3,2,2", "--batch", 48 // ranks, "--ranks", ranks, "--partition", partition)
        check_same_curve(together["loss"], one["loss"])


def test_all_neighbours_are_the_whole_graph(plait, archives):
    run = ("train", archives["dense"], "--model", "sage", "--layers", 3, "--hidden", 7, *COURSE)
    whole = plait.json(*run)
    for ranks in (2, 4):
        check_same_curve(plait.json(*run, *TOGETHER, -1, "--batch", 1000, "--ranks", ranks)["loss"], whole["loss"])


def test_ranks_without_examples_take_part(plait, archives):
    """A step takes three examples, which two ranks or one may own; the last step takes one."""
    run = ("train", archives["sparse"], "--model", "sage", "--epochs", 2, "--seed", 3)
    one = plait.json(*run, "--sampled", "--fanout", "2,3", "--batch", 3)
    check_same_curve(plait.json(*run, *TOGETHER, "2,3", "--batch", 1, "--ranks", 3)["loss"], one["loss"])


def test_prefetch_changes_nothing(plait, archives):
    run = ("train", archives["dense"], "--model", "sage", *COURSE, *TOGETHER, "3,2", "--batch", 9, "--ranks", 2)
    first = plait.json(*run)["loss"]
    for ahead in (0, 1, 7, 64):  # from each batch in its turn to more than all steps
        assert plait.json(*run, "--prefetch", ahead)["loss"] == first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on(plait, archives, number):
    path = plait.folder / "c.safetensors"
    run = ("train", archives["dense"], *LONG[:2], *TOGETHER, "3,2", "--seed", 3, "--batch", 1, "--ranks", 2, "--epochs", 3)
    process = start(*run, "--checkpoint", path, "--checkpoint-steps", 5)
    wait_until(path.exists, 60, "a checkpoint")
    process.send_signal(number)
    assert result_of(process, timeout=30).code == (130 if number == signal.SIGINT else -signal.SIGKILL)
    whole = plait.json(*run)
    assert plait.json(*run, "--resume", path)["loss"] == whole["loss"]
    alone = ("train", archives["dense"], *LONG, "--batch", 2, "--epochs", 3)  # the same examples per step
    check_same_curve(plait.json(*alone, "--resume", path)["loss"], whole["loss"])


def test_it_is_for_samples(plait, archives):
    plait.fails(2, "train", archives["dense"], "--cooperative", names=["--cooperative", "--sampled"])

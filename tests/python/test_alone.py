"""plait.alone() on one rank of two: the other works on with it afterwards as if nothing had been."""

import functools
import json

import pytest
import torch

import alone_cases
import plait
from ranks import HERE, Ranks
from spread_cases import CLASSES, NODES, WIDTH

FOUND = {
    "call_in_training": [NODES, CLASSES] * 2,
    "call_in_evaluation": [NODES, CLASSES],
    "call_of_a_copy": [NODES, CLASSES],
    "save_the_model": [NODES, CLASSES],
    "many_weights": pytest.approx([1.0 + k for k in range(20)]),
    "train_another_model": NODES,
    "train_on_batches": 4,
    "embed": [100, 8, 2, 8],
    "sums_and_rows": [3, 1, 2, WIDTH, NODES, NODES, WIDTH, 0, 1],
    "advice": 1,
    "checkpoints": [NODES, CLASSES],
}


def told(program):
    """Returns what each of two ranks has told of a program of alone_cases.py."""
    return [json.loads(output) for output in
            Ranks(2, HERE / "alone_cases.py", program).succeed()]


@functools.cache
def undisturbed():
    return told("nothing")[0]


@pytest.mark.parametrize("case", sorted(alone_cases.CASES.keys() - {"nothing"}))
def test_one_rank_works_alone(case):
    first, second = told(case)
    assert first["found"] == FOUND[case]
    for one in (first, second):
        assert one["losses"] == undisturbed()["losses"]
        assert one["scores"] == undisturbed()["scores"]


@pytest.mark.parametrize("program", ["a_call_alone", "a_call_that_fails"])
def test_gradients_after_a_call_on_one_rank(program):
    """The owner of a row draws the mask of attention again that its readers have drawn."""
    first, second = told(program)
    assert first["before"] == second["before"] < 0.03  # another mask gives 0.6 and more
    assert first["after"] == second["after"] < 0.03
    failed = program == "a_call_that_fails"
    assert (first["said"], second["said"]) == (
        ("OutOfMemoryError: on this rank", "no error") if failed else (None, None))


def test_ranks_whose_counts_differ():
    for one in told("other_counts"):
        assert one["attention"].startswith(
            "ValueError: rank 0 has called the model 6 times in training, but rank 1 5 times; leave this batch out")
        assert one["after"] == "no error"
        assert one["weights"].startswith(
            "ValueError: ranks pass different weights, for one has been changed alone: the number of calls in training "
            "is 3 on rank 0, but 2 on rank 1")


def test_ranks_whose_calls_with_gradients_differ():
    for one in told("other_gradients"):
        assert one["attention"].startswith(
            "ValueError: rank 1 has called the model 5 times in training with gradients, but rank 0 4 times; leave this")
        assert one["after"] == "no error"


def test_a_model_that_each_process_has_spread_alone():
    for said in told("spread_alone"):
        assert said.startswith("RuntimeError: the model was spread where this process worked alone, but here 2 ranks")


def test_dropout_of_attention_follows_one_generator():
    first, second = told("seeds_that_differ")
    assert (first["exact"], first["found"]) == (second["exact"], second["found"])
    assert first["found"] == pytest.approx(first["exact"], rel=2e-2)
    assert first["next"] != second["next"]  # ranks keep their own generators


def test_what_ranks_make_together_goes_on_all_of_them():
    for one in told("weights_that_live_longer_on_one_rank"):
        assert one["totals"] == [one["edges"]] * 5


def test_embedding_tables_of_other_ranks():
    first, second = told("embedding_tables")
    *within, outside, names = first["said"]
    assert within == ["RuntimeError: embedding tables were made on 2 ranks, but here this process works alone; leave "
                      "plait.alone() before"] * 4
    assert outside.startswith("RuntimeError: embedding tables were made where this process worked alone, but here 2")
    assert names == ["weight"]
    assert all(one["same"] and one["sum"] == 4 for one in (first, second))


def test_a_step_backward_through_what_ranks_have_made_together():
    first, second = told("backward_alone")
    assert [said.split(" on 2 ranks, but here this process works alone")[0] for said in first["said"]] == [
        *["RuntimeError: the graph was placed"] * 4, *["RuntimeError: the nodes were divided"] * 2]
    assert first["step"] == second["step"]


def test_a_partition_knows_its_ranks():
    assert told("own_vertices") == [True, True]


@pytest.mark.skipif(plait._library.ops.built_with_cuda() and not torch.cuda.is_available(),
                    reason="profiles are of the GPUs of this kind")
def test_a_process_beside_its_ranks_takes_no_profile():
    assert told("profile_of_the_machine") == [4.0, 4.0]


def test_a_graph_in_two_worlds():
    for rows, classes, own, *rest in told("a_graph_in_two_worlds"):
        assert (rows, classes) == (own, CLASSES) and own < NODES
        assert rest == ["hash", "replicate", True]

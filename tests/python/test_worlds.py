"""The ranks that plait joins: those of torchrun, of torch.distributed's process groups, or none."""

import json
import re

import pytest

import world_cases
from ranks import HERE, Ranks, alone

PROGRAM = HERE / "world_cases.py"


def lines(*outputs):
    return [json.loads(line) for output in outputs for line in output.splitlines()]


def run(case):
    """Returns what the processes of a case have told, by rank."""
    return sorted(lines(*alone(PROGRAM, case).succeed(limit=120)), key=lambda facts: facts.get("rank", 0))


@pytest.fixture(scope="module")
def losses():
    return [world_cases.trained(seed)["losses"] for seed in (0, 1)]


def check_two(found, losses):
    """Both have trained one graph, from the weights of the first."""
    assert [(one["rank"], one["ranks"]) for one in found] == [(0, 2), (1, 2)]
    assert sum(one["own"] for one in found) == world_cases.NODES
    assert found[0]["losses"] == found[1]["losses"] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("case", ["spawn", "as_by_hand"])
def test_ranks_of_a_process_group(case, losses):
    check_two(run(case), losses)


def test_a_process_group_that_comes_late_and_goes_early(losses):
    found = run("after_work_alone")
    check_two(found, losses)
    assert all(one["before"] == [2.0, 1] and one["sum"] == 2 for one in found)


def test_an_environment_that_tells_of_other_ranks(losses):
    found = run("with_other_environment")
    check_two(found, losses)
    for rank, one in enumerate(found):
        assert re.match(f"ValueError: this process is rank {rank} of 2 of .* but rank {rank} of 4 in the environment",
                        one["said"])
        assert one["again"] == "no error"


def test_a_part_of_the_processes(losses):
    (by_itself,), both = ([one for one in run("with_a_part") if ("said" in one) == is_alone]
                          for is_alone in (True, False))
    check_two(both, losses)
    assert (by_itself["ranks"], by_itself["losses"]) == (1, pytest.approx(losses[0]))
    assert by_itself["said"].startswith("ValueError: this process is not in the group")
    for rank, one in enumerate(both):
        assert one["second"].startswith(f"RuntimeError: this process is rank {rank} of 2 already")


def test_ranks_that_are_given(losses):
    found = run("at_an_address")
    check_two(found, losses)
    for one in found:
        assert [re.match(f"{kind}: .*{words}", said) is not None for (kind, words), said in zip([
            ("ValueError", "together"), ("ValueError", "rank is 2, but must be in 0..1"), ("ValueError", "HOST:PORT"),
            ("TypeError", "group must be .* not of type int"), ("RuntimeError", "works alone here")], one["bad"], strict=True)] == [
                True] * 5, one["bad"]


def test_a_process_that_fails_ends_the_others():
    (code, _, errors), = alone(PROGRAM, "failing").results(limit=60)
    assert code == 1 and "KeyError: 'no such thing'" in errors


def test_parallel_training_with_a_loader_in_each_process():
    """Both processes have the same weights. Without draws, workers make no difference; with draws, each worker has a
    generator of its own."""
    found = run("in_parallel")
    assert len(found) == 8 and all(one["ranks"] == 1 for one in found)
    of_all, of_none, of_two = ([one["weights"] for one in found if (one["fanout"], one["workers"]) in cases]
                               for cases in ({(-1, 0), (-1, 2)}, {(3, 0)}, {(3, 2)}))
    assert (len(of_all), len(of_none), len(of_two)) == (4, 2, 2)
    for first, *others in (of_all, of_none, of_two):
        assert all(other == pytest.approx(first, abs=1e-6) for other in others)


def test_graphs_of_their_own(losses):
    for rank, facts in enumerate(lines(*Ranks(2, PROGRAM, "own_graphs").succeed())):
        assert facts["sums"] == 2 + rank
        assert (facts["alone"]["ranks"], facts["alone"]["losses"]) == (1, pytest.approx(losses[rank]))
        assert facts["layer"] == [world_cases.NODES, 2]
        assert (facts["together"]["rank"], facts["together"]["ranks"]) == (rank, 2)
        assert facts["together"]["losses"] == pytest.approx(losses[0], rel=1e-5)
        assert facts["close"]
        assert facts["said"].startswith("RuntimeError: the graph was placed on 2 ranks, but here this process works")


def test_threads():
    for facts in lines(*Ranks(2, PROGRAM, "threads", timeout_ms=10000).succeed(limit=60)):
        assert facts == {"totals": [6.0], "edges": facts["edges"]}

"""plait.parallelize against PyTorch Geometric on one process, unmodified."""

import json

import pytest
import torch

import spread_cases
from edges import assert_close
from ranks import HERE, Ranks
from spread_cases import CASES, DROPPED

COUNTS = (1, 2, 3)


@pytest.fixture(scope="module")
def spread():
    """What came out on each rank, by number of ranks."""
    started = {ranks: Ranks(ranks, HERE / "spread_cases.py") for ranks in COUNTS}
    return {n: [json.loads(out) for out in ranks.succeed()] for n, ranks in started.items()}


def check(found, wanted, tolerance=1e-4):
    assert_close(found["losses"], wanted["losses"], tolerance)
    assert_close(found["out"], wanted["out"], 1e-3)
    assert found["accuracy"] == pytest.approx(wanted["accuracy"], abs=1e-6)
    assert found["gradients"].keys() == wanted["gradients"].keys()
    scale = max(torch.tensor(g).abs().max() for g in wanted["gradients"].values())
    for name, gradient in wanted["gradients"].items():
        difference = torch.tensor(found["gradients"][name]) - torch.tensor(gradient)
        assert difference.abs().max() <= 1e-5 * scale, name
    assert found["weights"].keys() == wanted["weights"].keys()
    for name, weight in wanted["weights"].items():
        weight = torch.tensor(weight)
        difference = torch.tensor(found["weights"][name]) - weight
        # Some weights are but rounding: a bias before a batch norm.
        assert difference.abs().max() <= 1e-3 * max(weight.abs().max(), 0.01), name


@pytest.mark.parametrize("ranks", COUNTS)
@pytest.mark.parametrize("name", CASES)
def test_as_torch_geometric_on_one_process(spread, name, ranks):
    check(spread[ranks][0][name], spread_cases.train_plainly(name))


@pytest.mark.parametrize("ranks", COUNTS[1:])
@pytest.mark.parametrize("name", [*CASES, *DROPPED])
def test_ranks_agree(spread, name, ranks):
    """To the bit among themselves; with one rank to rounding, with dropout too."""
    first, *others = (of_rank[name] for of_rank in spread[ranks])
    assert all(other == first for other in others)
    check(first, spread[1][0][name])


def test_dropout_drops(spread):
    for name, without in (("dropout", "gcn"), ("model dropout", "model batch norm")):
        losses = spread[1][0][name]["losses"]
        assert losses != spread[1][0][without]["losses"]
        assert len(set(losses)) == len(losses)


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_else_holds(ranks):
    """spread_checks.py says what."""
    Ranks(ranks, HERE / "spread_checks.py", timeout_ms=10000).succeed()

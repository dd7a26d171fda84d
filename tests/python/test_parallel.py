"""plait.parallelize against PyTorch Geometric on one process, unmodified."""

import json

import pytest
import torch

import spread_cases
from edges import assert_close
from ranks import HERE, Ranks
from spread_cases import CASES, DROPPED
from spread_checks import CHECKS

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


def differences(comparisons):
    """Returns one line for each of (name, found, wanted) in which the two differ."""
    lines = []
    for name, found, wanted in comparisons:
        try:
            check(found, wanted)
        except AssertionError as error:
            lines.append(f"{name}: {error}")
    return lines


def test_as_torch_geometric_on_any_number_of_ranks():
    """One test, because ranks take seconds to start."""
    started = {ranks: Ranks(ranks, HERE / "spread_cases.py") for ranks in (2, 3)}
    wanted = {name: spread_cases.train_plainly(name) for name in CASES}
    alone = {name: spread_cases.train_spread(case) for name, case in {**CASES, **DROPPED}.items()}
    compared = [(f"{name}, alone", alone[name], wanted[name]) for name in CASES]
    for ranks, world in started.items():
        first, *others = map(json.loads, world.succeed())
        assert first.keys() == alone.keys()
        for name, found in first.items():
            assert all(other[name] == found for other in others), f"{name}: ranks differ"
            # With dropout, ranks are compared with one rank only.
            compared.append((f"{name}, {ranks} ranks", found, wanted.get(name, alone[name])))
    assert not differences(compared)
    for name, without in (("dropout", "gcn"), ("model dropout", "model batch norm")):
        assert alone[name]["losses"] != alone[without]["losses"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_else_holds_alone(check):
    torch.manual_seed(3)
    check()


def test_what_else_holds_on_ranks():
    """spread_checks.py lists the checks."""
    Ranks(3, HERE / "spread_checks.py").succeed()

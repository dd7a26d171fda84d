"""Layers of PyTorch Geometric that Plait has no kernels for, spread over ranks by exchange."""

import json
import os

import pytest
import torch

import spread_layers
from ranks import HERE, Ranks
from spread_layers import DROPPED, LAYERS

# make test-deep takes 30 steps (spread_layers.py) and another number of ranks.
RANKS = [4] if os.environ.get("PLAIT_TEST_DEEP") else [3]


def furthest(found, wanted):
    return max(abs(f - w) / max(abs(w), 1e-3) for f, w in zip(found, wanted, strict=True))


def test_the_losses_of_every_layer():
    """One test, because ranks take seconds to start. The promise is 1e-4 of a loss."""
    wanted = {name: spread_layers.train_plainly(name) for name in LAYERS}
    alone = spread_layers.train_all_spread()
    wanted |= {name: alone[name] for name in DROPPED}
    differences = {("alone", name): furthest(alone[name], wanted[name]) for name in wanted}
    for ranks in RANKS:
        first, *others = map(json.loads, Ranks(ranks, HERE / "spread_layers.py").succeed(900))
        assert all(other == first for other in others)
        differences |= {(ranks, name): furthest(first[name], wanted[name]) for name in wanted}
    assert {of: d for of, d in differences.items() if not d <= 1e-4} == {}
    for name in DROPPED:
        plain = alone[name.removesuffix(", dropout")]
        assert alone[name] != plain


def test_learns():
    """Losses that stay the same would be equal for any layer."""
    for name in ("TransformerConv", "a layer of a user"):
        losses = spread_layers.train_plainly(name)
        assert losses[-1] < losses[0]


def test_links_and_refusals_on_ranks():
    for output in Ranks(3, HERE / "spread_links.py").succeed():
        assert output.split() == ["done"]


def test_links_alone():
    import spread_links

    spread_links.main()


@pytest.mark.parametrize("name", ["DynamicEdgeConv", "ChebConv"])
def test_reasons_name_the_layer(name):
    import torch_geometric.nn as pyg

    import plait

    conv = {"ChebConv": lambda: pyg.ChebConv(8, 8, 2),
            "DynamicEdgeConv": lambda: pyg.DynamicEdgeConv(torch.nn.Linear(16, 8), 3)}[name]
    with pytest.raises((NotImplementedError, ImportError), match=name):
        plait.parallelize(torch.nn.Sequential(conv()), spread_layers.make_data())

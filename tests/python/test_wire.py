"""plait.parallelize(..., wire="bf16") and plait.Graph(..., wire="bf16")."""

import json
import pathlib

import pytest
import torch

import plait
from advice_on_ranks import make
from ranks import Ranks
from spread_layers import make_data
from torch_geometric.nn import GCN

HERE = pathlib.Path(__file__).resolve().parent


@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_of_other_ranks_are_rounded(ranks):
    """Values, gradients and refusals are checked on the ranks."""
    first, *others = map(json.loads, Ranks(ranks, HERE / "wire_on_ranks.py").succeed())
    assert all(other == first for other in others)
    assert first["bf16"] != first["fp32"]
    assert first["bf16"] == pytest.approx(first["fp32"], rel=0.02)


def test_refused_on_one_rank():
    for make_it in (lambda: plait.parallelize(make(GCN), make_data(), wire="bf16"),
                    lambda: plait.Graph(torch.tensor([[0], [1]]), wire="bf16")):
        with pytest.raises(ValueError, match="there is one rank"):
            make_it()
    assert plait.Graph(torch.tensor([[0], [1]]), wire="fp32").wire == "fp32"

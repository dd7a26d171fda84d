"""plait.nn.EmbeddingBag, EmbeddingBags and plait.optim; embedding_checks.py and
embedding_refusals.py list the checks."""

import pytest
import torch

import plait
from embedding_checks import CHECKS
from embedding_refusals import REFUSALS
from ranks import HERE, Ranks


@pytest.mark.parametrize("check", CHECKS + REFUSALS, ids=lambda check: check.__name__)
def test_alone(check):
    torch.manual_seed(3)
    check()


@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks(ranks):
    Ranks(ranks, HERE / "embedding_checks.py").succeed()


@pytest.mark.parametrize("shape", [(10, 4), (20, 3), (80,), (30, 4), ()])
def test_the_whole_of_another_weight(shape):
    layer = plait.nn.EmbeddingBag(20, 4, mode="sum")
    layer.weight = torch.nn.Parameter(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"^the weight of embedding table 0 has shape \(.*\), but this rank's piece is "
                                         r"\(20, 4\)$"):
        layer.full_weight()

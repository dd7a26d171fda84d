"""plait.nn.EmbeddingBag, EmbeddingBags and plait.optim; embedding_checks.py and
embedding_refusals.py list the checks."""

import pytest
import torch

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

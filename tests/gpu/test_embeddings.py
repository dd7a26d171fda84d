"""plait.nn.EmbeddingBag and plait.optim on GPUs: the checks of tests/python/embedding_checks.py and
embedding_refusals.py."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from ranks import HERE, Ranks


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_on_ranks(ranks):
    if ranks > torch.cuda.device_count():
        pytest.skip(f"needs {ranks} GPUs, one per rank")
    Ranks(ranks, HERE / "embedding_checks.py", EMBEDDINGS_ON="gpu").succeed()

"""Graphs of papers, where they lie beside the checkout: the accuracy that was reported."""

import numpy as np
import pytest

from program import CHECKOUT

DATA = CHECKOUT.parent / "shared" / "data"
needs = {name: pytest.mark.skipif(not (DATA / f"{name}.npz").exists(), reason=f"no {name}.npz")
         for name in ("cora", "wiki-vote")}


@needs["cora"]
def test_cora(plait, tmp_path):
    """Kipf and Welling report 81.5; the mean over 3 seeds must not be far."""
    plait.ok("convert", DATA / "cora.npz", tmp_path / "cora.plait", "--undirected", "--no-loops")
    described = plait.json("info", tmp_path / "cora.plait")
    wanted = {"vertices": 2708, "feature_width": 1433, "classes": 7,
              "splits": [{"train": 140, "validation": 500, "test": 1000}]}
    assert {key: described[key] for key in wanted} == wanted
    train = ["train", tmp_path / "cora.plait", "--hidden", 16, "--epochs", 200, "--lr", 0.01,
             "--weight-decay", 5e-4, "--dropout", 0.5]
    accuracy = [plait.json(*train, "--seed", seed, "--ranks", 1 + seed % 2,
                           timeout=200)["test_accuracy"] for seed in range(3)]
    assert np.mean(accuracy) >= 0.80, accuracy


@needs["wiki-vote"]
def test_wiki_vote(plait, tmp_path):
    """A directed network: figures against NumPy."""
    with np.load(DATA / "wiki-vote.npz") as file:
        source, target = file["edge_index"].astype(np.int64)
    described = plait.json("info", DATA / "wiki-vote.npz")
    degree = np.bincount(target, minlength=described["vertices"])
    assert (described["vertices"], described["edges"]) == (7115, 103689)
    assert described["largest_degree"] == degree.max()
    assert described["isolated"] == (degree == 0).sum()
    made = plait.json("convert", DATA / "wiki-vote.npz", tmp_path / "g.plait", "--undirected")
    pairs = set(zip(source.tolist(), target.tolist()))
    assert made["edges"] == len(pairs | {(v, u) for u, v in pairs})

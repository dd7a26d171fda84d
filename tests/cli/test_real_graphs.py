"""Graphs of papers, if they lie beside the checkout: the reported accuracy is reached."""

import numpy as np
import pytest

from program import CHECKOUT

DATA = CHECKOUT.parent / "shared" / "data"
needs = {name: pytest.mark.skipif(not (DATA / f"{name}.npz").exists(), reason=f"no {name}.npz")
         for name in ("cora", "citeseer", "amazon-photo", "coauthor-cs", "wiki-vote")}


@pytest.mark.parametrize(("name", "least"), [
    pytest.param("cora", 81.0, marks=needs["cora"]),
    pytest.param("citeseer", 70.0, marks=needs["citeseer"]),
    pytest.param("amazon-photo", 89.5, marks=needs["amazon-photo"]),
    pytest.param("coauthor-cs", 91.0, marks=needs["coauthor-cs"]),
])
def test_accuracy(plait, tmp_path, name, least):
    """The defaults are used. Kipf and Welling report 81.5 and 70.3 on the first two. The mean over three
    seeds may be half a point under what ten must reach."""
    plait.ok("convert", DATA / f"{name}.npz", tmp_path / "g.plait", "--undirected", "--no-loops")
    accuracy = [100 * plait.json("train", tmp_path / "g.plait", "--seed", seed, "--ranks",
                                 1 + seed % 2)["test_accuracy"] for seed in range(3)]
    assert np.mean(accuracy) >= least, accuracy


@needs["wiki-vote"]
def test_wiki_vote(plait, tmp_path):
    """The figures of a directed network agree with NumPy."""
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

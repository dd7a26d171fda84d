"""plait.negative_sampling and plait.NonEdges against sets of pairs, and PyTorch Geometric's functions."""

import itertools
import pickle

import numpy
import pytest
import scipy.stats
import torch
import torch_geometric.utils

import plait


def edges(nodes=12, count=50, seed=0, targets=None):
    g = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randint(0, nodes, (count,), generator=g),
                        torch.randint(0, targets or nodes, (count,), generator=g)])


def pairs(edge_index):
    return list(map(tuple, edge_index.t().tolist()))


def non_edges(edge_index, sources, targets, keep=lambda u, v: True):
    known = set(pairs(edge_index))
    return {pair for pair in itertools.product(range(sources), range(targets)) if pair not in known and keep(*pair)}


@pytest.mark.parametrize("name,num_nodes,options,keep", [
    ("no loops", 12, {}, lambda u, v: u != v),
    ("loops", 12, {"loops": True}, lambda u, v: True),
    ("ascending", 12, {"ascending": True}, lambda u, v: u < v),
    ("two sets", (12, 7), {}, lambda u, v: True),
])
def test_all_pairs_and_no_others(name, num_nodes, options, keep):
    sources, targets = num_nodes if isinstance(num_nodes, tuple) else (num_nodes, num_nodes)
    edge_index = edges(targets=targets)
    expected = non_edges(edge_index, sources, targets, keep)
    found = plait.NonEdges(edge_index, num_nodes, **options)
    assert len(found) == len(expected)
    assert set(pairs(found.sample(10**6))) == expected
    some = pairs(found.sample(len(expected) - 5))
    assert len(set(some)) == len(some) == len(expected) - 5 and set(some) <= expected
    torch.manual_seed(3)
    drawn = found.sample(200 * len(expected), replace=True)
    counts = numpy.unique(pairs(drawn), axis=0, return_counts=True)[1]
    assert set(pairs(drawn)) == expected and scipy.stats.chisquare(counts).pvalue > 1e-4
    # Half of a pair's draws, given to another pair, are seen.
    assert scipy.stats.chisquare([counts[0] - 100, counts[1] + 100, *counts[2:]]).pvalue < 1e-4


@pytest.mark.parametrize("num_nodes", [None, 20, (12, 12)])
@pytest.mark.parametrize("count", [None, 7, 1.5])
@pytest.mark.parametrize("undirected", [False, True])
def test_as_pyg(num_nodes, count, undirected):
    edge_index = edges()
    theirs = torch_geometric.utils.negative_sampling(edge_index.clone(), num_nodes, count, force_undirected=undirected)
    torch.manual_seed(1)
    own = plait.negative_sampling(edge_index, num_nodes, count, force_undirected=undirected)
    assert own.shape == theirs.shape and own.dtype == theirs.dtype
    half = own
    if undirected and num_nodes != (12, 12):  # pairs (u, v), u < v, that are no edges, then (v, u)
        half = own[:, :own.size(1) // 2]
        assert own[:, half.size(1):].equal(half.flip(0)) and (half[0] < half[1]).all()
    assert not set(pairs(half)) & set(pairs(edge_index))
    torch.manual_seed(1)
    assert plait.negative_sampling(edge_index, num_nodes, count, "dense", undirected).equal(own)


def test_dense_graph():
    full = torch.tensor(list(itertools.product(range(40), repeat=2))).t()
    missing = torch.tensor([[3, 5, 39], [4, 30, 0]])
    kept = torch.tensor([pair not in pairs(missing) for pair in pairs(full)])
    assert set(pairs(plait.negative_sampling(full[:, kept], 40))) == set(pairs(missing))
    assert plait.negative_sampling(full, 40).shape == (2, 0)
    assert plait.NonEdges(full, 40).sample(5, replace=True).shape == (2, 0)


@pytest.mark.parametrize("loops", [True, False])
def test_structured(loops):
    edge_index = edges(9, 30, seed=2)
    i, j, k = plait.structured_negative_sampling(edge_index.repeat(1, 400), 9, loops)
    assert torch.stack([i, j]).equal(edge_index.repeat(1, 400))
    expected = non_edges(edge_index, 9, 9, lambda u, v: loops or u != v)
    found = list(zip(i.tolist(), k.tolist()))
    assert set(found) == {pair for pair in expected if pair[0] in set(edge_index[0].tolist())}
    for node in set(i.tolist()):
        counts = torch.bincount(k[i == node])
        assert scipy.stats.chisquare(counts[counts > 0].numpy()).pvalue > 1e-4


def test_seeds_and_copies():
    found = plait.NonEdges(edges(), 12)
    drawn = []
    for one in (found, pickle.loads(pickle.dumps(found)), plait.NonEdges(plait.Graph(edges(), 12))):
        torch.manual_seed(8)
        drawn.append(one.sample(20))
    assert drawn[0].equal(drawn[1]) and drawn[0].equal(drawn[2]) and not found.sample(20).equal(drawn[0])


def test_odd_inputs():
    none = torch.empty(2, 0, dtype=torch.long)
    assert plait.negative_sampling(edges(), num_neg_samples=0).equal(none)
    assert plait.negative_sampling(none).shape == (2, 0)
    assert set(pairs(plait.negative_sampling(none, 2, 9))) == {(0, 1), (1, 0)}
    assert plait.structured_negative_sampling(none, 3)[2].shape == (0,)


@pytest.mark.parametrize("call,message", [
    (lambda: plait.NonEdges(edges(), 5), r"edge_index\[0, \d+\] is \d+, outside 0\.\.4"),
    (lambda: plait.NonEdges(edges(), (12, 5)), r"edge_index\[1, \d+\] is \d+, outside 0\.\.4; correct it"),
    (lambda: plait.NonEdges(edges(), (12, 12), ascending=True), "pairs between two sets of nodes are not ascending"),
    (lambda: plait.NonEdges(edges(), -3), "num_nodes is -3; give a number of nodes"),
    (lambda: plait.NonEdges(edges(), (12, -1)), r"num_nodes is \(12, -1\); give a number"),
    (lambda: plait.NonEdges(edges(), (3,)), r"num_nodes is \(3,\); give a number"),
    (lambda: plait.NonEdges(edges(), 2.5), "num_nodes is 2.5; give a number"),
    (lambda: plait.NonEdges(edges(), (12, 12), loops=False), "have no loops to leave out"),
    (lambda: plait.NonEdges(edges(), ascending=True).targets(torch.tensor([1])), "leave ascending out"),
    (lambda: plait.NonEdges(edges()).targets(torch.tensor([1.5])), "source holds torch.float32; use integers"),
    (lambda: plait.negative_sampling(edges(), num_neg_samples=-1), "the number of pairs is -1; it must be at least 0"),
    (lambda: plait.negative_sampling(edges(), method="fast"), "method is 'fast'; give 'sparse' or 'dense'"),
    (lambda: plait.NonEdges(edges(), 12).targets(torch.tensor([12])), r"source 0 is 12, outside 0\.\.11"),
    (lambda: plait.structured_negative_sampling(torch.tensor([[0, 0], [0, 1]]), 2),
     "vertex 0 has edges to all 2 vertices, so that no other pair of it can be drawn"),
])
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()

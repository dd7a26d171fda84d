"""bench/nn/sampled_accuracy.py and its oracle: the sampler against plain loops, the weights against torch_geometric,
and a short comparison from end to end."""

import json
import sys

import numpy as np
import pytest
import scipy.stats
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import k_hop_subgraph

from loader_checks import edges_into, graph
from ranks import HERE, alone
from test_checkpoint import run

FOLDER = HERE.parents[1] / "bench/nn"
sys.path.insert(0, str(FOLDER))

import pyg_sampled  # noqa: E402
import sampled_accuracy  # noqa: E402


@pytest.mark.parametrize("for_all", [False, True])
@pytest.mark.parametrize("fanouts", [[3], [4, 2], [500, 1, 2]])
def test_sampler_hop_by_hop(fanouts, for_all):
    data = graph()
    sampler, into = pyg_sampled.Sampler(data.edge_index, 60), edges_into(data)
    torch.manual_seed(1)
    for _ in range(5):
        ids, hops = sampler.draw(torch.tensor([7, 2, 59, 3]), fanouts, for_all)
        assert ids[:4].tolist() == [7, 2, 59, 3] and ids.unique().numel() == ids.numel()
        found = targets = {7, 2, 59, 3}
        for fanout, hop in zip(fanouts, hops):
            hop = list(zip(*ids[hop].tolist()))
            assert {target for _, target in hop} <= targets
            for v in targets:
                sources = [source for source, target in hop if target == v]
                there = data.edge_index[0, into[v]].tolist()
                assert len(sources) == min(fanout, len(there))
                assert all(sources.count(u) <= there.count(u) for u in sources)
            fresh = {source for source, _ in hop} - found
            found = found | fresh
            targets = found if for_all else fresh
        assert sorted(found) == sorted(ids.tolist())


def test_sampler_takes_all_neighbours():
    data = graph(edges=80)
    ids, hops = pyg_sampled.Sampler(data.edge_index, 60).draw(torch.tensor([4, 9]), [1000, 1000])
    nodes, _, _, kept = k_hop_subgraph([4, 9], 2, data.edge_index, num_nodes=60, directed=True)
    assert torch.equal(ids.sort().values, nodes) and torch.cat(hops, 1).size(1) == int(kept.sum())


def test_sampler_draws_edges_equally_often():
    """Chi-square of the sources of 4 in 40 edges without repetition."""
    sampler = pyg_sampled.Sampler(torch.stack([torch.arange(1, 41), torch.zeros(40, dtype=torch.long)]), 41)
    torch.manual_seed(2)
    counts = torch.zeros(41)
    for _ in range(2000):
        counts[sampler.draw(torch.tensor([0]), [4])[0]] += 1
    chi = float((counts[1:] - 200).square().sum() / 200) / (1 - 4 / 40)
    assert chi < scipy.stats.chi2.ppf(0.9999, 39)


def test_weights_of_the_whole_graph_are_those_of_gcn():
    data = graph()
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]  # GCN gives each node one loop
    degree = data.edge_index[1].bincount(minlength=60)
    index, weight = pyg_sampled.weighted(torch.arange(60), data.edge_index, degree)
    wanted_index, wanted = gcn_norm(data.edge_index, num_nodes=60)
    assert torch.equal(index, wanted_index) and torch.allclose(weight, wanted)


def test_weights_of_samples_estimate_those_of_the_graph():
    data = graph()
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    degree = data.edge_index[1].bincount(minlength=60)
    wanted = torch.zeros(60).index_add_(0, data.edge_index[0], 1 / (degree[data.edge_index[0]] + 1.0).sqrt()
                                        * (data.edge_index[1] == 2) / (degree[2] + 1.0).sqrt())
    sampler, found = pyg_sampled.Sampler(data.edge_index, 60), torch.zeros(60)
    torch.manual_seed(3)
    for _ in range(4000):
        ids, (edges,) = sampler.draw(torch.tensor([2]), [9])
        index, weight = pyg_sampled.weighted(ids, edges, degree)
        found.index_add_(0, ids[index[0, :edges.size(1)]], weight[:edges.size(1)] / 4000)
    assert torch.allclose(found, wanted, rtol=0.25, atol=1e-3)


def test_intervals():
    """Against Welch's formula, and Student's quantile of SciPy for its degrees of freedom."""
    a, b = np.array([1.0, 2.0, 4.0, 4.5]), np.array([2.0, 2.5, 2.75, 3.0, 3.5])
    difference, half = sampled_accuracy.differ(list(a), list(b))
    u, v = a.var(ddof=1) / 4, b.var(ddof=1) / 5
    free = (u + v) ** 2 / (u * u / 3 + v * v / 4)
    assert difference == pytest.approx(a.mean() - b.mean())
    assert half == pytest.approx(scipy.stats.t.ppf(0.975, free) * (u + v) ** 0.5)


def test_from_end_to_end(tmp_path):
    run("generate", "dcsbm", "--vertices", 600, "--edges", 6000, "-o", tmp_path / "g.plait")
    [out] = alone(FOLDER / "sampled_accuracy.py", tmp_path / "g.plait", "--models", "sage", "gcn", "gat", "--share", 0.5,
                  "--epochs", 8, "--whole-epochs", 60, "--batch", 32, "--seeds", 2, "--json",
                  tmp_path / "a.json").succeed(300)
    found = [json.loads(line) for line in (tmp_path / "a.json").read_text().splitlines()]
    ways = [(one["case"]["model"], one["case"]["way"]) for one in found]
    assert ways == [(kind, way) for kind in ("sage", "gcn", "gat") for way in sampled_accuracy.WAYS]
    for one in found:  # the graph is easy: all ways learn it
        assert one["mean"] > 85 and len(one["validation"]) == 4, one
    assert all(out.count(f"sampled - {way}:") == 3 for way in ("whole", "pyg", "alike"))

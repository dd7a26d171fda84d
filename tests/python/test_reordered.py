"""plait.Graph(..., reorder=...) and plait.parallelize(..., reorder=...): the same results in the caller's order."""

import pytest
import torch
import torch_geometric.nn as pyg

import plait
import reordered_cases
from ranks import HERE, Ranks
from reordered_cases import CLASSES, MODELS, NODES, WIDTH, make_data


@pytest.mark.parametrize("check", ["check_models", "check_graphs", "check_owners"])
def test_the_same_on_one_rank(check):
    getattr(reordered_cases, check)()


def test_the_same_on_two_ranks():
    Ranks(2, HERE / "reordered_cases.py").succeed()


def test_files_and_what_a_graph_says(tmp_path):
    data = make_data()
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in data.edge_index.t().tolist()))
    plain, graph = plait.Graph.load(path), plait.Graph.load(path, reorder="communities")
    assert torch.equal(plain.edge_index, graph.edge_index) and (plain.reorder, graph.reorder) == ("none", "communities")
    x = torch.randn(plain.num_nodes, 5)
    torch.testing.assert_close(plait.aggregate(graph, x), plait.aggregate(plain, x))
    # The work is in another order indeed.
    assert graph.adjacency()._owners.order is not None and plain.adjacency()._owners is None


def test_advice_is_taken():
    data = make_data()
    advice = plait.advise(MODELS["gcn"](), data)
    assert advice.reorder == "communities" and "reorder    communities" in str(advice)
    _, spread = advice.apply(MODELS["gcn"](), data)
    assert spread.edge_index.reorder == "communities"
    ordered = data.edge_index.div(10, rounding_mode="floor")  # nodes read near ones already
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    assert plait.advise(MODELS["gcn"](), plait.Graph(ring, NODES)).reorder == "none"
    asked = plait.Graph(ordered, NODES, reorder="degree")
    assert plait.advise(pyg.GCN(WIDTH, 8, 2, CLASSES), asked).reorder == "degree"


@pytest.mark.parametrize("make", [lambda g: plait.Graph(make_data().edge_index, reorder="luck"),
                                  lambda g: plait.parallelize(MODELS["gcn"](), make_data(), reorder="luck")])
def test_unknown_orders(make):
    with pytest.raises(ValueError, match="order 'luck' .*communities"):
        make(None)


@pytest.mark.parametrize("what,own,other", [("partition", "hash", "edges"), ("strategy", "bulk", "get"),
                                            ("reorder", "degree", "rcm")])
def test_a_graph_keeps_what_it_has(what, own, other):
    """An argument that would be ignored is refused."""
    data = make_data()
    graph = plait.Graph(data, **{what: own})
    spread = plait.spread(graph, **{what: own})
    for given in (graph, spread):
        with pytest.raises(ValueError, match=f"{what} is '{other}', but the plait.Graph has '{own}'"):
            plait.parallelize(MODELS["gcn"](), given, **{what: other})

"""Graphs that are worked on in another order than that of their ids, beside the same graphs in that order. As a
program, it compares them on its ranks."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.data import Data

import advice_on_ranks
import plait
from edges import assert_close

NODES, WIDTH, CLASSES = 120, 6, 3
ORDERS = ("communities", "degree", "rcm", "boba", "metis", "auto")
MODELS = {
    "gcn": lambda: pyg.GCN(WIDTH, 8, 2, CLASSES, dropout=0.5),
    "gat": lambda: pyg.GAT(WIDTH, 8, 2, CLASSES, heads=2, dropout=0.4),
    "sage max": lambda: pyg.GraphSAGE(WIDTH, 8, 2, CLASSES, aggr="max"),
    "by edge": lambda: pyg.GAT(WIDTH, 8, 2, CLASSES, v2=True),
}


def make_data():
    """Communities of ten nodes whose ids are shuffled, with loops, parallel edges, weights and nodes without edges."""
    random = torch.Generator().manual_seed(4)
    ids = torch.randperm(NODES, generator=random)
    ends = torch.randint(0, 10, (2, 700), generator=random) + 10 * torch.randint(0, NODES // 10 - 1, (700,), generator=random)
    edges = torch.cat([ends, torch.randint(0, NODES - 10, (2, 60), generator=random), ends[:, :30]], 1)
    return Data(x=torch.randn(NODES, WIDTH, generator=random), edge_index=ids[edges],
                y=torch.randint(0, CLASSES, (NODES,), generator=random), train_mask=torch.arange(NODES) % 3 > 0)


def weight_of(data):
    return torch.rand(data.edge_index.size(1), generator=torch.Generator().manual_seed(6)) + 0.5


def train(name, data, **options):
    """Returns the losses of some steps, the scores of all nodes afterwards, and the graph."""
    torch.manual_seed(5)
    model, data = plait.parallelize(MODELS[name](), data, **options)
    losses = advice_on_ranks.train(model, data)
    model.eval()
    with torch.no_grad():
        out = model(data.x, data.edge_index)
    return losses, data.edge_index.gather(out), data.edge_index


def check_models():
    data = make_data()
    for name in MODELS:
        losses, out, _ = train(name, data)
        for order in ("communities", "degree") if name == "gcn" else ("communities",):
            again, found, graph = train(name, data, reorder=order)
            assert_close(again, losses, 1e-5)
            assert_close(found, out, 1e-4)
            assert graph.reorder == order and torch.equal(graph.edge_index, data.edge_index)
            assert torch.equal(graph.gather(graph.vertices), torch.arange(NODES))


def check_graphs():
    """Sums and their gradients, of the first and of the second order, on graphs with and without weights."""
    data = make_data()
    for weight in (None, weight_of(data)):
        plain = plait.Graph(data.edge_index, NODES, weight)
        for order in ORDERS:
            graph = plait.Graph(data.edge_index, NODES, weight, reorder=order)
            for op in ("sum", "mean", "max", "min", "weighted"):
                results = []
                for one in (plain, graph):
                    x = one.own(data.x).clone().requires_grad_()
                    y = plait.aggregate(one, x, op) if op in ("sum", "mean", "weighted") else \
                        one.adjacency().aggregate(x, op)
                    second = op in ("sum", "mean", "weighted")
                    (first,) = torch.autograd.grad((y ** 3).sum(), x, create_graph=second)
                    found = [y.detach(), first.detach()]
                    if second:
                        found.append(torch.autograd.grad((first ** 2).sum(), x)[0])
                    results.append([one.gather(rows) for rows in found])
                for found, wanted in zip(*reversed(results)):
                    assert_close(found, wanted, 1e-4)
            for rows in (data.x.repeat(2, 1), graph.own(data.x)[:-1], data.x[:0]):  # not one per own node
                with pytest.raises(ValueError, match="must have one row for each of"):
                    plait.aggregate(graph, rows)
            ids = torch.tensor([5, 0, NODES - 1, 5])
            assert torch.equal(plait.gather(graph.own(data.x), ids, graph), data.x[ids])
    assert all((graph.vertices[1:] > graph.vertices[:-1]).tolist())


def check_owners():
    """Ranks get the communities that the order puts side by side, so that fewer edges are cut."""
    data = make_data()
    cut = {}
    for order in ("none", "communities"):
        graph = plait.spread(data, reorder=order).edge_index
        owner = graph.gather(torch.full((graph.num_own,), plait.rank()))
        cut[order] = int((owner[data.edge_index[0]] != owner[data.edge_index[1]]).sum())
    assert plait.world_size() == 1 or cut["communities"] < 0.6 * cut["none"], cut


def main():
    for check in (check_models, check_graphs, check_owners):
        check()


if __name__ == "__main__":
    main()

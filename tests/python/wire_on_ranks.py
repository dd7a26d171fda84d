"""Ranks whose sums bring rows of other ranks as bfloat16: values and gradients against torch's, which rounds remote
rows; what is refused; and the losses of a training run, which are printed."""

import json

import torch
from torch_geometric.nn import GAT, GCN

import plait
from advice_on_ranks import make, train
from spread_layers import make_data

NODES, WIDTHS = 37, (1, 3, 17)


def sums(index, x, owner):
    """Returns the sums over neighbours, where the rows of other ranks are rounded."""
    source, target = index
    crosses = (owner[source] != owner[target])[:, None]
    rows = torch.where(crosses, x[source].bfloat16().float(), x[source])
    return torch.zeros_like(x).index_add(0, target, rows)


def check_sums():
    draw = torch.Generator().manual_seed(3)
    index = torch.randint(NODES, (2, 300), generator=draw)
    graph = plait.Graph(index, NODES, partition="hash", wire="bf16")
    owner = graph.gather(torch.full((graph.num_own, 1), float(plait.rank())))[:, 0]
    for width in WIDTHS:
        x, gradient = (torch.randn(NODES, width, generator=draw) for _ in range(2))
        own = graph.own(x).clone().requires_grad_()
        y = plait.aggregate(graph, own)
        torch.testing.assert_close(y, graph.own(sums(index, x, owner)), rtol=1e-5, atol=1e-5)
        assert not torch.allclose(y, graph.own(torch.zeros_like(x).index_add(0, index[1], x[index[0]])), atol=1e-4)
        largest = torch.full_like(x, -torch.inf).scatter_reduce(0, index[1:].T.expand(-1, width), x[index[0]], "amax")
        assert graph.adjacency().aggregate(graph.own(x), "max").equal(graph.own(largest))  # rows as they are
        y.backward(graph.own(gradient))
        torch.testing.assert_close(own.grad, graph.own(sums(index.flip(0), gradient, owner)), rtol=1e-5, atol=1e-5)


def refusal(body):
    try:
        body()
    except ValueError as error:
        return str(error)
    raise AssertionError("it was not refused")


def check_refusals():
    data, index = make_data(), torch.tensor([[0, 1], [1, 2]])
    assert "no layer of the model" in refusal(lambda: plait.parallelize(make(GAT), data, wire="bf16"))
    assert "fp32 or bf16" in refusal(lambda: plait.parallelize(make(GCN), data, wire="fp8"))
    assert "strategy get" in refusal(lambda: plait.parallelize(make(GCN), data, strategy="get", wire="bf16"))
    assert "strategy paged" in refusal(lambda: plait.Graph(index, 3, strategy="paged", wire="bf16"))
    graph = plait.Graph(index, 3, wire="bf16")
    assert "wire is 'fp32', but the plait.Graph has 'bf16'" in refusal(lambda: plait.spread(graph, wire="fp32"))
    model, spread_data = plait.parallelize(make(GCN), data)
    assert "wire is 'bf16', but the plait.Graph has 'fp32'" in refusal(lambda: plait.spread(spread_data, wire="bf16"))
    other = "bf16" if plait.rank() == 0 else "fp32"
    assert "the type of rows on the wire" in refusal(lambda: plait.spread(data, wire=other))


def main():
    check_sums()
    check_refusals()
    losses = {}
    for wire in ("fp32", "bf16"):
        model, data = plait.parallelize(make(GCN), make_data(), wire=wire)
        assert data.edge_index.wire == wire
        losses[wire] = train(model, data)
    print(json.dumps(losses))


if __name__ == "__main__":
    main()

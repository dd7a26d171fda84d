"""Ranks that take advice, and print what they were told and the losses of a training run."""

import json
import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GAT, GCN

import plait
from spread_layers import CLASSES, HIDDEN, WIDTH, make_data


def train(model, data, steps=4):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        out = model(data.x, data.edge_index)
        loss = plait.mean(F.cross_entropy(out[data.train_mask], data.y[data.train_mask], reduction="none"))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def make(kind):
    torch.manual_seed(5)
    return kind(WIDTH, HIDDEN, 2, CLASSES)


def main():
    result = {}
    for kind in (GCN, GAT):
        model, data = make(kind), make_data()
        advice = plait.advise(model, data)
        spread_model, spread_data = advice.apply(model, data)
        edges = plait.sum(torch.tensor([spread_data.num_edges])).item()
        nodes = plait.sum(torch.tensor([spread_data.num_nodes])).item()
        assert (edges, nodes) == (data.num_edges, data.num_nodes)
        assert spread_data.num_edges == spread_data.edge_attr.size(0)
        chosen_alone = plait.parallelize(make(kind), data)[1].edge_index
        if plait.world_size() > 1:
            assert (chosen_alone.partition, chosen_alone.strategy) == (advice.partition, advice.strategy)
        result[kind.__name__] = {"text": str(advice), "partition": advice.partition,
                                 "strategy": advice.strategy, "losses": train(spread_model, spread_data),
                                 "alternatives": len(advice.alternatives)}
    elsewhere = plait.advise(make(GCN), make_data(), ranks=7)
    assert elsewhere.ranks == 7
    try:
        elsewhere.apply(make(GCN), make_data())
    except ValueError as error:
        assert "7 ranks" in str(error)
    else:
        raise AssertionError("advice for 7 ranks was applied")
    print(json.dumps(result))
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Models of PyTorch Geometric and a graph, to train as they are and spread over ranks.

As a program, it trains all of them spread, and prints each rank's results as JSON; with `cuda`, on as
many GPUs as there are ranks."""

import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.data import Data

NODES, WIDTH, CLASSES, STEPS = 70, 9, 3, 5


def error_of(call):
    """Returns the type and the text of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def make_data(weighted=False):
    """A directed graph with loops, duplicates and isolated last nodes; few of the first nodes are
    for training, so that a rank may have none."""
    random = np.random.default_rng(5)
    index = random.integers(0, NODES - 4, (2, 300)) ** 2 // (NODES - 4)  # low ids are hubs
    index = np.concatenate([index, index[:, :20]], 1)
    x = random.standard_normal((NODES, WIDTH)).astype(np.float32) + 2
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(index),
        y=torch.from_numpy(random.integers(0, CLASSES, NODES)),
        train_mask=torch.arange(NODES) < 25,
        val_mask=torch.arange(NODES) >= 50,
    )
    if weighted:
        weight = random.uniform(0.5, 2, index.shape[1]).astype(np.float32)
        data.edge_weight = torch.from_numpy(weight)
    return data


class TwoLayers(torch.nn.Module):
    """A model as people write it, with functional dropout and activation, and a layer for all rows."""

    def __init__(self, conv, dropout=0.0, norm=None, **options):
        super().__init__()
        self.conv1 = conv(WIDTH, 16, **options)
        self.norm = norm or torch.nn.Identity()
        self.mix = torch.nn.Linear(16, 12)
        self.conv2 = conv(12, CLASSES, **options)
        self.unused = torch.nn.Linear(2, 2)  # gets no gradient: Adam must leave it alone
        self.p = dropout

    def forward(self, x, edge_index, edge_weight=None):
        given = () if edge_weight is None else (edge_weight,)
        x = F.dropout(x, self.p, training=self.training)
        x = self.norm(self.conv1(x, edge_index, *given)).relu()
        x = F.dropout(self.mix(x), self.p, self.training)
        return self.conv2(x, edge_index, *given)


def basic(kind, **options):
    return kind(WIDTH, 16, num_layers=3, out_channels=CLASSES, **options)


# Name: the model, whether edges have weights, and the partition that ranks use.
CASES = {
    "gcn": (lambda: TwoLayers(pyg.GCNConv), False, "edges"),
    "gcn weighted": (lambda: TwoLayers(pyg.GCNConv, improved=True), True, "hash"),
    "gcn batch norm": (
        lambda: TwoLayers(pyg.GCNConv, norm=torch.nn.BatchNorm1d(16)),
        False,
        "edges",
    ),
    "model batch norm": (lambda: basic(pyg.GCN, norm="batch", jk="cat"), False, "metis"),
    "cumulative norm": (
        lambda: TwoLayers(pyg.GCNConv, norm=pyg.BatchNorm(16, momentum=None, affine=False)),
        False,
        "vertices",
    ),
    "sage": (lambda: TwoLayers(pyg.SAGEConv, normalize=True, project=True), False, "metis"),
    "sage max": (lambda: TwoLayers(pyg.SAGEConv, aggr="max"), False, "edges"),
    "model sage": (lambda: basic(pyg.GraphSAGE, jk="max", bias=False), False, "hash"),
    "gat": (
        lambda: TwoLayers(pyg.GATConv, heads=4, concat=False, residual=True),
        False,
        "vertices",
    ),
    "model gat": (lambda: basic(pyg.GAT, heads=4, act="elu"), False, "edges"),
    "gin": (
        lambda: TwoLayers(lambda a, b: pyg.GINConv(torch.nn.Linear(a, b), 0.1, True)),
        False,
        "hash",
    ),
    "model gin": (lambda: basic(pyg.GIN, norm="batch"), False, "edges"),
    "graph convolution": (lambda: TwoLayers(pyg.GraphConv, aggr="mean"), True, "hash"),
    "sg": (lambda: TwoLayers(pyg.SGConv, K=2), True, "edges"),
    "tag": (lambda: TwoLayers(pyg.TAGConv, K=2), True, "clusters"),
    "layer norm": (
        lambda: TwoLayers(pyg.GCNConv, norm=pyg.LayerNorm(16, mode="node")),
        False,
        "hash",
    ),
}
# The same models with dropout are compared between numbers of ranks.
DROPPED = {
    "dropout": (lambda: TwoLayers(pyg.GCNConv, 0.5), False, "edges"),
    "attention dropout": (lambda: basic(pyg.GAT, heads=2, dropout=0.5), False, "hash"),
    "model dropout": (lambda: basic(pyg.GCN, dropout=0.4, norm="batch"), False, "hash"),
}


def train(model, data, mean, gather=lambda rows: rows):
    """Returns losses, gradients of the first step, and the model's output at the end."""
    # eps: a bias before a batch norm has no gradient but rounding, of which Adam would make steps.
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01, eps=1e-4)
    arguments = [data.x, data.edge_index]
    if "edge_weight" in data:
        arguments.append(data.edge_weight)
    result = {"losses": [], "gradients": {}}
    for step in range(STEPS):
        model.train()
        optimizer.zero_grad()
        out = model(*arguments)
        mask = data.train_mask
        loss = mean(F.cross_entropy(out[mask], data.y[mask], reduction="none"))
        loss.backward()
        if step == 0:
            result["gradients"] = {
                n: p.grad.tolist() for n, p in model.named_parameters() if p.grad is not None
            }
        optimizer.step()
        result["losses"].append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(*arguments)
        result["accuracy"] = float(mean((out.argmax(1) == data.y)[data.val_mask].float()))
        result["out"] = gather(out).tolist()
    result["weights"] = {name: value.tolist() for name, value in model.state_dict().items()}
    return result


def train_plainly(name):
    make, weighted, _ = CASES[name]
    torch.manual_seed(1)
    return train(make(), make_data(weighted), torch.mean)


def train_spread(case, device="cpu"):
    import plait

    make, weighted, partition = case
    torch.manual_seed(1)
    model, data = make().to(device), make_data(weighted).to(device)
    model, data = plait.parallelize(model, data, partition=partition)
    return train(model, data, plait.mean, data.edge_index.gather)


if __name__ == "__main__":
    place = f"cuda:{os.environ['RANK']}" if "cuda" in sys.argv else "cpu"
    results = {name: train_spread(case, place) for name, case in {**CASES, **DROPPED}.items()}
    json.dump(results, sys.stdout)

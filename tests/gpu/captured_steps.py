"""Runs training steps that torch.cuda.graph has captured, and the same steps one by one, on each rank.
Prints [{model: [losses captured, losses one by one]}, the refusal after that] as JSON."""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.data import Data

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from edges import random_edges

import plait

INPUTS, CLASSES, BEFORE, STEPS = 7, 5, 3, 6
MODELS = {
    "gcn": lambda: pyg.GCN(INPUTS, 10, 2, CLASSES, dropout=0.3),
    "sage": lambda: pyg.GraphSAGE(INPUTS, 10, 2, CLASSES),
    "gin": lambda: pyg.GIN(INPUTS, 10, 2, CLASSES),
    "gat": lambda: pyg.GAT(INPUTS, 12, 2, CLASSES, heads=2, dropout=0.4),
}


def losses(name, captured):
    torch.manual_seed(3)
    edges = random_edges(4)
    data = Data(x=torch.randn(edges.num_nodes, INPUTS), edge_index=edges.index,
                y=torch.randint(CLASSES, (edges.num_nodes,)))
    model, data = plait.parallelize(MODELS[name]().to(plait.device()), data.to(plait.device()))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        out = model(data.x, data.edge_index)
        loss = plait.mean(F.cross_entropy(out, data.y, reduction="none"))
        loss.backward()
        optimizer.step()
        return loss.detach()

    with torch.no_grad():  # on the default stream, which cannot be captured itself
        plait.mean(model.eval()(data.x, data.edge_index))
    model.train()
    found = []
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        found += [step().item() for _ in range(BEFORE)]
        side.synchronize()
    if not captured:
        return found + [step().item() for _ in range(STEPS)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(STEPS):
        graph.replay()
        found.append(loss.item())
    plait.check()
    return found


def refused_after_capture():
    """Returns the error of rows that would move the room that a captured step uses."""
    edges = random_edges(4)
    graph = plait.Graph(edges.index.to(plait.device()), edges.num_nodes)
    x = torch.ones(graph.num_own, 400, device=plait.device())
    with torch.cuda.stream(torch.cuda.Stream()):
        plait.aggregate(graph, x[:, :8].contiguous(), "sum")
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        plait.aggregate(graph, x[:, :8].contiguous(), "sum")
    try:
        plait.aggregate(graph, x, "sum")
    except ValueError as error:
        return str(error)


if __name__ == "__main__":
    torch.cuda.set_device(plait.device())
    results = {name: [losses(name, True), losses(name, False)] for name in MODELS}
    print(json.dumps([results, refused_after_capture()]))

"""Ranks that spread a graph for which plait tune has kept times."""

import json
import sys

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import plait
from advice_on_ranks import make, train
from spread_layers import CLASSES, WIDTH


def data_of(path):
    graph = plait.Graph.load(path)
    nodes = graph.num_nodes
    random = torch.Generator().manual_seed(3)
    return Data(x=torch.randn(nodes, WIDTH, generator=random), edge_index=graph.edge_index,
                y=torch.randint(0, CLASSES, (nodes,), generator=random),
                train_mask=torch.arange(nodes) % 2 == 0)


def main():
    data = data_of(sys.argv[1])
    advice = plait.advise(make(GCN), data)
    asked = plait.advise(make(GCN), data, partition="hash")
    model, own = plait.parallelize(make(GCN), data)
    graph = own.edge_index
    whole = plait.Graph.load(sys.argv[1])
    plait.parallelize(make(GCN), whole)
    used = plait.Graph.load(sys.argv[1])
    assert used.vertices.numel() == used.num_own
    plait.parallelize(make(GCN), used)
    print(json.dumps({
        "partition": graph.partition, "strategy": graph.strategy, "ways": len(advice.alternatives),
        "reasons": advice.reasons, "asked": [asked.partition, asked.strategy], "losses": train(model, own),
        "whole": [whole.partition, whole.strategy], "used": [used.partition, used.strategy],
        "standard losses": train(*plait.parallelize(make(GCN), data, partition="edges", strategy="auto"))}))


if __name__ == "__main__":
    main()

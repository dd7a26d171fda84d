"""GraphSAGE of PyTorch Geometric, trained from a graph file that stays where it is: each batch reads its rows of
features from the mapped file, so that features may be larger than memory.

plait generate dcsbm -o graph.plait && python examples/sample_file.py graph.plait
"""

import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GraphSAGE

import plait
from plait.loader import NeighborLoader

torch.manual_seed(0)
stores = features, edges = plait.store.load(sys.argv[1])
train, test = (features[None, f"{part}_mask", None] for part in ("train", "test"))  # group None: all nodes
_, width = features.get_tensor_size(None, "x")
classes = int(features[None, "y", None].max()) + 1

model = GraphSAGE(width, 64, num_layers=2, out_channels=classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(1, 11):
    for batch in NeighborLoader(stores, num_neighbors=[10, 5], input_nodes=train, batch_size=32, shuffle=True):
        seeds = slice(0, batch.batch_size)
        optimizer.zero_grad()
        F.cross_entropy(model(batch.x, batch.edge_index)[seeds], batch.y[seeds]).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((model(batch.x, batch.edge_index).argmax(1) == batch.y)[:batch.batch_size].sum())
                    for batch in NeighborLoader(stores, [-1, -1], input_nodes=test, batch_size=512))
    print(f"epoch {epoch}: test accuracy {right / int(test.sum()):.4f}")

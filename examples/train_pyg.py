"""A GCN of PyTorch Geometric, trained on one graph that is spread over processes.

torchrun --standalone --nproc-per-node 2 examples/train_pyg.py cora.npz    # the same result as: python ...
"""

import sys

import torch
import torch.nn.functional as F
from torch_geometric.nn import GCN

import plait

torch.manual_seed(0)
device = plait.device()  # this rank's GPU, or the CPU
data = plait.Graph.load(sys.argv[1]).to(device)  # or a torch_geometric.data.Data
model = GCN(data.x.size(1), 16, 2, int(data.y.max()) + 1, dropout=0.5).to(device)
model, data = plait.parallelize(model, data)  # from here on: rows of this rank's nodes
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def accuracy(mask):
    model.eval()
    with torch.no_grad():
        out = model(data.x, data.edge_index)
    return plait.mean(out.argmax(1)[mask] == data.y[mask]).item()  # over all ranks


for epoch in range(100):
    model.train().zero_grad()
    out = model(data.x, data.edge_index)[data.train_mask]
    loss = plait.mean(F.cross_entropy(out, data.y[data.train_mask], reduction="none"))
    loss.backward()  # gradients come out summed over ranks
    optimizer.step()
    if plait.rank() == 0 and epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {loss.item():.6f}")

test = accuracy(data.test_mask)
if plait.rank() == 0:
    print(f"{plait.world_size()} ranks: test accuracy {test:.4f}")

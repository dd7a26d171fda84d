"""GraphSAGE of PyTorch Geometric, trained on sampled neighbourhoods: as on Reddit, but on a graph that is
made here. Only the loader's import differs from PyTorch Geometric.

python examples/sample_nodes.py
"""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import stochastic_blockmodel_graph

from plait.loader import NeighborLoader  # instead of: from torch_geometric.loader import NeighborLoader

torch.manual_seed(0)
y = torch.arange(8).repeat_interleave(250)  # communities, which are the classes
edge_index = stochastic_blockmodel_graph([250] * 8, torch.full((8, 8), 0.004) + 0.04 * torch.eye(8))
data = Data(x=torch.randn(2000, 16) + F.one_hot(y, 16), edge_index=edge_index, y=y)
data = RandomNodeSplit(num_val=0.1, num_test=0.3)(data)

loader = NeighborLoader(data, num_neighbors=[10, 5], input_nodes=data.train_mask, batch_size=256, shuffle=True)
whole = NeighborLoader(data, num_neighbors=[-1, -1], input_nodes=data.test_mask, batch_size=256)
model = GraphSAGE(16, 64, num_layers=2, out_channels=8, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def scores(batch):
    out = model(batch.x, batch.edge_index, num_sampled_nodes_per_hop=batch.num_sampled_nodes,
                num_sampled_edges_per_hop=batch.num_sampled_edges)
    return out[:batch.batch_size], batch.y[:batch.batch_size]  # of the seeds, which come first


def train():
    model.train()
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(*scores(batch))
        loss.backward()
        optimizer.step()
        total += loss.item() * batch.batch_size
    return total / int(data.train_mask.sum())


@torch.no_grad()
def test():
    model.eval()
    right = sum(int((out.argmax(1) == wanted).sum()) for out, wanted in map(scores, whole))
    return right / int(data.test_mask.sum())


for epoch in range(1, 6):
    print(f"epoch {epoch}: loss {train():.4f}, test accuracy {test():.4f}")

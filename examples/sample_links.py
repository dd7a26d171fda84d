"""Link prediction of PyTorch Geometric, trained on sampled neighbourhoods of edges and of as many random
pairs. Only the loader's import differs from PyTorch Geometric.

python examples/sample_links.py
"""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import stochastic_blockmodel_graph

from plait.loader import LinkNeighborLoader  # instead of: from torch_geometric.loader import ...

torch.manual_seed(0)
block = torch.arange(8).repeat_interleave(250)
edge_index = stochastic_blockmodel_graph([250] * 8, torch.full((8, 8), 0.001) + 0.04 * torch.eye(8))
data = Data(x=torch.randn(2000, 16) + F.one_hot(block, 16), edge_index=edge_index)
split = RandomLinkSplit(num_val=0.0, num_test=0.2, is_undirected=True, add_negative_train_samples=False)
train_data, _, test_data = split(data)

loader = LinkNeighborLoader(train_data, num_neighbors=[10, 5], edge_label_index=train_data.edge_label_index,
                            neg_sampling="binary", batch_size=512, shuffle=True)
whole = LinkNeighborLoader(test_data, num_neighbors=[-1, -1], edge_label_index=test_data.edge_label_index,
                           edge_label=test_data.edge_label, batch_size=512)
model = GraphSAGE(16, 64, num_layers=2, out_channels=32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)


def scores(batch):
    source, target = model(batch.x, batch.edge_index)[batch.edge_label_index]
    return (source * target).sum(1)


def train():
    total = 0.0
    for batch in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(scores(batch), batch.edge_label)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    return total


@torch.no_grad()
def auc():
    """The share of pairs of an edge and a random pair in which the edge has the greater score."""
    found = torch.cat([scores(batch) for batch in whole])
    is_edge = test_data.edge_label > 0
    return float((found[is_edge][:, None] > found[~is_edge]).float().mean())


for epoch in range(6):
    loss = f", loss {train():.4f}" if epoch else ""
    print(f"epoch {epoch}{loss}: AUC {auc():.4f}")

"""A small DLRM (deep learning recommendation model) whose embedding tables are spread over processes, trained on
clicks that are made here.

torchrun --standalone --nproc-per-node 2 examples/dlrm.py    # the same result as: python examples/dlrm.py
"""

import torch
import torch.nn.functional as F

import plait
from plait.nn import EmbeddingBags
from plait.world import all_reduce

DEVICE = plait.device()  # this rank's GPU, or the CPU
TABLES, KEYS, WIDTH, BATCH = [20000, 3000, 300, 40], [3, 2, 1, 1], 16, 1024  # keys per sample of each table
torch.manual_seed(0)
taste = [torch.randn(n) for n in TABLES]  # what the model is to find out: how much each key is liked
taste_of_dense = torch.randn(8)


def batch(number):
    """Returns dense features, keys, the offsets of bags, and clicks, of this rank's share of a batch."""
    random = torch.Generator().manual_seed(number)
    dense = torch.randn(BATCH, 8, generator=random)
    keys = [(n * torch.rand(BATCH, k, generator=random) ** 3).long() for n, k in zip(TABLES, KEYS)]
    liking = dense @ taste_of_dense + sum(t[k].sum(1) for t, k in zip(taste, keys))
    clicks = (torch.rand(BATCH, generator=random) < liking.sigmoid()).float()
    own = slice(plait.rank(), None, plait.world_size())
    dense, clicks, keys = dense[own], clicks[own], [k[own] for k in keys]
    sizes = torch.tensor(KEYS).repeat_interleave(len(dense))  # table by table
    found = dense, torch.cat([k.flatten() for k in keys]), sizes.cumsum(0) - sizes, clicks
    return [tensor.to(DEVICE) for tensor in found]


class DLRM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = EmbeddingBags(TABLES, WIDTH, mode="sum", sparse=True, ids_per_sample=KEYS, device=DEVICE)
        self.bottom = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, WIDTH))
        pairs = (len(TABLES) + 1) * len(TABLES) // 2
        self.top = torch.nn.Sequential(torch.nn.Linear(WIDTH + pairs, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.pairs = torch.tril_indices(len(TABLES) + 1, len(TABLES) + 1, -1)

    def forward(self, dense, keys, offsets):
        x = self.bottom(dense)
        vectors = torch.cat([x[:, None], self.tables(keys, offsets)], 1)
        products = (vectors @ vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, products], 1)).squeeze(1)


model = DLRM().to(DEVICE)
with torch.no_grad():
    for table in model.tables.weights:
        table *= 0.1
of_tables = plait.optim.RowAdagrad(model.tables.parameters(), lr=0.1)
layers = [*model.bottom.parameters(), *model.top.parameters()]  # the same on every rank
of_layers = torch.optim.Adam(layers, lr=0.003)

for step in range(200):
    *inputs, clicks = batch(step)
    model.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(*inputs), clicks, reduction="sum") / BATCH
    loss.backward()  # gradients of tables are of all ranks' samples; those of other layers are summed here
    for parameter in layers:
        parameter.grad = all_reduce(parameter.grad, "gradients")
    of_tables.step()
    of_layers.step()
    loss = plait.sum(loss.detach())
    if plait.rank() == 0 and step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.6f}")

*inputs, clicks = batch(1000)
with torch.no_grad():
    accuracy = plait.mean((model(*inputs) > 0) == (clicks > 0)).item()
if plait.rank() == 0:
    print(f"{plait.world_size()} ranks: test accuracy {accuracy:.4f}")

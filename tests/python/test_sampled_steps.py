"""Training steps of plait.nn on sampled batches: losses and gradients are those of torch_geometric.nn."""

import pytest
import torch
import torch_geometric.nn
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.utils import trim_to_layer

import plait.nn
from plait.loader import NeighborLoader


def batches(nodes, edges, replace):
    """Yields batches of a graph with loops, parallel edges and a hub; the last nodes have no edges."""
    torch.manual_seed(nodes + edges)
    index = torch.randint(max(nodes - 3, 1), (2, edges))
    index[1, ::5] = 0
    data = Data(x=torch.randn(nodes, 6), edge_index=index, num_nodes=nodes)
    yield from NeighborLoader(data, [4, 3], input_nodes=torch.arange(nodes), batch_size=16, replace=replace)


def step(layers, name, trims, batch):
    """Returns the loss of a step, and its gradients for x and for the parameters."""
    torch.manual_seed(1)
    convs = torch.nn.ModuleList(getattr(layers, name)(6, 6) for _ in range(2))
    x = given = batch.x.clone().requires_grad_()
    index = batch.edge_index.clone()
    for number, conv in enumerate(convs):
        if trims:
            x, index, _ = trim_to_layer(number, batch.num_sampled_nodes, batch.num_sampled_edges, x, index)
        x = conv(x, index).tanh()
    loss = x[:batch.batch_size].pow(2).sum()
    return loss, *torch.autograd.grad(loss, [given, *convs.parameters()])


@pytest.mark.parametrize(("name", "trims"), [("SAGEConv", False), ("SAGEConv", True), ("GCNConv", False),
                                             ("GATConv", False)])
@pytest.mark.parametrize("nodes, edges, replace", [(1, 0, False), (1, 4, False), (40, 0, False),
                                                   (60, 400, False), (60, 400, True)])
def test_steps(name, trims, nodes, edges, replace):
    for batch in batches(nodes, edges, replace):
        found, wanted = (step(layers, name, trims, batch) for layers in (plait.nn, torch_geometric.nn))
        assert_close(found, wanted, rtol=1e-4, atol=1e-5)

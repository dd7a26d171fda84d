"""Link prediction on a spread graph by plait.gather, and misuse of layers that are spread by exchange.
As a program, on every rank; prints "done"."""

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait
import spread_layers
from spread_layers import HIDDEN, NODES, WIDTH


class Links(torch.nn.Module):
    """An autoencoder of links: the inner product of the two ends."""

    def __init__(self, gather):
        super().__init__()
        self.conv1, self.conv2 = pyg.GCNConv(WIDTH, HIDDEN), pyg.TransformerConv(HIDDEN, HIDDEN)
        self.gather = gather

    def forward(self, x, edge_index, links):
        z = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        source, target = self.gather(z, links)
        return (source * target).sum(-1)


def links_of(step):
    """Links of the graph, and as many drawn pairs."""
    generator = torch.Generator().manual_seed(step)
    real = spread_layers.make_data().edge_index[:, :40]
    drawn = torch.randint(NODES, (2, 50), generator=generator)
    return torch.cat([real, drawn], 1), torch.arange(90) < 40


def train(model, x, edge_index, mean, mine):
    """Returns losses; `mine` selects the links of this rank."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(6):
        links, real = links_of(step)
        optimizer.zero_grad()
        scores = model(x, edge_index, links[:, mine])
        loss = mean(F.binary_cross_entropy_with_logits(scores, real[mine].float(), reduction="none"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def links_are_as_on_one_process():
    data = spread_layers.make_data()
    torch.manual_seed(2)
    wanted = train(Links(lambda z, ids: z[ids]), data.x, data.edge_index, torch.mean, slice(None))
    torch.manual_seed(2)
    model, own = plait.parallelize(Links(plait.gather), data, partition="hash")
    mine = slice(plait.rank(), None, plait.world_size())  # other links, and another number of them
    found = train(model, own.x, own.edge_index, plait.mean, mine)
    assert found == pytest.approx(wanted, rel=1e-4)


def gather_brings_any_rows():
    data = spread_layers.make_data()
    graph = plait.Graph(data.edge_index, NODES, partition="metis")
    rows = torch.arange(NODES * 6).view(NODES, 2, 3)
    ids = torch.tensor([[plait.rank(), 5], [NODES - 1, 5]])
    for kind in (torch.float32, torch.int64, torch.bfloat16):
        whole = (rows % 128).to(kind)
        found = plait.gather(graph.own(whole), ids, graph)
        assert found.dtype == kind and torch.equal(found, whole[ids])
    nobody = ids[:, :0] if plait.rank() == 0 else ids
    assert plait.gather(graph.own(rows), nobody, graph).shape == (*nobody.shape, 2, 3)


def misuse_is_named():
    data = spread_layers.make_data()
    graph = plait.Graph(data.edge_index, NODES)
    own = graph.own(data.x)
    with pytest.raises(ValueError, match="id 60 is outside"):
        plait.gather(own, torch.tensor([0, NODES]), graph)
    with pytest.raises(TypeError, match="integers"):
        plait.gather(own, torch.tensor([0.0]), graph)
    with pytest.raises(ValueError, match="no graph"):
        plait.gather(own, torch.tensor([0]))
    if plait.world_size() > 1:
        with pytest.raises(ValueError, match="owns"):
            plait.gather(data.x, torch.tensor([0]), graph)
        with pytest.raises(TypeError, match="float64"):
            plait.gather(own.double(), torch.tensor([0]), graph)
    model = spread_layers.LAYERS["TransformerConv"]()
    model, spread = plait.parallelize(model, data)
    if plait.world_size() > 1:
        spread.edge_attr = data.edge_attr
        with pytest.raises(ValueError, match="TransformerConv: edge_attr has 255 rows"):
            model(spread)


def main():
    for check in (links_are_as_on_one_process, gather_brings_any_rows, misuse_is_named):
        check()


if __name__ == "__main__":
    main()
    print("done")

"""Link prediction and post-processing on a spread graph, forms of data (spread_data.py), and what is refused there
(spread_refusals.py). As a program, on every rank; prints "done"."""

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait
import spread_data
import spread_layers
import spread_refusals
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


def post_processing_is_as_on_one_process():
    """Label propagation, and correct and smooth; the last class is of one node alone."""
    data = spread_layers.make_data()
    data.y[-1] = data.y.max() + 3
    soft = torch.rand(NODES, int(data.y.max()) + 1, generator=torch.Generator().manual_seed(1)).softmax(1)

    def results(data, spread, soft):
        propagation, yields = spread(pyg.LabelPropagation(3, 0.8)), []
        yields.append(propagation(data.y, data.edge_index, data.train_mask))
        for options in ({}, {"autoscale": False, "scale": 1.5}):
            post = spread(pyg.CorrectAndSmooth(3, 0.7, 4, 0.8, **options))
            known = data.y[data.train_mask]
            y = post.correct(soft, known, data.train_mask, data.edge_index)
            yields.append(post.smooth(y, known, data.train_mask, data.edge_index))
        return yields

    wanted = results(data, lambda model: model, soft)
    own = plait.spread(data, partition="hash")
    graph = own.edge_index
    found = results(own, lambda model: plait.parallelize(model, data, partition="hash")[0], graph.own(soft))
    for ours, theirs in zip(found, wanted, strict=True):
        assert not ours.requires_grad
        torch.testing.assert_close(ours, graph.own(theirs), rtol=1e-5, atol=1e-6)
    if plait.world_size() > 1:
        with pytest.raises(ValueError, match="mask lists nodes"):
            plait.parallelize(pyg.LabelPropagation(2, 0.5), data)[0](
                own.y, graph, torch.arange(3))


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


def main():
    for check in (links_are_as_on_one_process, post_processing_is_as_on_one_process,
                  gather_brings_any_rows, *spread_data.CHECKS, *spread_refusals.CHECKS):
        check()


if __name__ == "__main__":
    main()
    print("done")

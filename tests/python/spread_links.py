"""Link prediction on a spread graph by plait.gather, and misuse of layers that are spread by exchange.
As a program, on every rank; prints "done"."""

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import softmax

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


class OutgoingSoftmax(pyg.MessagePassing):
    def forward(self, x, edge_index, edge_scale):
        return self.propagate(edge_index, x=x, share=softmax(edge_scale, edge_index[0]))

    def message(self, x_j, share):
        return share.view(-1, 1) * x_j


class NormOfHelper(pyg.MessagePassing):
    def norm(self, edge_index):
        return gcn_norm(edge_index, add_self_loops=False)

    def forward(self, x, edge_index, edge_scale):
        edge_index, share = self.norm(edge_index)
        return self.propagate(edge_index, x=x, share=share)

    message = OutgoingSoftmax.message


def sums_for_nodes_of_other_ranks_are_refused():
    if plait.world_size() == 1:
        return
    for layer in (OutgoingSoftmax, NormOfHelper):
        model, spread = plait.parallelize(layer(), spread_layers.make_data())
        with pytest.raises(NotImplementedError, match="edges that leave a node"):
            model(spread.x, spread.edge_index, spread.edge_scale)


class TableByNumber(pyg.MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j, edge_index_j):
        return x_j * edge_index_j.view(-1, 1)


def layers_that_look_further_are_refused():
    data = spread_layers.make_data()
    for layer, reason in ((pyg.SAGEConv(8, 4, aggr="lstm"), "LSTMAggregation"),
                          (pyg.GraphSAGE(8, 8, 2, aggr="lstm"), "LSTMAggregation"),
                          (TableByNumber(), "edge_index_j"),
                          (pyg.GPSConv(8, None, attn_type="performer"), "GPSConv")):
        with pytest.raises(NotImplementedError, match=reason):
            plait.parallelize(torch.nn.ModuleList([layer]), data)
    ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    with pytest.raises(NotImplementedError, match="strength"):
        plait.spread(Data(x=torch.ones(9, 2), edge_index=ring, strength=torch.ones(9)))
    kept = plait.spread(Data(x=torch.ones(9, 2), edge_index=ring, edge_strength=torch.arange(9.0)))
    assert torch.equal(kept.edge_strength, ((kept.edge_index.vertices - 1) % 9).sort().values.float())


def main():
    for check in (links_are_as_on_one_process, post_processing_is_as_on_one_process,
                  gather_brings_any_rows, misuse_is_named, sums_for_nodes_of_other_ranks_are_refused,
                  layers_that_look_further_are_refused):
        check()


if __name__ == "__main__":
    main()
    print("done")

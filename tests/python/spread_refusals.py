"""What is refused on a spread graph, by name, where its result would be wrong."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import softmax

import plait
import spread_layers
from spread_layers import NODES


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
        for kind in (torch.uint16, torch.uint32, torch.uint64):
            with pytest.raises(TypeError, match=f"rows of {kind} cannot be brought"):
                plait.gather(own.to(kind), torch.tensor([0]), graph)
    model = spread_layers.LAYERS["TransformerConv"]()
    model, spread = plait.parallelize(model, data)
    if plait.world_size() > 1:
        spread.edge_attr = data.edge_attr
        with pytest.raises(ValueError, match="TransformerConv: edge_attr has 255 rows"):
            model(spread)


class Shared(pyg.MessagePassing):
    """Messages times a number for each edge."""

    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x, edge_index, edge_scale):
        return self.propagate(edge_index, x=x, share=self.share(edge_index[0], edge_scale))

    def message(self, x_j, share):
        return share.view(-1, 1) * x_j


def _zeros(source):
    return torch.zeros(int(source.max()) + 1)


# Sums over the edges that leave a node.
SHARES = {
    "softmax": lambda source, scale: softmax(scale, source),
    "method": lambda source, scale: _zeros(source).scatter_add_(0, source, scale)[source],
    "by name": lambda source, scale: _zeros(source).scatter_add_(dim=0, index=source, src=scale)[source],
    "function": lambda source, scale: torch.scatter_add(_zeros(source), 0, source, scale)[source],
    "index_add": lambda source, scale: torch.index_add(_zeros(source), 0, source, scale)[source],
    "bincount": lambda source, scale: torch.bincount(source, scale)[source],
    "index_put": lambda source, scale: _zeros(source).index_put(
        (source,), scale, accumulate=True)[source],
}


def sums_for_nodes_of_other_ranks_are_refused():
    if plait.world_size() == 1:
        return
    for share in SHARES.values():
        model, spread = plait.parallelize(Shared(share), spread_layers.make_data())
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


class Checkpointed(torch.nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.conv, self.lin, self.reentrant = pyg.GCNConv(8, 8), torch.nn.Linear(8, 3), reentrant

    def forward(self, x, edge_index):
        return checkpoint(self.lin, self.conv(x, edge_index), use_reentrant=self.reentrant)


def checkpointing_is_refused():
    data = spread_layers.make_data()
    for reentrant in (False, True):
        model, own = plait.parallelize(Checkpointed(reentrant), data)
        with pytest.raises(NotImplementedError, match="checkpoint"):
            model(own.x, own.edge_index)
        with torch.no_grad():
            assert model(own.x, own.edge_index).shape == (own.num_nodes, 3)
    x = torch.ones(2, 2, requires_grad=True)
    checkpoint(torch.nn.Linear(2, 2), x, use_reentrant=True).sum().backward()  # elsewhere it works
    assert x.grad is not None


class Pooled(torch.nn.Module):
    """Pools by a function of this module, and by one of PyTorch Geometric's."""

    def __init__(self, by_library):
        super().__init__()
        self.conv, self.by_library = pyg.GCNConv(spread_layers.WIDTH, 3), by_library

    def forward(self, x, edge_index):
        pool = pyg.global_add_pool if self.by_library else global_mean_pool
        return pool(self.conv(x, edge_index), None)


def pooling_is_refused():
    data = spread_layers.make_data()
    for by_library in (False, True):
        model, own = plait.parallelize(Pooled(by_library), data)
        if plait.world_size() == 1:
            assert model(own.x, own.edge_index).shape == (1, 3)
        else:
            with pytest.raises(NotImplementedError, match="global_(add|mean)_pool in a spread model"):
                model(own.x, own.edge_index)
    assert global_mean_pool(torch.ones(2, 3), None).shape == (1, 3)  # elsewhere it works


def weights_that_one_rank_changes_are_noticed():
    if plait.world_size() == 1:
        return
    model, own = plait.parallelize(pyg.GCN(8, 8, 2, 3), spread_layers.make_data())
    model(own.x, own.edge_index)
    with torch.no_grad():
        model.convs[1].bias += plait.rank()
    with pytest.raises(ValueError, match="different weights.*convs.1.bias"):
        model(own.x, own.edge_index)


def parts_that_are_spread_are_named():
    data = spread_layers.make_data()
    part, own = plait.parallelize(pyg.GCN(8, 8, 2, 3), data)
    with pytest.raises(ValueError, match="the part 0 of the model is spread already"):
        plait.parallelize(torch.nn.Sequential(part, torch.nn.Linear(3, 3)), data)
    with pytest.raises(ValueError, match="^the model is spread already"):
        plait.parallelize(part, data)


def layers_that_come_later_are_named():
    class Growing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = torch.nn.ModuleList([pyg.GCNConv(8, 8)])

        def forward(self, x, edge_index):
            for conv in self.convs:
                x = conv(x, edge_index)
            return x

    model, own = plait.parallelize(Growing(), spread_layers.make_data())
    torch.manual_seed(1)
    model.convs.append(pyg.GCNConv(8, 8))
    with pytest.raises(ValueError, match="convs.1: layers that came into the model after"):
        model(own.x, own.edge_index)


def lists_of_nodes_are_refused():
    for name, value in (("train_idx", torch.tensor([5])), ("chosen", torch.arange(5)),
                        ("split_idx", {"train": torch.arange(5)}),
                        ("batch", torch.arange(NODES) // 2)):
        data = spread_layers.make_data()
        data[name] = value
        with pytest.raises(NotImplementedError, match=name):
            plait.spread(data)


def graphs_are_no_tensors():
    graph = plait.spread(spread_layers.make_data()).edge_index
    with pytest.raises(TypeError, match="before plait.parallelize"):
        source, target = graph
    with pytest.raises(TypeError, match="before plait.parallelize"):
        print(graph[0])
    with pytest.raises(AttributeError, match="before plait.parallelize"):
        print(graph.shape)
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        print(graph.colour)


def sparse_rows_are_refused():
    if plait.world_size() == 1:
        return
    data = spread_layers.make_data()
    model, own = plait.parallelize(pyg.SAGEConv(8, 3), data)
    with pytest.raises(NotImplementedError, match="to_dense"):
        model(own.x.relu().to_sparse(), own.edge_index)
    data.x = data.x.relu().to_sparse_csr()
    with pytest.raises(NotImplementedError, match="data.x is sparse"):
        plait.spread(data)


def weights_that_change_are_used():
    """A change of data.edge_weight, by the user or an optimiser, and none of the whole graph's."""
    whole = spread_layers.make_data()
    torch.manual_seed(1)
    conv = pyg.GCNConv(8, 3)
    wanted = conv(whole.x, whole.edge_index, whole.edge_weight.square()).detach()
    model, own = plait.parallelize(conv, whole)
    whole.edge_weight.zero_()
    own.edge_weight.square_()
    found = model(own.x, own.edge_index, own.edge_weight)
    torch.testing.assert_close(found.detach(), own.edge_index.own(wanted), rtol=1e-5, atol=1e-6)
    own.edge_weight.requires_grad_()
    plait.sum(model(own.x, own.edge_index, own.edge_weight).square()).backward()
    assert own.edge_weight.grad.abs().sum() > 0


def a_rank_without_edges_takes_medians():
    star = torch.stack([torch.arange(1, 12), torch.zeros(11, dtype=torch.long)])
    data = Data(x=torch.randn(12, 8, generator=torch.Generator().manual_seed(1)), edge_index=star)
    torch.manual_seed(1)
    conv = pyg.SAGEConv(8, 3, aggr=["median", "mean"])
    wanted = conv(data.x, star)
    wanted.square().sum().backward()
    gradient = conv.lin_l.weight.grad.clone()
    conv.zero_grad()
    model, own = plait.parallelize(conv, data)
    found = model(own.x, own.edge_index)
    torch.testing.assert_close(found.detach(), own.edge_index.own(wanted.detach()))
    plait.sum(found.square()).backward()
    torch.testing.assert_close(conv.lin_l.weight.grad, gradient)


CHECKS = (misuse_is_named, sums_for_nodes_of_other_ranks_are_refused, layers_that_look_further_are_refused,
          checkpointing_is_refused, pooling_is_refused, weights_that_one_rank_changes_are_noticed,
          parts_that_are_spread_are_named, layers_that_come_later_are_named, lists_of_nodes_are_refused,
          graphs_are_no_tensors, sparse_rows_are_refused, weights_that_change_are_used,
          a_rank_without_edges_takes_medians)

"""The table of PyTorch Geometric's layers and models that plait.parallelize spreads, each trained as it
is on one process and spread over ranks.

As a program, it trains all of them spread and prints the losses as JSON: the first rank's, after it has
seen that the others' are the same."""

import functools
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, degree

NODES, WIDTH, HIDDEN, CLASSES = 60, 8, 8, 3
STEPS = 30 if os.environ.get("PLAIT_TEST_DEEP") else 4
RELATIONS = 3


def make_data(nodes=NODES, edges=240):
    """A directed graph with hubs, loops, duplicates and isolated nodes, and attributes of edges."""
    random = np.random.default_rng(7)
    index = random.integers(0, nodes - 3, (2, edges)) ** 2 // (nodes - 3)
    index = np.concatenate([index, index[:, :15]], 1)
    edges = index.shape[1]

    def drawn(*shape):
        return torch.from_numpy(random.standard_normal(shape).astype(np.float32))

    return Data(
        x=drawn(nodes, WIDTH),
        pos=drawn(nodes, 3),
        edge_index=torch.from_numpy(index),
        edge_attr=drawn(edges, 4),
        edge_pseudo=torch.rand(edges, 2, generator=torch.Generator().manual_seed(3)),
        edge_scale=drawn(edges, 1)[:, 0].abs() + 0.1,
        edge_weight=torch.rand(edges, generator=torch.Generator().manual_seed(4)) + 0.5,
        edge_type=torch.from_numpy(random.integers(0, RELATIONS, edges)),
        y=torch.from_numpy(random.integers(0, CLASSES, nodes)),
        train_mask=torch.arange(nodes) % 2 == 0,
    )


class Layered(torch.nn.Module):
    """Two layers of a kind, with the further arguments that they take, by name of the data's
    attribute."""

    def __init__(self, make, *also, **named):
        super().__init__()
        self.conv1, self.conv2 = make(WIDTH, HIDDEN), make(HIDDEN, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, CLASSES)
        self.also, self.named = also, named

    def forward(self, data):
        also = [getattr(data, name) for name in self.also]
        named = {name: getattr(data, of) for name, of in self.named.items()}
        x = self.conv1(data.x, data.edge_index, *also, **named).relu()
        return self.out(self.conv2(x, data.edge_index, *also, **named))


class OfData(torch.nn.Module):
    """A model of PyTorch Geometric's nn.models."""

    def __init__(self, model, **named):
        super().__init__()
        self.model, self.named = model, named

    def forward(self, data):
        return self.model(data.x, data.edge_index,
                          **{name: getattr(data, of) for name, of in self.named.items()})


class FirstRows(torch.nn.Module):
    """A layer that also takes the rows that the first layer was given."""

    def __init__(self, make):
        super().__init__()
        self.lin, self.out = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.conv1, self.conv2 = make(), make()

    def forward(self, data):
        first = self.lin(data.x).relu()
        x = self.conv1(first, first, data.edge_index).relu()
        return self.out(self.conv2(x, first, data.edge_index))


class DeeperGCN(torch.nn.Module):
    """DeepGCNLayer's pre-activation residual blocks of GENConv, without checkpointing."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.edges = torch.nn.Linear(4, HIDDEN)
        self.layers = torch.nn.ModuleList(
            pyg.DeepGCNLayer(pyg.GENConv(HIDDEN, HIDDEN, aggr="softmax", learn_t=True, norm="layer"),
                             torch.nn.LayerNorm(HIDDEN), torch.nn.ReLU(), "res+", dropout=0.0)
            for _ in range(3))

    def forward(self, data):
        x, edge_attr = self.first(data.x), self.edges(data.edge_attr)
        for layer in self.layers:
            x = layer(x, data.edge_index, edge_attr)
        return self.last(x)


class OwnLayer(pyg.MessagePassing):
    """A layer of a user: a gate computed from both ends, and the largest message."""

    def __init__(self, inputs, outputs):
        super().__init__(aggr="max")
        self.lin, self.gate = torch.nn.Linear(inputs, outputs), torch.nn.Linear(2 * outputs, 1)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=self.lin(x)) + 1

    def message(self, x_i, x_j):
        return torch.sigmoid(self.gate(torch.cat([x_i, x_j], -1))) * x_j

    def update(self, aggregated):
        return aggregated.tanh()


class OwnGCN(pyg.MessagePassing):
    """A graph convolution as people write it, with degrees of sources."""

    def __init__(self, inputs, outputs):
        super().__init__(aggr="add")
        self.lin = torch.nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        row, col = edge_index
        scale = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        return self.propagate(edge_index, x=self.lin(x), norm=scale[row] * scale[col])

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


def pair(inputs, outputs):
    return torch.nn.Linear(2 * inputs, outputs)


def degrees():
    data = make_data()
    return torch.bincount(degree(data.edge_index[1], NODES, dtype=torch.long))


def mlp_of_edges(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(),
                               torch.nn.Linear(6, inputs * outputs))


PNA = {"aggregators": ["mean", "min", "max", "std"],
       "scalers": ["identity", "amplification", "attenuation"]}

# Name -> function that makes the model. Layers of plait.nn are fast; all others are spread by exchange.
LAYERS = {
    "GATConv": lambda: Layered(pyg.GATConv),
    "AGNNConv": lambda: Layered(lambda a, b: pyg.AGNNConv()),
    "APPNP": lambda: Layered(lambda a, b: pyg.APPNP(3, 0.1)),
    "ARMAConv": lambda: Layered(lambda a, b: pyg.ARMAConv(a, b, num_stacks=2, num_layers=2)),
    "AntiSymmetricConv": lambda: Layered(lambda a, b: pyg.AntiSymmetricConv(a)),
    "CGConv": lambda: Layered(lambda a, b: pyg.CGConv(a, dim=4), "edge_attr"),
    "ClusterGCNConv": lambda: Layered(lambda a, b: pyg.ClusterGCNConv(a, b, diag_lambda=0.5)),
    "DNAConv": lambda: DNA(),
    "EdgeConv": lambda: Layered(lambda a, b: pyg.EdgeConv(pair(a, b))),
    "EGConv": lambda: Layered(
        lambda a, b: pyg.EGConv(a, b, aggregators=["mean", "max", "symnorm"], num_heads=4)),
    "FAConv": lambda: FirstRows(lambda: pyg.FAConv(HIDDEN)),
    "FeaStConv": lambda: Layered(lambda a, b: pyg.FeaStConv(a, b, heads=2)),
    "FiLMConv": lambda: Layered(
        lambda a, b: pyg.FiLMConv(a, b, num_relations=RELATIONS), "edge_type"),
    "GATConv of edges": lambda: Layered(
        lambda a, b: pyg.GATConv(a, b // 2, heads=2, edge_dim=4), "edge_attr"),
    "GATv2Conv": lambda: Layered(
        lambda a, b: pyg.GATv2Conv(a, b // 2, heads=2, edge_dim=4), "edge_attr"),
    "GCN2Conv": lambda: FirstRows(lambda: pyg.GCN2Conv(HIDDEN, 0.2, theta=0.5, layer=1)),
    "GENConv": lambda: Layered(lambda a, b: pyg.GENConv(a, b, edge_dim=4), "edge_attr"),
    "GINEConv": lambda: Layered(
        lambda a, b: pyg.GINEConv(torch.nn.Linear(a, b), edge_dim=4), "edge_attr"),
    "GMMConv": lambda: Layered(
        lambda a, b: pyg.GMMConv(a, b, dim=2, kernel_size=3), "edge_pseudo"),
    "GatedGraphConv": lambda: Layered(lambda a, b: pyg.GatedGraphConv(b, num_layers=2)),
    "GeneralConv": lambda: Layered(
        lambda a, b: pyg.GeneralConv(a, b, in_edge_channels=4, attention=True), "edge_attr"),
    "GraphConv": lambda: Layered(
        lambda a, b: pyg.GraphConv(a, b, aggr="mean"), edge_weight="edge_scale"),
    "LEConv": lambda: Layered(lambda a, b: pyg.LEConv(a, b), edge_weight="edge_scale"),
    "LGConv": lambda: Layered(lambda a, b: pyg.LGConv(), edge_weight="edge_scale"),
    "MFConv": lambda: Layered(lambda a, b: pyg.MFConv(a, b, max_degree=6)),
    "MixHopConv": lambda: Layered(lambda a, b: pyg.MixHopConv(a, b // 2, powers=[0, 2])),
    "NNConv": lambda: Layered(
        lambda a, b: pyg.NNConv(a, b, mlp_of_edges(a, b), aggr="mean"), "edge_attr"),
    "PDNConv": lambda: Layered(
        lambda a, b: pyg.PDNConv(a, b, edge_dim=4, hidden_channels=5), "edge_attr"),
    "PNAConv": lambda: Layered(
        lambda a, b: pyg.PNAConv(a, b, deg=degrees(), edge_dim=4, towers=2, **PNA), "edge_attr"),
    "PointTransformerConv": lambda: Points(lambda a, b: pyg.PointTransformerConv(a, b)),
    "PointNetConv": lambda: Points(
        lambda a, b: pyg.PointNetConv(torch.nn.Linear(a + 3, b), torch.nn.Linear(b, b))),
    "RGATConv": lambda: Layered(
        lambda a, b: pyg.RGATConv(a, b // 2, RELATIONS, heads=2, edge_dim=4), "edge_type",
        "edge_attr"),
    "RGCNConv": lambda: Layered(lambda a, b: pyg.RGCNConv(a, b, RELATIONS), "edge_type"),
    "RGCNConv without features": lambda: OfIds(),
    "ResGatedGraphConv": lambda: Layered(
        lambda a, b: pyg.ResGatedGraphConv(a, b, edge_dim=4), "edge_attr"),
    "SAGEConv of several aggregations": lambda: Layered(
        lambda a, b: pyg.SAGEConv(a, b, aggr=["softmax", "std", "powermean"])),
    "SGConv": lambda: Layered(lambda a, b: pyg.SGConv(a, b, K=3), edge_weight="edge_scale"),
    "SSGConv": lambda: Layered(lambda a, b: pyg.SSGConv(a, b, alpha=0.1, K=3)),
    "SimpleConv": lambda: Layered(
        lambda a, b: pyg.SimpleConv(aggr="median", combine_root="sum")),
    "TAGConv": lambda: Layered(lambda a, b: pyg.TAGConv(a, b, K=3), edge_weight="edge_scale"),
    "TransformerConv": lambda: Layered(
        lambda a, b: pyg.TransformerConv(a, b // 2, heads=2, edge_dim=4, beta=True), "edge_attr"),
    "GCNConv without loops, weighted": lambda: Layered(
        lambda a, b: pyg.GCNConv(a, b, add_self_loops=False), edge_weight="edge_weight"),
    "GCNConv of learnt weights": lambda: LearntWeights(),
    "GCNConv used before": lambda: used(Layered(lambda a, b: pyg.GCNConv(a, b, cached=True))),
    "GCNConv by max, used before": lambda: used(
        Layered(lambda a, b: pyg.GCNConv(a, b, cached=True, aggr="max"))),
    "a forward above theirs": lambda: Layered(Twice),
    "a forward above a forward": lambda: Layered(TwiceMore),
    "a forward that normalises": lambda: Layered(normalising()),
    "a helper that normalises": lambda: Layered(Decorated),
    "a forward above ours": lambda: Layered(on_ours()),
    "Sequential": lambda: pyg.Sequential("data", [
        (lambda data: (data.x, data.edge_index), "data -> x, edges"),
        (pyg.GCNConv(WIDTH, HIDDEN), "x, edges -> x"), torch.nn.ReLU(),
        (pyg.GATv2Conv(HIDDEN, CLASSES), "x, edges -> x")]),
    "a layer of a user": lambda: Layered(OwnLayer),
    "a convolution of a user": lambda: Layered(OwnGCN),
    "model GAT of edges": lambda: OfData(
        pyg.GAT(WIDTH, HIDDEN, 3, CLASSES, v2=True, heads=2, edge_dim=4), edge_attr="edge_attr"),
    "model GCN": lambda: OfData(pyg.GCN(WIDTH, HIDDEN, 3, CLASSES, jk="cat")),
    "model GIN": lambda: OfData(pyg.GIN(WIDTH, HIDDEN, 3, CLASSES)),
    "model GraphSAGE": lambda: OfData(pyg.GraphSAGE(WIDTH, HIDDEN, 3, CLASSES, aggr="std")),
    "model PNA": lambda: OfData(pyg.PNA(WIDTH, HIDDEN, 3, CLASSES, deg=degrees(), **PNA)),
    "model DeeperGCN": lambda: DeeperGCN(),
    "EdgeConv with batch norm": lambda: Layered(
        lambda a, b: pyg.EdgeConv(torch.nn.Sequential(pair(a, b), torch.nn.BatchNorm1d(b)), aggr="mean")),
    "GATv2Conv by max": lambda: Layered(lambda a, b: pyg.GATv2Conv(a, b, aggr="max")),
    "SAGEConv by softmax": lambda: Layered(
        lambda a, b: pyg.SAGEConv(a, b, aggr="softmax", aggr_kwargs={"learn": True})),
}
# With dropout, numbers of ranks are compared with each other.
DROPPED = {
    "GATv2Conv, dropout": lambda: Layered(lambda a, b: pyg.GATv2Conv(a, b // 2, heads=2, dropout=0.4)),
    "APPNP, dropout": lambda: Layered(lambda a, b: pyg.APPNP(2, 0.1, dropout=0.4)),
    "GATConv, dropout": lambda: Layered(Attention),
    "ARMAConv, dropout": lambda: Layered(
        lambda a, b: pyg.ARMAConv(a, b, num_stacks=2, num_layers=2, dropout=0.4)),
    "DNAConv, dropout": lambda: DNA(dropout=0.4),
    "FAConv, dropout": lambda: FirstRows(lambda: pyg.FAConv(HIDDEN, dropout=0.4)),
    "TransformerConv, dropout": lambda: Layered(lambda a, b: pyg.TransformerConv(a, b, dropout=0.3)),
}


class OfIds(torch.nn.Module):
    """A layer whose weights have a row for each node and kind of edges, and no features."""

    def __init__(self):
        super().__init__()
        self.conv1 = pyg.RGCNConv(NODES, HIDDEN, RELATIONS, num_bases=2)
        self.conv2 = pyg.RGCNConv(HIDDEN, CLASSES, RELATIONS)

    def forward(self, data):
        x = self.conv1(None, data.edge_index, data.edge_type).relu()
        return self.conv2(x, data.edge_index, data.edge_type)


class LearntWeights(torch.nn.Module):
    """Weights of edges from their attributes, and a layer that uses no weights."""

    def __init__(self):
        super().__init__()
        self.weigh = torch.nn.Linear(4, 1)
        self.conv1, self.conv2 = pyg.GCNConv(WIDTH, HIDDEN), pyg.GCNConv(HIDDEN, CLASSES)

    def forward(self, data):
        weight = self.weigh(data.edge_attr).sigmoid().view(-1)
        return self.conv2(self.conv1(data.x, data.edge_index, weight).relu(), data.edge_index)


class Attention(pyg.GATConv):
    """Attention that is asked for; its forward calls that of PyTorch Geometric's class."""

    def __init__(self, a, b):
        super().__init__(a, b, dropout=0.4)

    def forward(self, x, edge_index):
        out, (_, attention) = super().forward(x, edge_index, return_attention_weights=True)
        return out


class Twice(pyg.GCNConv):
    def forward(self, x, edge_index):
        return 2 * super().forward(x, edge_index)


class TwiceMore(Twice):
    def forward(self, x, edge_index):
        return super().forward(x[:, :x.size(1)], edge_index) + 1


def normalising():
    from torch_geometric.nn.conv.gcn_conv import gcn_norm as local_norm

    class Normalising(pyg.GCNConv):
        def forward(self, x, edge_index):
            edges, weight = local_norm(edge_index, None, x.size(0), add_self_loops=True)
            return self.propagate(edges, x=self.lin(x), edge_weight=weight)

    return Normalising


def doubled(forward):
    @functools.wraps(forward)
    def wrapped(*args):
        return 2 * forward(*args)
    return wrapped


class Decorated(pyg.GCNConv):
    """Normalises in a helper, behind decorators, and calls another class's forward by its name."""

    def norm(self, edge_index):
        return gcn_norm(edge_index, add_self_loops=False)

    @doubled
    @torch.autocast("cpu", enabled=False)
    def forward(self, x, edge_index):
        edges, weight = self.norm(edge_index)
        return self.propagate(edges, x=self.lin(x), edge_weight=weight) + pyg.GCNConv.forward(
            self, x, edge_index)


def on_ours():
    import plait.nn

    class Reading(plait.nn.SAGEConv):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index[:, :edge_index.size(1)])

    return Reading


def used(model):
    """Returns the model after a call with the whole graph, which fills caches."""
    with torch.no_grad():
        model(make_data())
    return model


class Points(Layered):
    """Layers of point clouds."""

    def forward(self, data):
        x = self.conv1(data.x, data.pos, data.edge_index).relu()
        return self.out(self.conv2(x, data.pos, data.edge_index))


class DNA(torch.nn.Module):
    """Attention over the results of all earlier layers."""

    def __init__(self, **options):
        super().__init__()
        self.lin, self.out = torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.convs = torch.nn.ModuleList(pyg.DNAConv(HIDDEN, heads=2, **options) for _ in range(2))

    def forward(self, data):
        rows = [self.lin(data.x)]
        for conv in self.convs:
            rows.append(conv(torch.stack(rows, 1), data.edge_index).relu())
        return self.out(rows[-1])


def train(model, data, mean, steps=STEPS):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-4)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        out = model(data)
        mask = data.train_mask
        loss = mean(F.cross_entropy(out[mask], data.y[mask], reduction="none"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_plainly(name):
    torch.manual_seed(1)
    return train(LAYERS[name](), make_data(), torch.mean)


def train_spread(make, device="cpu", partition="edges"):
    import plait

    torch.manual_seed(1)
    model, data = plait.parallelize(make().to(device), make_data().to(device), partition=partition)
    return train(model, data, plait.mean)


def train_all_spread(device="cpu"):
    partitions = ("edges", "hash", "metis", "vertices", "clusters")
    return {name: train_spread(make, device, partitions[i % len(partitions)])
            for i, (name, make) in enumerate({**LAYERS, **DROPPED}.items())}


if __name__ == "__main__":
    import plait

    place = plait.device() if "cuda" in sys.argv else "cpu"
    json.dump(train_all_spread(place), sys.stdout)

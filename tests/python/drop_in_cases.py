"""Options and arguments of PyTorch Geometric's layers, by name: of calls that are fast, of calls that its own
code computes, and of mistakes; and the comparison of plait.nn's layer with its."""

import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex

import edge_value_cases
import plait
from drop_in_inputs import (BOTH, NARROW, OTHER, SOURCES, STATIC, TARGETS, TURNED, WEIGHT, WIDTH, X, X_TARGETS,
                            explained, forward_of_one, hooked, hooked_aggregation, lazy_and_hooked,
                            linear_with_bias, messages_of_one, mixed_in, of, own_forward, own_messages,
                            prelude_hooked, sparse)
from edges import assert_close

FAST = {
    "bipartite": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS), BOTH), {}),
    "bipartite, to more": ("SAGEConv", of(WIDTH, 4), ((X_TARGETS, X), TURNED), {}),
    "bipartite, two widths": ("SAGEConv", of((WIDTH, OTHER), 4), ((X, NARROW), BOTH), {}),
    "bipartite, lazy": ("SAGEConv", of((-1, -1), 4), ((X, NARROW), BOTH), {}),
    "bipartite, projected": ("SAGEConv", of(WIDTH, 4, project=True), ((X, X_TARGETS), BOTH), {}),
    "bipartite, no targets": ("SAGEConv", of(WIDTH, 4), ((X, None), BOTH), {}),
    "bipartite, no targets, size": ("SAGEConv", of(WIDTH, 4), ((X, None), BOTH),
                                    {"size": (SOURCES, TARGETS)}),
    "bipartite, a list": ("SAGEConv", of(WIDTH, 4), ([X, X_TARGETS], BOTH), {}),
    "bipartite by max": ("SAGEConv", of(WIDTH, 4, aggr="max"), ((X, X_TARGETS), BOTH), {}),
    "bipartite GIN": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), ((X, X_TARGETS), BOTH), {}),
    "bipartite GraphConv": ("GraphConv", of((WIDTH, OTHER), 4), ((X, NARROW), BOTH, WEIGHT), {}),
    "bipartite GraphConv, mean": ("GraphConv", of((WIDTH, OTHER), 4, aggr="mean"),
                                  ((X, NARROW), BOTH, WEIGHT), {}),
    "bipartite GAT": ("GATConv", of((WIDTH, OTHER), 4, heads=2), ((X, NARROW), BOTH), {}),
    "bipartite GAT, to more": ("GATConv", of((OTHER, WIDTH), 4, heads=2), ((NARROW, X), TURNED), {}),
    "bipartite GAT without loops": ("GATConv", of((WIDTH, OTHER), 4, add_self_loops=False),
                                    ((X, NARROW), BOTH), {}),
    "bipartite GAT, one width": ("GATConv", of(WIDTH, 4, residual=True), ((X, X_TARGETS), BOTH), {}),
    "bipartite GAT, no targets": ("GATConv", of((WIDTH, OTHER), 4, heads=2), ((X, None), BOTH),
                                  {"size": (SOURCES, TARGETS)}),
    "two maps of one x": ("GATConv", of((WIDTH, WIDTH), 4), (X, BOTH), {}),
    "size": ("SAGEConv", of(WIDTH, 4), (X, BOTH), {"size": (SOURCES, SOURCES)}),
    "names": ("GCNConv", of(WIDTH, 4), (), {"x": X, "edge_index": BOTH, "edge_weight": WEIGHT}),
    "turned": ("SAGEConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH), {}),
    "turned GCN": ("GCNConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH, WEIGHT), {}),
    "turned GAT": ("GATConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH), {}),
    "turned SG": ("SGConv", of(WIDTH, 4, K=2, flow="target_to_source"), (X, BOTH), {}),
    "static": ("GCNConv", of(WIDTH, 4), (STATIC, BOTH, WEIGHT), {}),
    "static, wider": ("SAGEConv", of(WIDTH, 8), (STATIC, BOTH), {}),
    "static GIN": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (STATIC, BOTH), {}),
    "static TAG": ("TAGConv", of(WIDTH, 4), (STATIC, BOTH), {}),
    "static by max": ("GraphConv", of(WIDTH, 4, aggr="max"), (STATIC, BOTH), {}),
    "an aggregation": ("SAGEConv", of(WIDTH, 4, aggr=pyg.MeanAggregation()), (X, BOTH), {}),
    "several": ("SAGEConv", of(WIDTH, 4, aggr=["sum", "min", pyg.StdAggregation()]), (X, BOTH), {}),
    "several of two": ("SAGEConv", of((WIDTH, OTHER), 4, aggr=["var", "mean"]), ((X, NARROW), BOTH), {}),
    "std": ("SAGEConv", of(WIDTH, 4, aggr="std"), (X, BOTH), {}),
    "plain GCN by mean": ("GCNConv", of(WIDTH, 4, normalize=False, aggr="mean"), (X, BOTH, WEIGHT), {}),
    "plain GCN by max": ("GCNConv", of(WIDTH, 4, normalize=False, aggr="max"), (X, BOTH), {}),
    "plain GCN of several": ("GCNConv", of(WIDTH, 4, normalize=False, aggr=["sum", "std"], bias=False),
                             (X, BOTH), {}),
    "a linear map with a bias": ("GCNConv", linear_with_bias, (X, BOTH, WEIGHT), {}),
    "a linear map with its own forward": ("SAGEConv", forward_of_one, (X, BOTH), {}),
    "a lazy map with a hook": ("GCNConv", lazy_and_hooked, (X, BOTH), {}),
    "cached SG of no steps": ("SGConv", of(WIDTH, 4, K=0, cached=True), (X, BOTH), {}),
    "sparse": ("SAGEConv", of(WIDTH, 4), (X, sparse()), {}),
    "sparse CSR": ("GCNConv", of(WIDTH, 4), (X, sparse(weighted=True).to_sparse_csr()), {}),
    "EdgeIndex of two sizes": ("GraphConv", of((WIDTH, OTHER), 4),
                               ((X, None), EdgeIndex(BOTH, sparse_size=(SOURCES, TARGETS))), {}),
    "EdgeIndex": ("GINConv", of(torch.nn.Linear(WIDTH, 4)),
                  (X, EdgeIndex(BOTH, sparse_size=(SOURCES, SOURCES))), {}),
    "cached": ("GCNConv", of(WIDTH, 4, cached=True), (X, BOTH, WEIGHT), {}),
    "cached APPNP": ("APPNP", of(3, 0.1, cached=True), (X, BOTH), {}),
    "cached SG": ("SGConv", of(WIDTH, 4, K=2, cached=True), (X, BOTH, WEIGHT), {}),
    "dropout of edges in evaluation": ("APPNP", lambda layer: layer(3, 0.1, dropout=0.5).eval(),
                                       (X, BOTH), {}),
    "hooks of modules": ("SAGEConv", prelude_hooked, (X, BOTH), {}),
    "own forward": ("GCNConv", own_forward, (X, BOTH), {}),
}

SLOW = {
    "lstm": ("SAGEConv", of(WIDTH, 4, aggr="lstm"), (X, BOTH), {}),
    "several, slow": ("SAGEConv", of(WIDTH, 4, aggr=["mean", "median"]), (X, BOTH), {}),
    "GAT by mean": ("GATConv", of(WIDTH, 4, aggr="mean"), (X, BOTH), {}),
    "GCN by max": ("GCNConv", of(WIDTH, 4, aggr="max"), (X, BOTH), {}),
    "weighted max": ("GraphConv", of(WIDTH, 4, aggr="max"), (X, BOTH, WEIGHT), {}),
    "double": ("SAGEConv", lambda layer: layer(WIDTH, 4).double(), (X.double(), BOTH), {}),
    "bfloat16": ("GCNConv", lambda layer: layer(WIDTH, 4).bfloat16(), (X.bfloat16(), BOTH), {}),
    "decomposed": ("GCNConv", of(WIDTH, 4, decomposed_layers=2), (X, BOTH), {}),
    "loops of a sparse tensor": ("GCNConv", of(WIDTH, 4), (X, torch.eye(SOURCES).to_sparse_csr()), {}),
    "sparse x": ("GCNConv", of(WIDTH, 4), (X.relu().to_sparse(), BOTH), {}),
    "sparse with weights": ("SAGEConv", of(WIDTH, 4), (X, sparse(weighted=True)), {}),
    "sparse between two": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS), sparse(shape=(TARGETS, SOURCES))),
                           {}),
    "turned, two": ("SAGEConv", of(WIDTH, 4, flow="target_to_source", root_weight=False),
                    ((X, X_TARGETS), TURNED), {}),
    "node_dim": ("GCNConv", of(WIDTH, 4, node_dim=1), (STATIC, BOTH), {}),
    "own messages": ("SAGEConv", own_messages, (X, BOTH), {}),
    "own messages, mixed in": ("SAGEConv", mixed_in, (X, BOTH), {}),
    "messages of one layer": ("SAGEConv", messages_of_one, (X, BOTH), {}),
    "hooks of an aggregation": ("SAGEConv", hooked_aggregation, (X, BOTH), {}),
    "sparse, not coalesced": ("GraphConv", of(WIDTH, 4),
                              (X, torch.sparse_coo_tensor(BOTH.flip(0), WEIGHT, (SOURCES, SOURCES))), {}),
    "hooks of messages": ("GCNConv", hooked, (X, BOTH), {}),
    "negative degrees": ("GCNConv", of(WIDTH, 4), (X, BOTH, -9 * WEIGHT), {}),
    "weights that are not finite": ("GraphConv", of(WIDTH, 4), (X, BOTH, WEIGHT / 0), {}),
    "explained": ("GCNConv", explained, (X, BOTH), {}),
}
FAST |= edge_value_cases.FAST
SLOW |= edge_value_cases.SLOW

# Mistakes: PyTorch Geometric's error, of the same type and text.
WRONG = {
    "ids": ("SAGEConv", of(WIDTH, 4), (X, BOTH + 5), {}),
    "negative ids": ("GCNConv", of(WIDTH, 4), (X, BOTH - 3), {}),
    "ids of targets": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS[:2]), BOTH), {}),
    "edges of floats": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (X, BOTH.float()), {}),
    "shape of edges": ("SAGEConv", of(WIDTH, 4), (X, BOTH.repeat(2, 1)), {}),
    "one dimension": ("SAGEConv", of(WIDTH, 4), (X, BOTH[0]), {}),
    "size": ("SAGEConv", of(WIDTH, 4), (X, BOTH), {"size": (SOURCES, TARGETS)}),
    "two x for GCN": ("GCNConv", of(WIDTH, 4), ((X, X), BOTH), {}),
    "three x": ("SAGEConv", of(WIDTH, 4), ((X, X, X), BOTH), {}),
    "width": ("GCNConv", of(WIDTH, 4), (X[:, 1:], BOTH), {}),
    "width of targets": ("SAGEConv", of((WIDTH, OTHER), 4), ((X, X_TARGETS), BOTH), {}),
    "a row alone": ("GATConv", of(WIDTH, 4), (X[0], BOTH), {}),
    "static GAT": ("GATConv", of(WIDTH, 4), (STATIC, BOTH), {}),
    "number of weights": ("GraphConv", of(WIDTH, 4), (X, BOTH, WEIGHT[1:]), {}),
    "x of whole numbers": ("GCNConv", of(WIDTH, 4), (X.long(), BOTH), {}),
    "dropout": ("GATConv", of(WIDTH, 4, dropout=1.5), (X, BOTH), {}),
    "arguments": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (X, BOTH, WEIGHT, WEIGHT), {}),
    "turned, sparse": ("SAGEConv", of(WIDTH, 4, flow="target_to_source"), (X, sparse(weighted=True)), {}),
}
WRONG |= edge_value_cases.WRONG

# Errors when a layer is made.
NEVER = {
    "loops": ("GCNConv", {"in_channels": 3, "out_channels": 3, "normalize": False, "add_self_loops": True}),
    "flow": ("SAGEConv", {"in_channels": 3, "out_channels": 3, "flow": "up"}),
    "aggregation": ("SAGEConv", {"in_channels": 3, "out_channels": 3, "aggr": "middle"}),
    "option": ("GATConv", {"in_channels": 3, "out_channels": 3, "colour": "red"}),
}


def make_code_of_classes():
    """PyTorch Geometric makes code for a class at its first layer. If this layer reduces messages otherwise
    than by sum, mean, min or max, no later layer of the class takes sparse tensors."""
    for package in (plait.nn, pyg):
        for layer in ("GCNConv", "SAGEConv", "GraphConv"):
            getattr(package, layer)(1, 1)
        package.GINConv(torch.nn.Identity())


make_code_of_classes()


def pair(name, make):
    layers = []
    for package in (plait.nn, pyg):
        torch.manual_seed(2)
        layers.append(make(getattr(package, name)))
    return layers


def with_gradients(layer, args, named):
    """Returns the results, and gradients of x and of parameters."""
    leaves = []

    def leaf(t):
        if isinstance(t, (tuple, list)):
            return type(t)(map(leaf, t))
        wants = isinstance(t, torch.Tensor) and t.is_floating_point() and t.layout == torch.strided
        if wants and t.dim() > 1:
            leaves.append(t.clone().requires_grad_())
            return leaves[-1]
        return t

    torch.manual_seed(2)
    out = layer(*map(leaf, args), **{key: leaf(t) for key, t in named.items()})
    results = [out] if isinstance(out, torch.Tensor) else [out[0], *out[1]]
    sum(t.square().sum() for t in results if t.is_floating_point()).backward()
    grown = [*leaves, *(p for _, p in sorted(layer.named_parameters()))]
    return [*results, *(torch.zeros(0) if t.grad is None else t.grad for t in grown)]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return type(value)(moved(v, device) for v in value) if isinstance(value, (tuple, list)) else value


def compare(name, make, args, named, device="cpu"):
    ours, theirs = pair(name, make)
    wanted = with_gradients(theirs, args, named)
    named = {key: moved(value, device) for key, value in named.items()}
    found = [t.cpu() for t in with_gradients(ours.to(device), moved(args, device), named)]
    for ours_is, theirs_is in zip(found, wanted, strict=True):
        assert ours_is.shape == theirs_is.shape and ours_is.dtype == theirs_is.dtype
        if theirs_is.isfinite().all():
            assert_close(ours_is.double(), theirs_is.double(), 1e-5)
        else:
            assert torch.equal(ours_is.isnan(), theirs_is.isnan())
    assert ours.state_dict().keys() == theirs.state_dict().keys()

"""The layers of plait.nn beside those of PyTorch Geometric, as a table that tests go through."""

import copy

import torch
import torch_geometric.nn

import plait
from edges import assert_close

INPUTS = 6


def _mlp():
    return torch.nn.Sequential(torch.nn.Linear(INPUTS, 8), torch.nn.ELU(), torch.nn.Linear(8, 5))


# Name -> class, and its arguments. Widths grow and shrink, so that products come before or after.
CASES = {
    "gcn": ("GCNConv", {"out_channels": 4}),
    "sage": ("SAGEConv", {"out_channels": 4}),
    "sage, wider": ("SAGEConv", {"out_channels": 9}),
    "sage of several": ("SAGEConv", {"out_channels": 4, "aggr": ["mean", "max", "std", "var"]}),
    "sage by max": ("SAGEConv", {"out_channels": 4, "aggr": "max"}),
    "sage by min": ("SAGEConv", {"out_channels": 4, "aggr": "min"}),
    "sage by sum, normalised": ("SAGEConv", {"out_channels": 5, "aggr": "sum", "normalize": True}),
    "sage by add, no root": ("SAGEConv", {"out_channels": 5, "aggr": "add", "root_weight": False}),
    "sage projected": ("SAGEConv", {"out_channels": 7, "project": True, "bias": False}),
    "sage by max, projected": ("SAGEConv", {"out_channels": 3, "aggr": "max", "project": True}),
    "gat": ("GATConv", {"out_channels": 5}),
    "gat of heads": ("GATConv", {"out_channels": 3, "heads": 4}),
    "gat, mean of heads": ("GATConv", {"out_channels": 8, "heads": 3, "concat": False,
                                       "negative_slope": 0.5}),
    "gat without loops": ("GATConv", {"out_channels": 9, "heads": 2, "add_self_loops": False,
                                      "bias": False}),
    "gat, residual": ("GATConv", {"out_channels": 4, "heads": 2, "residual": True}),
    "gat, residual, mean": ("GATConv", {"out_channels": 4, "heads": 2, "residual": True,
                                        "concat": False}),
    "gatv2": ("GATv2Conv", {"out_channels": 5}),
    "gatv2 of heads": ("GATv2Conv", {"out_channels": 3, "heads": 4}),
    "gatv2 without loops": ("GATv2Conv", {"out_channels": 8, "heads": 2, "add_self_loops": False,
                                          "concat": False, "share_weights": True}),
    "transformer": ("TransformerConv", {"out_channels": 5}),
    "transformer of heads": ("TransformerConv", {"out_channels": 3, "heads": 4, "beta": True, "bias": False}),
    "gin": ("GINConv", {}),
    "gin, eps": ("GINConv", {"eps": 0.3}),
    "gin, eps learnt": ("GINConv", {"eps": -0.7, "train_eps": True}),
    "gin by mean": ("GINConv", {"aggr": "mean"}),
    "graph": ("GraphConv", {"out_channels": 4}),
    "graph by min, wider": ("GraphConv", {"out_channels": 9, "aggr": "min", "bias": False}),
    "sg": ("SGConv", {"out_channels": 4, "K": 3}),
    "tag": ("TAGConv", {"out_channels": 4, "K": 2}),
    "tag, not normalised": ("TAGConv", {"out_channels": 8, "K": 2, "normalize": False}),
    "appnp": ("APPNP", {"K": 4, "alpha": 0.15}),
    "sage by softmax": ("SAGEConv", {"out_channels": 4, "aggr": "softmax"}),
    "appnp without loops": ("APPNP", {"K": 2, "alpha": 0.5, "add_self_loops": False}),
}
KINDS = ("gcn", "sage", "sage by max", "gat of heads", "gin, eps learnt", "graph", "sg", "tag", "appnp",
         "gatv2 of heads", "transformer of heads")
NO_WIDTH = ("GINConv", "APPNP")  # classes that are not told the width of x


def arguments_of(name, in_channels=INPUTS):
    kind, options = CASES[name]
    first = {"in_channels": in_channels}
    if kind in NO_WIDTH:
        first = {"nn": _mlp()} if kind == "GINConv" else {}
    return kind, {**first, **options}


def make(package, name, **changes):
    """Makes a layer of the table, of plait or of torch_geometric."""
    kind, options = arguments_of(name)
    return getattr(package.nn, kind)(**{**options, **changes})


def pair(name, **changes):
    """Returns our layer, and PyTorch Geometric's with the same weights, in double precision."""
    kind, options = arguments_of(name)
    options |= changes
    theirs = getattr(torch_geometric.nn, kind)(**copy.deepcopy(options))
    for parameter in theirs.parameters():  # also those that are 0 at first
        torch.nn.init.normal_(parameter, std=0.5)
    ours = getattr(plait.nn, kind)(**options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs.double()


def gradients(layer, x, dy, *graph):
    """Returns the result, and gradients of x and of all parameters by name."""
    x = x.clone().requires_grad_()
    layer.zero_grad()
    y = layer(x, *graph)
    y.backward(dy)
    return {"y": y, "x": x.grad, **{name: p.grad for name, p in layer.named_parameters()}}


# The matrices whose rows scores weigh, by parameters that have a part in scores alone.
_SCORED = {"att_src": "lin.weight", "att_dst": "lin.weight", "att": "lin_l.weight",
           **{f"lin_r.{part}": "lin_l.weight" for part in ("weight", "bias")},
           **{f"lin_{row}.{part}": "lin_value.weight" for row in ("key", "query")
              for part in ("weight", "bias")}}


def assert_same_gradients(found, wanted, tolerance=1e-5):
    """The gradients of scores are sums that cancel, to nothing where a node has one neighbour:
    they are compared relative to the gradients of the matrix whose rows the scores weigh."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        scored = wanted.get(_SCORED.get(name))
        scale = 0 if scored is None else scored.norm()
        if scale > value.norm():
            assert found[name].shape == value.shape
            assert (found[name] - value).norm() <= tolerance * scale, name
        else:
            assert_close(found[name], value, tolerance)

"""Layers whose steps are computed by edge, trained on a spread graph. As a program, on every rank: it prints
losses, and the operations by edge that were called, as JSON. PLAIT_STRICT=1 makes slow steps an error."""

import contextlib
import json
import sys

import torch
import torch_geometric.nn as pyg

import plait.nn
import spread_layers
from plait._edges import values as _edge_values
from spread_layers import Layered


def transformer(package):
    return lambda: Layered(lambda a, b: package.TransformerConv(a, b, heads=2, concat=False))


# Name -> functions that make the model, first with layers of PyTorch Geometric.
LAYERS = {name: (spread_layers.LAYERS[name],) * 2
          for name in ("GATConv of edges", "GATv2Conv", "GINEConv", "TransformerConv")}
LAYERS["plait.nn.TransformerConv"] = transformer(pyg), transformer(plait.nn)
ATTENTION = {"edge_lists", "edge_scores", "edge_softmax", "edge_sums"}
# The operations by edge that a step of training needs.
OPERATIONS = {name: ATTENTION for name in LAYERS} | {
    "GATConv of edges": {"edge_lists", "edge_rows", "edge_softmax", "edge_scores", "edge_sums"},
    "GATv2Conv": ATTENTION | {"edge_rows"},
    "TransformerConv": ATTENTION | {"edge_rows"},
    "GINEConv": {"edge_lists", "edge_rows", "edge_sums"},
}


class Counted:
    """The registered operations; `names` lists those that were called."""

    def __init__(self, operations):
        self._operations, self.names = operations, []

    def __getattr__(self, name):
        def call(*args):
            self.names.append(name)
            return operation(*args)

        operation = getattr(self._operations, name)
        return call


@contextlib.contextmanager
def counted():
    """Yields a list that grows by the name of each operation by edge that is called."""
    plain = _edge_values.ops
    _edge_values.ops = Counted(plain)
    try:
        yield _edge_values.ops.names
    finally:
        _edge_values.ops = plain


def train_spread(name):
    """Returns losses, and the names of operations by edge."""
    torch.manual_seed(1)
    model, data = plait.parallelize(LAYERS[name][1](), spread_layers.make_data(), partition="hash")
    with counted() as names:
        losses = spread_layers.train(model, data, plait.mean)
    for conv in (model.conv1, model.conv2):
        assert isinstance(conv, getattr(plait.nn, type(conv).__name__)) and isinstance(conv, plait.nn.FastConv)
    return losses, sorted({*names})


def train_plainly(name):
    torch.manual_seed(1)
    return spread_layers.train(LAYERS[name][0](), spread_layers.make_data(), torch.mean)


if __name__ == "__main__":
    json.dump({name: train_spread(name) for name in LAYERS}, sys.stdout)

"""Graph neural networks on one graph spread over many processors.

    import plait
    graph = plait.Graph.load("cora.npz")
    y = plait.aggregate(graph, graph.x, op="mean")
    conv = plait.nn.GCNConv(graph.x.size(1), 16)  # or SAGEConv, GATConv, GINConv
    h = conv(graph.x, graph)
    scores = plait.load_checkpoint("model.safetensors").model()(graph.x, graph)

The operations are C++ and are registered with PyTorch as torch.ops.plait.*; this package is plain
Python over them. In this version Python works on one rank, on the CPU, in float32; the command
`plait`, which comes with the package, trains on many.
"""

from plait._library import version as __version__
from plait import nn, parquet
from plait.aggregation import aggregate
from plait.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from plait.graph import Graph

__all__ = ["Checkpoint", "Graph", "aggregate", "load_checkpoint", "nn", "parquet",
           "save_checkpoint", "__version__"]

"""Graph neural networks on one graph that is spread over many processors.

    import plait
    graph = plait.Graph.load("cora.npz")
    y = plait.aggregate(graph, graph.x, op="mean")
    conv = plait.nn.GCNConv(graph.x.size(1), 16)  # as torch_geometric.nn.GCNConv
    h = conv(graph.x, graph)
    scores = plait.load_checkpoint("model.safetensors").model()(graph.x, graph)

If several processes run (`torchrun --standalone --nproc-per-node 2 train.py`), each holds a part of the graph:

    model, data = plait.parallelize(model, data)
    loss = plait.mean(F.cross_entropy(out[mask], y[mask], reduction="none"))

The operations are written in C++ and registered with PyTorch as torch.ops.plait.*; this package is
plain Python over them. Tensors are float32, on the CPU or on a GPU. plait.nn, plait.loader, plait.store and
checkpoints need PyTorch Geometric.
"""

import importlib

from plait._library import version as __version__
from plait import analytics, optim, parquet
from plait.advice import advise
from plait.aggregation import aggregate
from plait.gather import gather
from plait.graph import Graph
from plait.negatives import NonEdges, negative_sampling, structured_negative_sampling
from plait.parallel import parallelize
from plait.reduce import mean, sum
from plait.spread import spread
from plait.walks import RandomWalks, random_walk
from plait.world import alone, check, device, init, rank, world_size

__all__ = ["Checkpoint", "Graph", "NonEdges", "RandomWalks", "advise", "aggregate", "alone", "check", "device",
           "gather", "init", "load_checkpoint", "loader", "mean", "negative_sampling", "nn", "optim", "parallelize",
           "parquet", "random_walk", "rank", "save_checkpoint", "spread", "store", "structured_negative_sampling",
           "sum", "world_size", "__version__"]
# plait.bfs and so on: a function for each app.
__all__ += list(analytics.functions)
globals().update(analytics.functions)

# PyTorch Geometric, which takes seconds to import, is needed by these alone.
_NEED_TORCH_GEOMETRIC = {"nn": "plait.nn", "checkpoint": "plait.checkpoint", "loader": "plait.loader",
                         "store": "plait.store"}
_NEED_TORCH_GEOMETRIC |= dict.fromkeys(("Checkpoint", "load_checkpoint", "save_checkpoint"), "plait.checkpoint")


def __getattr__(name):
    if name not in _NEED_TORCH_GEOMETRIC:
        raise AttributeError(f"module 'plait' has no attribute {name!r}")
    module = importlib.import_module(_NEED_TORCH_GEOMETRIC[name])
    return module if module.__name__ == f"plait.{name}" else getattr(module, name)


def __dir__():
    return sorted({*globals(), *_NEED_TORCH_GEOMETRIC})

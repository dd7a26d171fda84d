"""Rows of any nodes, whichever rank has them, for decoders of links and other code of a model's own."""

import torch

from plait._library import ops
from plait._spread.dropout import graph_of_model
from plait._spread.exchange import gather_rows
from plait.graph import Graph
from plait.world import world_size


def gather(rows, ids, graph=None):
    """Returns the rows of the nodes with the given ids; differentiable by the rows.

        source, target = plait.gather(z, data.edge_label_index, data.edge_index)
        scores = (source * target).sum(-1)

    Collective; ids may differ between ranks, in number too. Each distinct row crosses a link once.

    Args:
        rows: (own nodes, ...), one row for each of this rank's own nodes; float32, float16 or
            bfloat16, bool, or whole numbers up to 2^24 of a type up to int64.
        ids: node ids of the whole graph, integers of any shape. The exchange is set up once for as
            long as this tensor lives unchanged.
        graph: a plait.Graph. None: the graph of the model that plait.parallelize has spread and that
            is computing; needed outside of it.

    Returns (*ids.shape, ...), with the type of `rows`.

    Raises TypeError for ids that are no integers or rows of another type, and ValueError for ids
    outside of the graph, rows of another number than own nodes, or a missing graph.
    """
    if graph is None:
        graph = graph_of_model()
    if not isinstance(graph, Graph):
        kind = "no graph" if graph is None else f"a {type(graph).__name__}"
        raise ValueError(f"plait.gather was given {kind}; outside of a spread model, give the "
                         "plait.Graph: plait.gather(z, ids, data.edge_index)")
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if not isinstance(ids, torch.Tensor) or ids.dtype not in whole or ids.layout != torch.strided:
        raise TypeError("ids must be a dense tensor of int64, or of smaller integers")
    if not isinstance(rows, torch.Tensor) or rows.dim() == 0:
        raise TypeError("rows must be a tensor with one row for each of this rank's own nodes")
    graph.check_rows(rows.size(0))
    if ids.numel() > 0:
        ops.wait_for(ids)
        least, most = (int(bound) for bound in ids.aminmax())
        if least < 0 or most >= graph.num_nodes:
            raise ValueError(f"id {least if least < 0 else most} is outside of the graph's nodes, "
                             f"0..{graph.num_nodes - 1}")
    return rows[ids.long()] if world_size() == 1 else gather_rows(rows, ids, graph)

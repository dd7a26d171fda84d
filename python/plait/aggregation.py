"""Sums over neighbours, y = A x, and their greatest and least values."""

from plait._edges.inputs import as_tensor
from plait.graph import as_graph

_OPS = ("sum", "mean", "weighted", "max", "min")

def aggregate(graph, x, op="sum"):
    """Returns, for each node, the sum, mean, weighted sum, maximum or minimum of the rows of x at the sources
    of its edges.

    Args:
        graph: a plait.Graph of N nodes, or an object from which one can be made and that knows its
            number of nodes: an adjacency matrix, a Data. A plait.Graph is converted once, other
            objects at every call.
        x: (N, width), float32, on the CPU or a GPU; a tensor, or an array with __dlpack__.
        op: "sum": y[i] = sum of x[j] over edges j -> i; weights are ignored.
            "mean": the sum divided by the number of the edges; 0 for a node without edges.
            "weighted": sum of weight * x[j]; the same as "sum" if there are no weights.
            "max", "min": the greatest or the least x[j] in each column; 0 for a node without edges. NaN counts
            as greater and less than all numbers. Sources that have the same extreme value share its gradient
            equally, once for each edge. Weights are ignored.

    Returns:
        (N, width), float32; differentiable by x, any number of times (maxima and minima once). The bits do not
        depend on the number of threads.

    Raises:
        ValueError: a wrong shape, type or device, or an unknown op.

    Source: section 3 of MGG (Wang et al., OSDI 2023), where it is called neighbour aggregation.
    """
    graph = as_graph(graph, counted=True)
    if op not in _OPS:
        raise ValueError(f"op is {op!r}; use {', '.join(map(repr, _OPS[:-1]))} or {_OPS[-1]!r}")
    x = as_tensor("x", x, "give (N, width) numbers")
    return graph.adjacency(device=x.device).aggregate(x, op)

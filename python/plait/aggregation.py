"""Sums over neighbours, y = A x."""

from plait.graph import Graph


def aggregate(graph, x, op="sum"):
    """For each node, the sum, mean or weighted sum of the rows of x that its edges come from.

    Args:
        graph: a plait.Graph of N nodes.
        x: (N, width), float32, on the CPU.
        op: "sum": y[i] = sum of x[j] over edges j -> i, whatever they weigh.
            "mean": that, divided by the number of the edges; 0 where there are none.
            "weighted": sum of weight * x[j]; without weights the same as "sum".

    Returns:
        (N, width), float32; differentiable by x, any number of times. Equal, bit for bit, for
        every number of threads.

    Raises:
        ValueError: a wrong shape, type or device, or an unknown op.

    Source: section 3 of MGG (Wang et al., OSDI 2023) calls it neighbour aggregation.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph is a {type(graph).__name__}; make a plait.Graph of the edges")
    if op not in ("sum", "mean", "weighted"):
        raise ValueError(f"op is {op!r}; use 'sum', 'mean' or 'weighted'")
    return graph.adjacency().aggregate(x, op)

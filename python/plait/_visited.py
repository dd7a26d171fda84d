"""The nodes that walks visit most often, on any device."""

import torch


def most_visited(visited, start, num_nodes, count):
    """Returns (place, node, visits), (M,) each: at most `count` nodes of each start, without itself, the most visited
    first, of equals the least id.

    Args:
        visited: (n, steps), the nodes that the walks of each start have visited.
        start: (n,). `place` is in it.
    """
    place = torch.arange(start.numel(), device=start.device)
    names = (place[:, None] * num_nodes + visited)[visited != start[:, None]]
    names, visits = names.unique(return_counts=True)  # ascending
    order = visits.argsort(descending=True, stable=True)
    order = order[(names[order] // num_nodes).argsort(stable=True)]
    names, visits = names[order], visits[order]
    place = names // num_nodes
    found = place.bincount(minlength=start.numel())
    rank = torch.arange(place.numel(), device=start.device) - (found.cumsum(0) - found)[place]
    kept = rank < count
    return place[kept], names[kept] % num_nodes, visits[kept]

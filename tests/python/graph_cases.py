"""Graphs that one rank fails to make, and copies of graphs. As a program, it checks them on its ranks."""

import copy
import os

import pytest
import torch

import plait
from edges import assert_close
from plait._edges.adjacency import _MOST_KEPT, owners_of
from reordered_cases import make_data, weight_of

ORDERS = ("none", "communities")


class _NoMemory:
    """Within it, the last rank cannot tell how much memory is free."""

    def __enter__(self):
        if plait.rank() == plait.world_size() - 1:
            os.environ["PLAIT_HOST_MEMORY"] = "much"

    def __exit__(self, *error):
        os.environ.pop("PLAIT_HOST_MEMORY", None)


def _refused(call):
    with _NoMemory(), pytest.raises((ValueError, RuntimeError), match="PLAIT_HOST_MEMORY is 'much'") as error:
        call()
    of = "" if plait.world_size() == 1 else f"rank {plait.world_size() - 1}: "
    assert str(error.value).startswith(of) and "\n" not in str(error.value)


def _sums(graph, x):
    """Returns the sums of all nodes."""
    return graph.gather(plait.aggregate(graph, graph.own(x)))


def check_failures():
    """All ranks refuse a graph that one of them cannot divide or place, and what they make afterwards is right."""
    data = make_data()
    wanted = torch.zeros_like(data.x).index_add_(0, data.edge_index[1], data.x[data.edge_index[0]])
    for order in ORDERS:
        index = data.edge_index.clone()
        first = plait.Graph(index, reorder=order, partition="vertices")
        assert_close(_sums(first, data.x), wanted, 1e-5)
        owners, placed = owners_of(index, first.num_nodes, first.layout()), first.adjacency()
        for partition in ("hash", "edges"):
            graph = plait.Graph(index, reorder=order, partition=partition)
            for _ in range(3):
                if plait.world_size() > 1 or order != "none":  # else one rank owns all nodes
                    _refused(lambda graph=graph, index=index: owners_of(index, graph.num_nodes, graph.layout()))
            assert_close(_sums(graph, data.x), wanted, 1e-5)
            assert torch.equal(graph.gather(graph.vertices), torch.arange(graph.num_nodes))
        assert owners_of(index, first.num_nodes, first.layout()) is owners and first.adjacency() is placed


def check_many_failures():
    """Failures take the places of objects that are kept, the same on all ranks."""
    data = make_data()
    index = data.edge_index.clone()
    graph = plait.Graph(index, reorder="degree")
    before = _sums(graph, data.x)
    for _ in range(_MOST_KEPT + 2):
        other = plait.Graph(index, reorder="degree", partition="hash")
        _refused(lambda other=other: owners_of(index, other.num_nodes, other.layout()))
    assert_close(_sums(graph, data.x), before, 0)
    assert_close(_sums(other, data.x), before, 1e-5)


def check_placing():
    """Where the memory for rows is asked for."""
    data = make_data()
    graph = plait.Graph(data.edge_index.clone())
    graph.vertices  # noqa: B018, the owners are known
    if plait.world_size() > 1:
        _refused(lambda: plait.aggregate(graph, graph.own(data.x)))
    assert_close(_sums(graph, data.x), _sums(plait.Graph(data.edge_index.clone()), data.x), 1e-5)


def check_copies():
    data = make_data()
    weight = weight_of(data)
    for order in ORDERS:
        graph = plait.Graph(data.edge_index.clone(), edge_weight=weight.clone(), reorder=order)
        graph.x = data.x
        before = graph.gather(plait.aggregate(graph, graph.own(data.x), "weighted"))
        shallow, deep = copy.copy(graph), copy.deepcopy(graph)
        assert shallow.edge_index is graph.edge_index and shallow.adjacency() is graph.adjacency()
        assert deep.edge_index is not graph.edge_index and deep.x is not graph.x
        for other in (shallow, deep):
            assert (other.num_nodes, other.partition, other.reorder) == (graph.num_nodes, graph.partition, order)
            found = other.gather(plait.aggregate(other, other.own(data.x), "weighted"))
            assert_close(found, before, 1e-6)
            assert torch.equal(other.vertices, graph.vertices)
        deep.edge_weight.mul_(2)  # a copy's weights are its own
        assert_close(deep.gather(plait.aggregate(deep, deep.own(data.x), "weighted")), 2 * before, 1e-5)
        assert_close(graph.gather(plait.aggregate(graph, graph.own(data.x), "weighted")), before, 1e-6)
        shallow.edge_weight = None
        assert graph.is_weighted and not shallow.is_weighted
        open_graph = plait.Graph(data.edge_index, reorder=order)
        copied = copy.copy(open_graph)
        copied.place("hash", "auto", order, "fp32")
        assert (copied.partition, open_graph.partition) == ("hash", "edges")


CHECKS = (check_failures, check_many_failures, check_placing, check_copies)


def main():
    for check in CHECKS:
        check()


if __name__ == "__main__":
    main()

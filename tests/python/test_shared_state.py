"""Callers do not see arrays that are kept between calls, or padded within them."""

import pytest
import torch
from torch.nn.utils import prune

import plait
from plait._draws import StepCounter

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]])


@pytest.mark.parametrize("make", [lambda: plait.nn.GCNConv(6, 3), lambda: plait.nn.SAGEConv(6, 3)])
def test_hooks_of_linear_maps(make):
    """A pruned weight is made anew at each call of the map."""
    conv = make()
    prune.l1_unstructured(conv.lin if hasattr(conv, "lin") else conv.lin_l, "weight", amount=0.5)
    calls = []
    (conv.lin if hasattr(conv, "lin") else conv.lin_l).register_forward_hook(
        lambda *_: calls.append(1))
    x = torch.randn(4, 6)
    for step in range(3):
        conv(x, EDGES).sum().backward()
        assert len(calls) == step + 1


def test_a_wrapper_in_place_of_a_linear_map():
    conv, x = plait.nn.GCNConv(6, 3, bias=False), torch.randn(4, 6)
    before = conv(x, EDGES)

    class Doubled(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.weight = inner, inner.weight

        def forward(self, x):
            return 2 * self.inner(x)

    conv.lin = Doubled(conv.lin)
    torch.testing.assert_close(conv(x, EDGES), 2 * before)


def test_results_have_no_gaps():
    x = torch.randn(4, 6)
    for conv in (plait.nn.GCNConv(6, 3, bias=False), plait.nn.SAGEConv(6, 3, root_weight=False)):
        assert conv(x, EDGES).is_contiguous()


def test_vertices_are_the_callers():
    graph, same = plait.Graph(EDGES), plait.Graph(EDGES)
    graph.vertices.add_(10)
    assert same.vertices.tolist() == graph.vertices.tolist() == [0, 1, 2, 3]


def test_what_is_made_in_inference_mode_serves_training():
    graph, steps = plait.Graph(EDGES), StepCounter()
    with torch.inference_mode():
        graph.vertices, steps.on(torch.device("meta"))
    x = torch.randn(4, 2, requires_grad=True)
    x[graph.vertices].sum().backward()
    steps.advance()


def test_fingerprints():
    def fingerprint(values):
        return torch.ops.plait.fingerprint(values)

    one, other = torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([1 + 9j, 3 + 4j])
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one.conj()) == fingerprint(one.conj().resolve_conj()) != fingerprint(one)
    with pytest.raises((RuntimeError, NotImplementedError)):
        fingerprint(torch.empty(3, device="meta"))


def test_a_graph_is_not_taken_for_one_of_other_weights():
    with torch.inference_mode():
        weight = torch.tensor([7.0, 5, 9, 5])
    handle = torch.ops.plait.partition_of_edges(EDGES, 4, weight, "edges")
    graph = torch.ops.plait.graph_from_edges(EDGES, 4, partition=handle)
    assert graph.degree().tolist() == [2, 1, 1, 0]

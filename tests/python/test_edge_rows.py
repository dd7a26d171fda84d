"""Rows of edges, and sums over edges, on a piece of a graph: as torch computes them, with gradients."""

import types

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import scatter

import plait
from plait._edges.rows import EdgeOrder, reduce, take

NODES = 7


@pytest.fixture
def piece():
    return types.SimpleNamespace(edge_order=EdgeOrder(40 + NODES), num_own=NODES)


def select(dim):
    return lambda rows, index: rows.index_select(dim, index)


def ends(edges, nodes=NODES):
    return torch.randint(0, nodes - 1, (edges,), generator=torch.Generator().manual_seed(3))  # one without edges


def made(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4), requires_grad=True)


def gradients(out, given):
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(5))
    (first,) = torch.autograd.grad((out.sin() * weight).sum(), given, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), given)
    return out, first, second


def calls_of(monkeypatch, name):
    """Counts the calls of a C++ operation: the tests must not compare torch with itself."""
    count = []
    operation = getattr(plait._edges.rows.ops, name)
    monkeypatch.setattr(plait._edges.rows.ops, name, lambda *a, **k: count.append(1) or operation(*a, **k))
    return count


@pytest.mark.parametrize("shape, dim", [((NODES, 8), 0), ((NODES, 8), -2), ((NODES, 37), 0), ((NODES, 2, 5), 0),
                                        ((3, NODES, 9), -2), ((2, 2, NODES, 16), 2)])
def test_taken_rows_and_their_gradients_are_torchs(monkeypatch, piece, shape, dim):
    sums = calls_of(monkeypatch, "edge_sums")
    rows, index = made(*shape), ends(40)
    wanted = gradients(rows.index_select(dim, index), rows)
    for found, want in zip(gradients(take(select(dim), piece, rows, index, dim), rows), wanted):
        torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)
    assert sums


@pytest.mark.parametrize("kind", ["sum", "add", "mean"])
@pytest.mark.parametrize("before, after, dim", [((), (8,), 0), ((), (33,), -2), ((), (2, 5), 0), ((3,), (9,), -2)])
def test_reduced_rows_and_their_gradients_are_torchs(monkeypatch, piece, kind, before, after, dim):
    sums = calls_of(monkeypatch, "edge_sums")
    values, index = made(*before, 40, *after), ends(40)
    wanted = gradients(scatter(values, index, dim, NODES, kind), values)
    found = gradients(reduce(scatter, piece, values, index, dim, dim_size=NODES, reduce=kind), values)
    for one, want in zip(found, wanted):
        torch.testing.assert_close(one, want, rtol=1e-5, atol=1e-5)
    assert sums


def test_long_rows_have_the_same_bits_each_time(piece):
    values, index = made(100_000, 16).detach(), ends(100_000, 3)
    first, again = (reduce(scatter, piece, values, index, 0, NODES, "sum") for _ in range(2))
    assert torch.equal(first, again)
    torch.testing.assert_close(first, scatter(values.double(), index, 0, NODES).float(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("values, index, options", [
    (made(40, 4), ends(40), {}),  # narrow
    (made(40, 16).double(), ends(40), {}),
    (made(40, 16), ends(40), {"reduce": "max"}),
    (made(40, 16), ends(40), {"dim_size": NODES + 1}),
    (made(40, 16), ends(40), {"dim_size": None}),
    (made(0, 16), ends(0), {}),
    (made(9, 40, 16), ends(40), {"dim": 1}),
])
def test_the_rest_is_left_to_torch(monkeypatch, piece, values, index, options):
    sums = calls_of(monkeypatch, "edge_sums")
    options = {"dim": 0, "dim_size": NODES, "reduce": "sum", **options}
    found = reduce(scatter, piece, values, index, **options)
    assert torch.equal(found, scatter(values, index, **options))
    assert not sums


@pytest.mark.parametrize("index", [ends(40) + NODES, ends(40) - 1, ends(40).view(2, 20), ends(39), ends(40).int()])
def test_bad_ids_are_errors_as_torchs(piece, index):
    values = made(40, 16)
    with pytest.raises(Exception) as wanted:
        scatter(values, index, 0, NODES, "sum")
    with pytest.raises(type(wanted.value)):
        reduce(scatter, piece, values, index, 0, NODES, "sum")


def test_ids_that_change_before_the_gradient_are_an_error(piece):
    rows, index = made(NODES, 8), ends(40)
    out = take(select(0), piece, rows, index, 0)
    index[0] = 3
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_ids_that_change_between_calls_are_seen(piece):
    values, index = made(40, 16).detach(), ends(40)
    reduce(scatter, piece, values, index, 0, NODES, "sum")
    index.fill_(2)
    assert torch.equal(reduce(scatter, piece, values, index, 0, NODES, "sum"),
                       scatter(values, index, 0, NODES, "sum"))


def test_few_orders_are_kept(piece):
    for seed in range(9):
        reduce(scatter, piece, made(40, 16).detach(), ends(40).roll(seed), 0, NODES, "sum")
    assert len(piece.edge_order._lists) == plait._edges.rows._MOST_ORDERS


def test_lists_of_parts_of_the_edges_are_all_kept(monkeypatch, piece):
    made_lists = calls_of(monkeypatch, "edge_lists")
    for _ in range(2):  # as RGCNConv makes the index of each relation's edges anew in each step
        for relation in range(12):
            reduce(scatter, piece, made(10, 16).detach(), ends(10).roll(relation), 0, NODES, "sum")
    assert len(made_lists) == len(piece.edge_order._lists) <= 12


@pytest.mark.parametrize("layer", [lambda: pyg.GatedGraphConv(16, 2), lambda: pyg.ARMAConv(16, 16, num_stacks=2)])
def test_layers_use_it(monkeypatch, layer):
    """A layer without kernels of its own, after parallelize: only then are its sums ours."""
    from torch_geometric.data import Data

    sums = calls_of(monkeypatch, "edge_sums")
    data = Data(x=made(NODES, 16).detach(), edge_index=torch.stack([ends(40), ends(40).flip(0)]))
    torch.manual_seed(1)
    model = pyg.Sequential("x, edge_index", [(layer(), "x, edge_index -> x")])
    wanted = model(data.x, data.edge_index)
    assert not sums
    spread, data = plait.parallelize(model, data)
    torch.testing.assert_close(spread(data.x, data.edge_index), wanted, rtol=1e-5, atol=1e-5)
    assert sums

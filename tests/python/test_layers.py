"""Every layer of plait.nn against PyTorch Geometric's with the same weights."""

import copy
import pickle
import re

import pytest
import torch
import torch_geometric

import plait
from edges import Edges, assert_close, random_edges
from layers import CASES, INPUTS, KINDS, NO_WIDTH, assert_same_gradients, gradients, make, pair


def _edges(pairs, num_nodes):
    return Edges(torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t(), None, num_nodes)


ODD = {
    "no edges": _edges([], 5),
    "one node": _edges([], 1),
    "one node and its loops": _edges([(0, 0)] * 3, 1),
    "loops alone": _edges([(1, 1), (3, 3), (3, 3)], 5),
    "parallel edges": _edges([(0, 1)] * 4 + [(1, 0)], 3),
    "two parts": _edges([(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)], 6),
    "one way": _edges([(i, i + 1) for i in range(9)], 10),
    "a hub": _edges([(i, 0) for i in range(300)] + [(0, 7)], 300),
}


def check(name, edges, seed):
    torch.manual_seed(seed)
    ours, theirs = pair(name)
    # Few values, so that several neighbours have the greatest; not 0, of which the gradient of
    # PyTorch's own maximum keeps a share for where a node starts from.
    x = torch.randint(-4, 5, (edges.num_nodes, INPUTS)) + 0.5
    with torch.no_grad():
        inferred = ours(x, edges.index)
    dy = torch.randn_like(inferred)
    wanted = gradients(theirs, x.double(), dy.double(), edges.index)
    assert_close(inferred, wanted["y"])
    graph = plait.Graph(edges.index, edges.num_nodes)
    for found in (gradients(ours, x, dy, edges.index), gradients(ours, x, dy, graph)):
        assert_same_gradients(found, wanted)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(6))
def test_as_torch_geometric(name, seed):
    check(name, random_edges(seed, symmetric=seed % 4 == 0), seed)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shape", ODD)
def test_odd_graphs(name, shape):
    check(name, ODD[shape], 1)


@pytest.mark.parametrize("name", KINDS)
def test_no_nodes(name):
    x = torch.empty(0, INPUTS, requires_grad=True)
    y = make(plait, name)(x, torch.empty(2, 0, dtype=torch.long))
    assert y.size(0) == 0
    y.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("name", CASES)
def test_first_weights(name):
    """They come from the same numbers of torch's generator: drawn alike, in the same order."""
    found, wanted = [], []
    for package, into in ((plait, found), (torch_geometric, wanted)):
        torch.manual_seed(3)
        layer = make(package, name)
        into.append(copy.deepcopy(layer.state_dict()))
        layer.reset_parameters()
        into.append(layer.state_dict())
    for ours, theirs in zip(found, wanted):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            assert torch.equal(ours[key], value), key
    same = [torch.equal(a, b) for a, b in zip(found[0].values(), found[1].values())]
    assert not all(same) or not same  # APPNP has no weights


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][0] not in NO_WIDTH and "project" not in n])
def test_input_width_found_at_the_first_call(name):
    edges = random_edges(1)
    x = torch.randn(edges.num_nodes, INPUTS)
    lazy, known = make(plait, name, in_channels=-1), make(plait, name)
    lazy(x, edges.index)
    lazy.load_state_dict(known.state_dict())
    assert_close(lazy(x, edges.index), known(x, edges.index))
    another = make(plait, name, in_channels=-1)
    another.load_state_dict(known.state_dict())
    assert_close(another(x, edges.index), known(x, edges.index))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(name, duplicate):
    edges = random_edges(6)
    x = torch.randn(edges.num_nodes, INPUTS)
    layer = make(plait, name)
    wanted = layer(x, edges.index)
    assert torch.equal(duplicate(layer)(x, edges.index), wanted)
    assert "(" in repr(layer)


# --- compiled, and in other precisions ---


@pytest.mark.parametrize("name", KINDS)
def test_under_torch_compile(name):
    edges = random_edges(4)
    layer = make(plait, name)
    graph = plait.Graph(edges.index, edges.num_nodes)
    x = torch.randn(edges.num_nodes, INPUTS)

    def function(t, g):
        return layer(2 * t, g).relu() + 1

    # aot_eager traces gradients too; its results are run as they stand.
    compiled = torch.compile(function, backend="aot_eager")
    for given in (graph, edges.index):
        results = []
        for f in (function, compiled):
            layer.zero_grad()
            t = x.clone().requires_grad_()
            y = f(t, given)
            y.square().sum().backward()
            results.append([y, t.grad, *(p.grad for p in layer.parameters())])
        for found, wanted in zip(results[1], results[0]):
            assert_close(found, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", KINDS)
def test_under_autocast(name, dtype):
    """Results are about as near to double precision as PyTorch Geometric's under autocast."""
    torch.manual_seed(0)
    edges = random_edges(8)
    ours, exact = pair(name)
    theirs = copy.deepcopy(exact).float()
    x = torch.randn(edges.num_nodes, INPUTS)
    with torch.no_grad():
        dy = torch.randn(ours(x, edges.index).shape)
    wanted = gradients(exact, x.double(), dy.double(), edges.index)

    def lowered(layer):
        def forward(t, index):
            with torch.autocast("cpu", dtype=dtype):
                return layer(t, index)
        forward.zero_grad, forward.named_parameters = layer.zero_grad, layer.named_parameters
        return gradients(forward, x, dy, edges.index)

    for found in (lowered(ours), lowered(theirs)):
        assert_same_gradients({key: t.float() for key, t in found.items()}, wanted, 0.05)


def test_operations_under_autocast_are_in_float32():
    """The second of two layers gets bfloat16; gradients come in each tensor's own type."""
    edges = random_edges(8)
    graph = plait.Graph(edges.index, edges.num_nodes)
    x = torch.randn(edges.num_nodes, 4).bfloat16().requires_grad_()
    with pytest.raises(ValueError, match="float32"):
        plait.aggregate(graph, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = plait.aggregate(graph, x)
    assert y.dtype == torch.float32
    assert_close(y, edges.matrix("sum") @ x.detach().double().numpy())
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16
    for op in (lambda t: graph.adjacency().aggregate(t, "max"),
               lambda t: graph.adjacency().attend(t, t[:, :2], 0.2, 0.0)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert_close(op(x), op(x.float()))


# --- mistakes ---


INDEX = torch.tensor([[0, 1], [1, 2]])


@pytest.mark.parametrize("name", KINDS)
def test_a_graph_of_other_size(name):
    for x, words in ((torch.ones(4, INPUTS), "x has 4 rows, but the graph has 3 nodes"),
                     (torch.ones(2, INPUTS), "x has 2 rows, but the graph has 3 nodes")):
        with pytest.raises(ValueError, match=words):
            make(plait, name)(x, plait.Graph(INDEX))
    with pytest.raises(ValueError, match="list"):
        make(plait, name)(torch.ones(3, INPUTS), [[0], [1]])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("converted", ["layer", "x"])
def test_layer_and_x_of_two_types(name, converted):
    """A model that .double() has converted takes x of float64; the mistake is told in Plait's words."""
    layer, x = make(plait, name), torch.ones(3, INPUTS)
    if converted == "layer":
        layer.double()
    else:
        x = x.double()
    try:
        assert layer(x, INDEX).shape[0] == 3  # where no weight meets x, or PyTorch converts
    except ValueError as error:
        assert re.match(r"x is torch.float(32|64), but .* of plait.nn.\w+ is torch.float(32|64); give both", str(error))

"""Options and arguments of PyTorch Geometric's layers (drop_in_cases.py): each gives plait.nn's layer the
same result, by the fast way or by PyTorch Geometric's own code, or the same error."""

import contextlib
import inspect
import warnings

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex

import plait
from drop_in_cases import FAST, NEVER, SLOW, WRONG, compare, pair
from drop_in_inputs import (BOTH, EDGES, SOURCES, STATIC, TARGETS, TURNED, WEIGHT, WIDE_OF_EDGES, WIDTH, X,
                            X_TARGETS, of, own_messages, sparse)
from edges import assert_close
from plait.nn import _slow


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch):
    monkeypatch.setattr(_slow, "_told", set())


@pytest.mark.parametrize("name", FAST)
def test_the_fast_way(name, monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "1")  # an error, if it is not fast
    compare(*FAST[name])


@pytest.mark.parametrize("name", SLOW)
def test_their_own_code(name, monkeypatch):
    layer, make, args, named = SLOW[name]
    with pytest.warns(UserWarning, match=r"plait.nn.\w+: .*own code computes this, slowly, because of ."):
        compare(layer, make, args, named)
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        compare(layer, make, args, named)
    assert not any("plait.nn" in str(w.message) for w in again) or "own" in name
    monkeypatch.setenv("PLAIT_STRICT", "1")
    with pytest.raises(NotImplementedError, match="because of"):
        pair(layer, make)[0](*args, **named)


def test_rows_without_content():
    for package in (plait.nn, pyg):
        layer = package.SAGEConv(WIDTH, 4).to("meta")
        assert layer(X.to("meta"), BOTH.to("meta")).shape == (SOURCES, 4)


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    layer, make, args, named = WRONG[name]
    errors = []
    for conv in pair(layer, make):
        with pytest.raises(Exception) as caught, contextlib.suppress(NotImplementedError):
            conv(*args, **named)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


_HALF = X.half()
OF_OTHER_TYPES = {
    "no edges": (X, None), "a list of edges": (X, BOTH.tolist()), "a word": (X, "edges"), "no x": (None, BOTH),
    "x of a number": (3, BOTH), "no rows": ((), BOTH), "float64": (X.double(), BOTH), "float16": (_HALF, BOTH),
    "a rectangle": (X, torch.sparse_coo_tensor([[0], [1]], [1.0], (SOURCES, SOURCES + 1)).coalesce()),
    "three dimensions": (X, torch.sparse_coo_tensor([[0], [1], [1]], [1.0], (SOURCES, SOURCES, SOURCES))),
}


@pytest.mark.parametrize("name", ["GCNConv", "SAGEConv", "GATConv", "GATv2Conv", "TransformerConv", "GraphConv", "SGConv",
                                  "TAGConv"])
def test_types_of_errors(name):
    """Of mistakes for which Plait has words of its own: a script that catches PyTorch Geometric's error catches ours."""
    calls = {call: (args, {}) for call, args in OF_OTHER_TYPES.items()}
    if name in ("SAGEConv", "GATConv", "GraphConv"):
        calls |= {"weights as sizes": ((X, BOTH), {"size": WEIGHT}), "one size": ((X, BOTH), {"size": (SOURCES,)})}
    for call, (args, named) in calls.items():
        errors = []
        for conv in pair(name, of(WIDTH, 4)):
            try:
                conv(*args, **named)
                errors.append(None)
            except Exception as error:
                errors.append(error)
        ours, theirs = errors
        assert (ours is None) == (theirs is None), (call, ours, theirs)
        assert theirs is None or isinstance(ours, type(theirs)), (call, ours, theirs)


@pytest.mark.parametrize("name", NEVER)
def test_mistakes_in_options(name):
    layer, options = NEVER[name]
    errors = []
    for package in (plait.nn, pyg):
        with pytest.raises((ValueError, TypeError)) as caught:
            getattr(package, layer)(**options)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


LAYERS = [name for name in plait.nn.__all__ if hasattr(pyg, name)]


@pytest.mark.parametrize("name", LAYERS)
def test_classes(name):
    ours, theirs = getattr(plait.nn, name), getattr(pyg, name)
    assert issubclass(ours, theirs) and ours.__name__ == theirs.__name__
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert inspect.signature(ours.forward) == inspect.signature(theirs.forward)


@pytest.mark.parametrize("name,make,args", [
    ("GCNConv", of(WIDTH, 4), (X, BOTH, WEIGHT)),
    ("SAGEConv", of(WIDTH, 4, project=True), (X, BOTH)),
    ("GINConv", of(torch.nn.Sequential(torch.nn.Linear(WIDTH, 4), torch.nn.ReLU())), (X, BOTH)),
    ("GATConv", of(WIDTH, 4, heads=2), (X, BOTH)),
    ("GraphConv", of(WIDTH, 4), (X, BOTH, WEIGHT)),
    ("SGConv", of(WIDTH, 4, K=2), (X, BOTH)),
    ("TAGConv", of(WIDTH, 4), (X, BOTH)),
    ("APPNP", of(3, 0.1), (X, BOTH)),
    ("GATv2Conv", of(WIDTH, 4, heads=2), (X, BOTH)),
    ("TransformerConv", of(WIDTH, 4, heads=2), (X, BOTH)),
    ("GINEConv", of(torch.nn.Linear(WIDTH, 4)), (X, BOTH, WIDE_OF_EDGES)),
])
def test_scripts_traces_and_printed_forms(name, make, args):
    ours, theirs = pair(name, make)
    assert repr(ours) == repr(theirs)
    wanted = theirs(*args)
    if name not in ("GATConv", "GATv2Conv", "TransformerConv"):  # theirs cannot be scripted alone, either
        assert_close(torch.jit.script(ours)(*args), wanted.detach())
    assert_close(torch.jit.trace(ours, args, check_trace=False)(*args), wanted.detach())
    assert type(ours) is getattr(plait.nn, name)
    assert_close(ours(*args), wanted.detach())


def test_caches_are_where_theirs_are():
    for name, make in (("GCNConv", of(WIDTH, 4, cached=True)), ("APPNP", of(2, 0.1, cached=True))):
        ours, theirs = pair(name, make)
        for layer in (ours, theirs):
            layer(X, BOTH)
        for found, wanted in zip(ours._cached_edge_index, theirs._cached_edge_index, strict=True):
            assert torch.equal(found, wanted)
        assert_close(ours(X, BOTH[:, :3]), theirs(X, BOTH[:, :3]))
        ours.reset_parameters()
        assert ours._cached_edge_index is None


def test_layers_inside_other_modules_of_theirs():
    """to_hetero makes a bipartite layer for each kind of edge; Sequential takes layers by signature."""
    net = pyg.Sequential("x, edge_index", [
        (plait.nn.SAGEConv((-1, -1), 8), "x, edge_index -> x"), torch.nn.ReLU(),
        (plait.nn.GATConv((-1, -1), 4, add_self_loops=False), "x, edge_index -> x")])
    kinds = (["a", "b"], [("a", "to", "b"), ("b", "back", "a")])
    x, edges = {"a": X, "b": X_TARGETS}, {kinds[1][0]: BOTH, kinds[1][1]: TURNED}
    out = pyg.to_hetero(net, kinds)(x, edges)
    assert out["a"].shape == (SOURCES, 4) and out["b"].shape == (TARGETS, 4)
    hetero = pyg.HeteroConv({kind: plait.nn.SAGEConv((-1, -1), 4) for kind in kinds[1]})
    assert hetero(x, edges)["b"].shape == (TARGETS, 4)


def test_errors_of_modules_of_the_user_pass_through():
    calls = []

    def fail(module, given):
        calls.append(1)
        raise ValueError("mine")

    nn = torch.nn.Linear(WIDTH, 4)
    nn.register_forward_pre_hook(fail)
    with pytest.raises(ValueError, match="^mine$"):
        plait.nn.GINConv(nn)(X, BOTH)
    assert len(calls) == 1


@pytest.mark.parametrize("changed", [pyg.SAGEConv, plait.nn.SAGEConv])
def test_messages_replaced_in_the_class(changed, monkeypatch):
    conv = plait.nn.SAGEConv(WIDTH, 4)
    conv(X, BOTH)
    monkeypatch.setattr(changed, "message", lambda self, x_j: 3 * x_j)
    with pytest.warns(UserWarning, match="messages of your own"):
        conv(X, BOTH)


@pytest.mark.parametrize("name", ["GCNConv", "GATConv", "GATv2Conv", "TransformerConv"])
def test_explanations_come_and_go(name, monkeypatch):
    """Also where PyTorch Geometric's class was used first, which keeps generated code in the class."""
    make = of(WIDTH, 4)
    found = []
    for conv in pair(name, make)[::-1]:
        conv(X, BOTH)
        conv.explain, conv._loop_mask = True, BOTH[0] != BOTH[1]
        conv._edge_mask = torch.full((EDGES,), 0.3, requires_grad=True)
        conv(X, BOTH).square().sum().backward()
        found.append(conv._edge_mask.grad)
        conv.explain = False
    assert_close(*found)
    monkeypatch.setenv("PLAIT_STRICT", "1")
    conv(X, BOTH)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name,options", [
    ("SAGEConv", {}), ("SAGEConv", {"aggr": "max"}), ("SAGEConv", {"aggr": "std"}), ("GraphConv", {}),
    ("SAGEConv", {"aggr": "softmax"}), ("GCNConv", {}), ("GCNConv", {"normalize": False}), ("GATConv", {}),
    ("TAGConv", {}), ("SGConv", {})])
def test_types_under_autocast(name, options, dtype, monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "1")
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = (conv(X.to(dtype), BOTH) for conv in pair(name, of(WIDTH, 4, **options)))
    assert ours.dtype == theirs.dtype
    assert_close(ours.float().detach(), theirs.float().detach(), 2e-2)


@pytest.mark.parametrize("name", ["SAGEConv", "GATConv", "GATv2Conv", "TransformerConv"])
def test_derivatives_by_torch_func(name):
    def by_modes(conv):
        yield torch.func.jvp(lambda x: conv(x, BOTH), (X,), (X,))[1]
        yield torch.func.jacrev(lambda x: conv(x, BOTH))(X)
        yield torch.func.vmap(lambda x: conv(x, BOTH))(STATIC)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(X, X)
            yield torch.autograd.forward_ad.unpack_dual(conv(dual, BOTH)).tangent

    results = (list(by_modes(conv)) for conv in pair(name, of(WIDTH, 4)))
    for found, wanted in zip(*results, strict=True):
        assert_close(found.detach(), wanted.detach(), 1e-5)


def test_edge_index_that_changes():
    edges = EdgeIndex(BOTH.clone(), sparse_size=(SOURCES, SOURCES))
    ours, theirs = pair("SAGEConv", of(WIDTH, 4))
    ours(X, edges)
    edges[0, 0] = 7
    assert_close(ours(X, edges).detach(), theirs(X, edges).detach())


@pytest.mark.parametrize("name", ["GATConv", "GCNConv", "SAGEConv"])
def test_sparse_tensors_with_an_entry_twice(name):
    """At each step: their own code marks the tensor as coalesced."""
    entries = torch.tensor([[0, 0, 0, 1], [1, 1, 2, 3]])
    ours, theirs = pair(name, of(WIDTH, 4))
    matrix, other = (torch.sparse_coo_tensor(entries, torch.ones(4), (4, 4)) for _ in range(2))
    for _ in range(3):
        assert_close(ours(X[:4], matrix).detach(), theirs(X[:4], other).detach())


@pytest.mark.parametrize("shape", [(1, 1, 4), (2, 4), (1, 8), (1, 4, 2)])
@pytest.mark.parametrize("name,parameter", [("GATv2Conv", "att"), ("GATConv", "att_edge")])
def test_attention_of_other_shapes(name, parameter, shape):
    """It is broadcast, or refused, as theirs is."""
    results = []
    for conv in pair(name, of(WIDTH, 4, heads=2, edge_dim=3)):
        torch.manual_seed(1)
        setattr(conv, parameter, torch.nn.Parameter(torch.randn(shape)))
        try:
            results.append(conv(X, BOTH, torch.ones(BOTH.size(1), 3)).detach())
        except RuntimeError as error:
            results.append(str(error))
    if isinstance(results[1], str):
        assert results[0] == results[1]
    else:
        assert_close(*results)


def test_gradients_of_sparse_tensors_after_a_call_without():
    grads = []
    for conv in pair("GraphConv", of(WIDTH, 4)):
        matrix = sparse(weighted=True).to_sparse_csr()
        with torch.no_grad():
            conv(X, matrix)
        matrix.requires_grad_()
        conv(X, matrix).square().sum().backward()
        grads.append(matrix.grad.to_dense())
    assert_close(*grads, 1e-5)


def test_scripts_of_derived_classes_are_refused():
    with pytest.raises(NotImplementedError, match="derive it from torch_geometric.nn.SAGEConv"):
        torch.jit.script(own_messages(plait.nn.SAGEConv))


@pytest.mark.parametrize("name", ["SAGEConv", "GATv2Conv", "TransformerConv"])
def test_export(name):
    ours, theirs = pair(name, of(WIDTH, 4))
    exported = torch.export.export(ours, (X, BOTH)).module()
    assert_close(exported(X, BOTH).detach(), theirs(X, BOTH).detach())


def test_weights_of_a_graph_that_has_none():
    graph = plait.Graph(BOTH, SOURCES)
    conv = plait.nn.GraphConv(WIDTH, 4)
    assert_close(conv(X, graph, WEIGHT), conv(X, BOTH, WEIGHT).detach())
    slow = plait.nn.GraphConv(WIDTH, 4, aggr="max")
    with pytest.warns(UserWarning, match="MaxAggregation of weighted rows"):
        assert_close(slow(X, plait.Graph(BOTH, SOURCES, WEIGHT)), slow(X, BOTH, WEIGHT).detach())

"""Layers whose steps are computed by edge (plait._edges.values): odd graphs against double precision, the
lists that are kept of edges, and spread graphs."""

import copy
import json
import threading
import weakref

import pytest
import torch
import torch_geometric.nn as pyg
from torch.utils._python_dispatch import TorchDispatchMode

import plait
import spread_edge_values
from drop_in_cases import with_gradients
from edges import Edges, assert_close, random_edges
from plait._edges import adjacency as _adjacency
from ranks import HERE, Ranks
from spread_edge_values import counted
from test_layers import ODD

WIDTH, FEATURES = 6, 3


def star(edges):
    """All edges lead from the other nodes to the first."""
    ids = torch.arange(edges)
    return Edges(torch.stack([ids % 99 + 1, 0 * ids]), None, 100)


GRAPHS = {**ODD, "a great hub": star(10000), "sources without edges": Edges(torch.tensor([[1], [1]]), None, 7),
          "no nodes": Edges(torch.empty(2, 0, dtype=torch.long), None, 0),
          **{f"random {seed}": random_edges(seed) for seed in range(6)}}
ATTENTION = {"return_attention_weights": True}
# Name -> class, its arguments, the width of features of edges, further arguments of a call.
CASES = {
    "attention": ("GATConv", {"in_channels": WIDTH, "out_channels": 5, "heads": 2}, 0, ATTENTION),
    "features": ("GATConv", {"in_channels": WIDTH, "out_channels": 4, "heads": 3, "edge_dim": FEATURES},
                 FEATURES, {}),
    "features without loops": ("GATConv", {"in_channels": WIDTH, "out_channels": 4, "edge_dim": FEATURES,
                                           "add_self_loops": False}, FEATURES, ATTENTION),
    "v2": ("GATv2Conv", {"in_channels": WIDTH, "out_channels": 5, "heads": 2}, 0, {}),
    "v2 of one channel": ("GATv2Conv", {"in_channels": WIDTH, "out_channels": 1, "heads": 8}, 0, {}),
    "v2 of features": ("GATv2Conv", {"in_channels": WIDTH, "out_channels": 4, "heads": 2,
                                     "edge_dim": FEATURES}, FEATURES, ATTENTION),
    "v2 without loops": ("GATv2Conv", {"in_channels": WIDTH, "out_channels": 7, "edge_dim": FEATURES,
                                       "add_self_loops": False}, FEATURES, {}),
    "transformer": ("TransformerConv", {"in_channels": WIDTH, "out_channels": 5, "heads": 2}, 0, {}),
    "transformer of features": ("TransformerConv", {"in_channels": WIDTH, "out_channels": 4, "heads": 3,
                                                    "edge_dim": FEATURES, "beta": True}, FEATURES, ATTENTION),
    "GINE": ("GINEConv", {"nn": torch.nn.Linear(WIDTH, 4), "train_eps": True}, WIDTH, {}),
    "GINE, edge_dim": ("GINEConv", {"nn": torch.nn.Linear(WIDTH, 4), "edge_dim": FEATURES}, FEATURES, {}),
    "softmax": ("SAGEConv", {"in_channels": WIDTH, "out_channels": 4, "aggr": "softmax"}, 0, {}),
}
BY_EDGE = [name for name in CASES if name != "softmax"]
SHORT = Edges(torch.tensor([[0, 1, 2, 3, 3, 0], [1, 2, 3, 0, 5, 1]]), None, 6)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "1")


def make(name, edges=SHORT):
    """Returns our layer, PyTorch Geometric's of the same weights, and arguments of a call."""
    kind, options, width, named = CASES[name]
    torch.manual_seed(4)
    theirs = getattr(pyg, kind)(**copy.deepcopy(options))
    for parameter in theirs.parameters():  # also those that are 0 at first
        torch.nn.init.normal_(parameter, std=0.5)
    ours = getattr(plait.nn, kind)(**copy.deepcopy(options))
    ours.load_state_dict(theirs.state_dict())
    named = {**named, "edge_attr": torch.randn(edges.index.size(1), width)} if width else named
    return ours, theirs, (torch.randn(edges.num_nodes, WIDTH), edges.index.clone()), named


def out_of(result):
    return result[0] if isinstance(result, tuple) else result


def results(conv, args, named):
    """Returns the results, and gradients of x, of features of edges and of parameters."""
    conv.zero_grad()
    return with_gradients(conv, args, named)


def doubled(given):
    if isinstance(given, dict):
        return {name: doubled(value) for name, value in given.items()}
    if isinstance(given, tuple):
        return tuple(map(doubled, given))
    return given.double() if isinstance(given, torch.Tensor) and given.is_floating_point() else given


def assert_same(found, wanted):
    """Compares results and gradients. Gradients of scores are sums that cancel, to nothing where a node has
    one neighbour: they are compared relative to the largest gradient."""
    largest = max(t.double().norm() for t in wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        if theirs.dim() == 1 and not theirs.numel():  # no gradient: without edges, features are not read
            theirs = torch.zeros_like(ours)
        assert ours.shape == theirs.shape
        assert (ours.double() - theirs.double()).norm() <= 1e-5 * largest
    assert_close(found[0], wanted[0])


# --- results ---


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_as_torch_geometric(name, graph):
    ours, theirs, args, named = make(name, GRAPHS[graph])
    assert_same(results(ours, args, named), results(theirs.double(), doubled(args), doubled(named)))
    with torch.inference_mode():
        assert_close(out_of(ours(*args, **named)), out_of(theirs(*doubled(args), **doubled(named))))


@pytest.mark.parametrize("name", [name for name in BY_EDGE if name not in ("features", "v2 of features")])
def test_ids_of_32_bits(name):
    """Compared with 64 bits: PyTorch's own gradients of sums by such ids are wrong, also those of the mean
    of features that a loop gets."""
    ours, _, (x, index), named = make(name)
    wanted = [t.clone() for t in results(ours, (x, index), named)]
    for found, same in zip(results(ours, (x, index.int()), named), wanted, strict=True):
        assert torch.equal(found, same)


@pytest.mark.parametrize("name", ["features", "attention", "v2", "v2 of features", "transformer of features"])
def test_theirs_drops_the_same_entries(name):
    ours, theirs, args, named = make(name)
    ours.dropout = theirs.dropout = 0.4
    found, wanted = (results(conv, args, named) for conv in (ours, theirs))
    assert_same(found, wanted)
    ours.dropout = 0.0
    assert not torch.equal(out_of(ours(*args, **named)), found[0])


@pytest.mark.parametrize("name", BY_EDGE)
def test_their_own_code_under_autocast(name, monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "0")
    monkeypatch.setattr("plait.nn._slow._told", set())
    ours, theirs, args, named = make(name)
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.warns(UserWarning, match="own code computes this, slowly, because of autocast"):
            found = out_of(ours(*args, **named))
        wanted = out_of(theirs(*args, **named))
    assert found.dtype == wanted.dtype
    assert_close(found.float(), wanted.float())


# --- memory ---


class Largest(TorchDispatchMode):
    """The most numbers that a tensor has that was made."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if isinstance(result, torch.Tensor):
                self.numbers = max(self.numbers, result.numel())
        return results


@pytest.mark.parametrize("name", ["attention", "v2", "transformer", "softmax"])
def test_no_row_for_each_edge(name):
    """Neither forward nor backward."""
    edges, largest = star(2000), []
    for conv in make(name, edges)[:2]:
        (x, index), named = make(name, edges)[2:]
        with Largest() as made:
            out = out_of(conv(x.requires_grad_(), index, **named))
            out.square().sum().backward()
        largest.append(made.numbers)
    rows = 2000 + 100  # with loops
    assert largest[0] <= 2 * rows < 5 * rows <= largest[1]


# --- lists that are kept ---


@pytest.mark.parametrize("name", BY_EDGE)
def test_lists_are_made_once(name):
    ours, theirs, (x, index), named = make(name)
    with counted() as names:
        for _ in range(2):
            results(ours, (x, index), named)
        assert names.count("edge_lists") == 2  # along edges, and against
        index[0, 0] = 4
        assert_same(results(ours, (x, index), named), results(theirs, (x, index), named))
        results(ours, (x, index), named)
        assert names.count("edge_lists") == 4


@pytest.mark.parametrize("name", CASES)
def test_edges_are_freed(name):
    """With those that loops were added to."""
    ours, _, (x, index), named = make(name)
    before = {*map(id, _adjacency._made)}
    out_of(ours(x.requires_grad_(), index, **named)).square().sum().backward()
    kept = [weakref.ref(edges) for edges in _adjacency._made if id(edges) not in before]
    assert len(kept) == (2 if getattr(ours, "add_self_loops", False) else 1)
    del index
    assert all(reference() is None for reference in kept)


@pytest.mark.parametrize("name", BY_EDGE)
def test_edges_that_change_before_the_gradient(name):
    """It is that of the edges of the call, or refused."""
    ours, _, (x, index), named = make(name)
    x.requires_grad_()
    (wanted,) = torch.autograd.grad(out_of(ours(x, index.clone(), **named)).square().sum(), x)
    out = out_of(ours(x, index, **named))
    index[0, 0] = 4
    try:
        (found,) = torch.autograd.grad(out.square().sum(), x)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:
        assert_close(found, wanted)


@pytest.mark.parametrize("name", CASES)
def test_edges_made_in_inference_mode(name):
    """As a loader makes them in a loop for evaluation; training with them still works."""
    ours, theirs, (x, _), named = make(name)
    with torch.inference_mode():
        index = SHORT.index.clone()
        assert_close(out_of(ours(x, index, **named)), out_of(theirs(x, index, **named)))
    found = results(ours, (x, index), named)
    assert_same(found, results(theirs.double(), doubled((x, SHORT.index)), doubled(named)))


@pytest.mark.parametrize("name,without", [("v2", "bias"), ("features", "bias"), ("transformer", "root_weight")])
def test_results_that_change_in_place(name, without):
    kind, options, width, _ = CASES[name]
    attr = torch.randn(SHORT.index.size(1), width) if width else None
    x = torch.randn(SHORT.num_nodes, WIDTH)
    gradients = []
    for package in (plait.nn, pyg):
        torch.manual_seed(2)
        conv = getattr(package, kind)(**options, **{without: False})
        out = conv(x, SHORT.index, attr)
        out[0] = 3.0
        used = [weight for name, weight in conv.named_parameters() if "lin_skip" not in name]
        gradients.append(torch.autograd.grad(out.relu_().sum(), used))
    for ours, theirs in zip(*gradients, strict=True):
        assert_close(ours, theirs, 1e-5)


def test_lists_of_few_numbers_of_rows_are_kept():
    ours, _, (_, index), _ = make("v2")
    for nodes in range(6, 60):
        with torch.no_grad():
            ours(torch.randn(nodes, WIDTH), index)
    assert len(_adjacency._made[index].entries) <= 16


@pytest.mark.parametrize("name", ["v2 without loops", "transformer"])
def test_returned_edges_of_a_graph(name):
    ours, _, (x, index), named = make(name)
    graph = plait.Graph(index, SHORT.num_nodes)
    wanted, (edges, _) = ours(x, graph, **{**named, **ATTENTION})
    edges.fill_(0)
    assert_close(ours(x, graph, **named), wanted)


@pytest.mark.parametrize("name", ["attention", "v2 of features"])
def test_edges_that_are_returned_are_the_callers_own(name):
    ours, _, args, named = make(name)
    named = {**named, **ATTENTION}
    wanted, (index, attention) = ours(*args, **named)
    first = index.clone()
    index.fill_(2)
    found, (index, again) = ours(*args, **named)
    assert torch.equal(index, first)
    assert torch.equal(found, wanted) and torch.equal(again, attention)


@pytest.mark.parametrize("name", ["features", "v2"])
def test_calls_of_two_threads_at_once(name):
    ours, _, args, named = make(name)
    wanted = ours(*args, **named)
    results = []

    def call_in_another_thread(*_):
        hook.remove()
        thread = threading.Thread(target=lambda: results.append(ours(*args, **named)))
        thread.start()
        thread.join()

    hook = (ours.lin_l if name == "v2" else ours.lin).register_forward_hook(call_in_another_thread)
    results.append(ours(*args, **named))
    for found in results:
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("power", [1, 2])
def test_gradients_of_gradients_are_refused(name, power):
    """Also where the gradient for the result is a constant."""
    ours, _, (x, index), named = make(name)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="differentiate twice|not implemented"):
        (gradient,) = torch.autograd.grad(out_of(ours(x, index, **named)).pow(power).sum(), x,
                                          create_graph=True)
        gradient.square().sum().backward()


# --- spread graphs ---


def check_spread(results):
    for name, (losses, operations) in results.items():
        assert {*operations} == spread_edge_values.OPERATIONS[name], name
        assert losses == pytest.approx(spread_edge_values.train_plainly(name), rel=1e-4), name


def test_spread_alone():
    check_spread({name: spread_edge_values.train_spread(name) for name in spread_edge_values.LAYERS})


def test_spread_over_ranks():
    program = HERE / "spread_edge_values.py"
    first, *others = map(json.loads, Ranks(3, program, PLAIT_STRICT="1").succeed())
    assert all(other == first for other in others)
    check_spread(first)


@pytest.mark.parametrize("options", [{"aggr": "max"}, {"flow": "target_to_source"}])
def test_slow_options_are_left_to_their_classes(options):
    """flow='target_to_source' is then refused."""
    model = torch.nn.ModuleList([pyg.GATv2Conv(WIDTH, 4, **options)])
    data = spread_edge_values.spread_layers.make_data()
    if "flow" in options:
        with pytest.raises(NotImplementedError, match="flow='target_to_source'"):
            plait.parallelize(model, data)
    else:
        model, _ = plait.parallelize(model, data)
        assert not isinstance(model[0], plait.nn.FastConv)

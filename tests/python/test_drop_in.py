"""Options and arguments of PyTorch Geometric's layers: each gives plait.nn's layer the same result, by the
fast way or by PyTorch Geometric's own code, or the same error."""

import contextlib
import copy
import inspect
import warnings

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric import EdgeIndex

import plait
from edges import assert_close
from plait.nn import _slow

SOURCES, TARGETS, WIDTH, OTHER = 9, 5, 6, 3
torch.manual_seed(5)
# Both sets of nodes have nodes without edges; there are parallel edges and loops.
BOTH = torch.stack([torch.randint(0, SOURCES - 1, (30,)), torch.randint(0, TARGETS - 1, (30,))])
BOTH = torch.cat([BOTH, torch.tensor([[1, 1, 2], [2, 2, 2]])], 1)
BOTH = BOTH[:, BOTH[1].argsort(stable=True)]  # as some aggregations want it
EDGES = BOTH.size(1)
TURNED = BOTH.flip(0)  # to more nodes than it is from
X, X_TARGETS = torch.randn(SOURCES, WIDTH), torch.randn(TARGETS, WIDTH)
NARROW = torch.randn(TARGETS, OTHER)
STATIC = torch.randn(2, SOURCES, WIDTH)
WEIGHT, OF_EDGES = torch.rand(EDGES) + 0.5, torch.randn(EDGES, 4)


def sparse(weighted=False, shape=(SOURCES, SOURCES)):
    """Returns adj_t, a row for each target, of the edges that are neither loops nor parallel."""
    single = BOTH[:, BOTH[0] != BOTH[1]].unique(dim=1)
    values = (WEIGHT if weighted else torch.ones(EDGES))[:single.size(1)]
    return torch.sparse_coo_tensor(single.flip(0), values, shape).coalesce()


def own_messages(layer):
    class Scaled(layer):
        def message(self, x_j):
            return 3 * x_j
    return Scaled(WIDTH, 4)


def mixed_in(layer):
    class Scaling:
        def message(self, x_j):
            return 3 * x_j

    class Scaled(Scaling, layer):
        pass
    return Scaled(WIDTH, 4)


def messages_of_one(layer):
    conv = layer(WIDTH, 4)
    conv.message = lambda x_j: 3 * x_j
    return conv


def hooked_aggregation(layer):
    conv = layer(WIDTH, 4, aggr=["sum", "std"])
    conv.aggr_module.aggrs[1].register_forward_hook(lambda module, given, out: 2 * out)
    return conv


def forward_of_one(layer):
    conv = layer(WIDTH, 4)
    forward = conv.lin_l.forward
    conv.lin_l.forward = lambda x: 2 * forward(x)
    return conv


def linear_with_bias(layer):
    conv = layer(WIDTH, 4)
    conv.lin = torch.nn.Linear(WIDTH, 4)
    return conv


def lazy_and_hooked(layer):
    conv = layer(-1, 4)
    calls = []
    conv.lin.register_forward_hook(lambda module, given, out: calls.append(1) or out * len(calls))
    return conv


def own_forward(layer):
    class Doubled(layer):
        def forward(self, x, edge_index):
            return 2 * super().forward(x, edge_index)
    return Doubled(WIDTH, 4)


def hooked(layer):
    conv = layer(WIDTH, 4)
    conv.register_message_forward_hook(lambda module, given, out: out + 1)
    return conv


def prelude_hooked(layer):
    conv = layer(WIDTH, 4)
    conv.register_forward_pre_hook(lambda module, given: (given[0] + 1, *given[1:]))
    return conv


def of(*args, **options):
    """Returns a function that makes a layer, with modules of its own."""
    return lambda layer: layer(*copy.deepcopy(args), **copy.deepcopy(options))


FAST = {
    "bipartite": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS), BOTH), {}),
    "bipartite, to more": ("SAGEConv", of(WIDTH, 4), ((X_TARGETS, X), TURNED), {}),
    "bipartite, two widths": ("SAGEConv", of((WIDTH, OTHER), 4), ((X, NARROW), BOTH), {}),
    "bipartite, lazy": ("SAGEConv", of((-1, -1), 4), ((X, NARROW), BOTH), {}),
    "bipartite, projected": ("SAGEConv", of(WIDTH, 4, project=True), ((X, X_TARGETS), BOTH), {}),
    "bipartite, no targets": ("SAGEConv", of(WIDTH, 4), ((X, None), BOTH), {}),
    "bipartite, no targets, size": ("SAGEConv", of(WIDTH, 4), ((X, None), BOTH),
                                    {"size": (SOURCES, TARGETS)}),
    "bipartite, a list": ("SAGEConv", of(WIDTH, 4), ([X, X_TARGETS], BOTH), {}),
    "bipartite by max": ("SAGEConv", of(WIDTH, 4, aggr="max"), ((X, X_TARGETS), BOTH), {}),
    "bipartite GIN": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), ((X, X_TARGETS), BOTH), {}),
    "bipartite GraphConv": ("GraphConv", of((WIDTH, OTHER), 4), ((X, NARROW), BOTH, WEIGHT), {}),
    "bipartite GraphConv, mean": ("GraphConv", of((WIDTH, OTHER), 4, aggr="mean"),
                                  ((X, NARROW), BOTH, WEIGHT), {}),
    "bipartite GAT": ("GATConv", of((WIDTH, OTHER), 4, heads=2), ((X, NARROW), BOTH), {}),
    "bipartite GAT, to more": ("GATConv", of((OTHER, WIDTH), 4, heads=2), ((NARROW, X), TURNED), {}),
    "bipartite GAT without loops": ("GATConv", of((WIDTH, OTHER), 4, add_self_loops=False),
                                    ((X, NARROW), BOTH), {}),
    "bipartite GAT, one width": ("GATConv", of(WIDTH, 4, residual=True), ((X, X_TARGETS), BOTH), {}),
    "bipartite GAT, no targets": ("GATConv", of((WIDTH, OTHER), 4, heads=2), ((X, None), BOTH),
                                  {"size": (SOURCES, TARGETS)}),
    "two maps of one x": ("GATConv", of((WIDTH, WIDTH), 4), (X, BOTH), {}),
    "size": ("SAGEConv", of(WIDTH, 4), (X, BOTH), {"size": (SOURCES, SOURCES)}),
    "names": ("GCNConv", of(WIDTH, 4), (), {"x": X, "edge_index": BOTH, "edge_weight": WEIGHT}),
    "turned": ("SAGEConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH), {}),
    "turned GCN": ("GCNConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH, WEIGHT), {}),
    "turned GAT": ("GATConv", of(WIDTH, 4, flow="target_to_source"), (X, BOTH), {}),
    "turned SG": ("SGConv", of(WIDTH, 4, K=2, flow="target_to_source"), (X, BOTH), {}),
    "static": ("GCNConv", of(WIDTH, 4), (STATIC, BOTH, WEIGHT), {}),
    "static, wider": ("SAGEConv", of(WIDTH, 8), (STATIC, BOTH), {}),
    "static GIN": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (STATIC, BOTH), {}),
    "static TAG": ("TAGConv", of(WIDTH, 4), (STATIC, BOTH), {}),
    "static by max": ("GraphConv", of(WIDTH, 4, aggr="max"), (STATIC, BOTH), {}),
    "an aggregation": ("SAGEConv", of(WIDTH, 4, aggr=pyg.MeanAggregation()), (X, BOTH), {}),
    "several": ("SAGEConv", of(WIDTH, 4, aggr=["sum", "min", pyg.StdAggregation()]), (X, BOTH), {}),
    "several of two": ("SAGEConv", of((WIDTH, OTHER), 4, aggr=["var", "mean"]), ((X, NARROW), BOTH), {}),
    "std": ("SAGEConv", of(WIDTH, 4, aggr="std"), (X, BOTH), {}),
    "plain GCN by mean": ("GCNConv", of(WIDTH, 4, normalize=False, aggr="mean"), (X, BOTH, WEIGHT), {}),
    "plain GCN by max": ("GCNConv", of(WIDTH, 4, normalize=False, aggr="max"), (X, BOTH), {}),
    "plain GCN of several": ("GCNConv", of(WIDTH, 4, normalize=False, aggr=["sum", "std"], bias=False),
                             (X, BOTH), {}),
    "a linear map with a bias": ("GCNConv", linear_with_bias, (X, BOTH, WEIGHT), {}),
    "a linear map with its own forward": ("SAGEConv", forward_of_one, (X, BOTH), {}),
    "a lazy map with a hook": ("GCNConv", lazy_and_hooked, (X, BOTH), {}),
    "cached SG of no steps": ("SGConv", of(WIDTH, 4, K=0, cached=True), (X, BOTH), {}),
    "sparse": ("SAGEConv", of(WIDTH, 4), (X, sparse()), {}),
    "sparse CSR": ("GCNConv", of(WIDTH, 4), (X, sparse(weighted=True).to_sparse_csr()), {}),
    "EdgeIndex of two sizes": ("GraphConv", of((WIDTH, OTHER), 4),
                               ((X, None), EdgeIndex(BOTH, sparse_size=(SOURCES, TARGETS))), {}),
    "EdgeIndex": ("GINConv", of(torch.nn.Linear(WIDTH, 4)),
                  (X, EdgeIndex(BOTH, sparse_size=(SOURCES, SOURCES))), {}),
    "cached": ("GCNConv", of(WIDTH, 4, cached=True), (X, BOTH, WEIGHT), {}),
    "cached APPNP": ("APPNP", of(3, 0.1, cached=True), (X, BOTH), {}),
    "cached SG": ("SGConv", of(WIDTH, 4, K=2, cached=True), (X, BOTH, WEIGHT), {}),
    "dropout of edges in evaluation": ("APPNP", lambda layer: layer(3, 0.1, dropout=0.5).eval(),
                                       (X, BOTH), {}),
    "hooks of modules": ("SAGEConv", prelude_hooked, (X, BOTH), {}),
    "own forward": ("GCNConv", own_forward, (X, BOTH), {}),
}

SLOW = {
    "lstm": ("SAGEConv", of(WIDTH, 4, aggr="lstm"), (X, BOTH), {}),
    "softmax": ("SAGEConv", of(WIDTH, 4, aggr="softmax"), (X, BOTH), {}),
    "several, slow": ("SAGEConv", of(WIDTH, 4, aggr=["mean", "median"]), (X, BOTH), {}),
    "features of edges": ("GATConv", of(WIDTH, 4, heads=2, edge_dim=4), (X, BOTH, OF_EDGES), {}),
    "attention": ("GATConv", of(WIDTH, 4, heads=2), (X, BOTH), {"return_attention_weights": True}),
    "attention, two": ("GATConv", of((WIDTH, OTHER), 4), ((X, NARROW), BOTH),
                       {"return_attention_weights": True}),
    "GAT by mean": ("GATConv", of(WIDTH, 4, aggr="mean"), (X, BOTH), {}),
    "GCN by max": ("GCNConv", of(WIDTH, 4, aggr="max"), (X, BOTH), {}),
    "weighted max": ("GraphConv", of(WIDTH, 4, aggr="max"), (X, BOTH, WEIGHT), {}),
    "double": ("SAGEConv", lambda layer: layer(WIDTH, 4).double(), (X.double(), BOTH), {}),
    "bfloat16": ("GCNConv", lambda layer: layer(WIDTH, 4).bfloat16(), (X.bfloat16(), BOTH), {}),
    "decomposed": ("GCNConv", of(WIDTH, 4, decomposed_layers=2), (X, BOTH), {}),
    "loops of a sparse tensor": ("GCNConv", of(WIDTH, 4), (X, torch.eye(SOURCES).to_sparse_csr()), {}),
    "sparse x": ("GCNConv", of(WIDTH, 4), (X.relu().to_sparse(), BOTH), {}),
    "sparse with weights": ("SAGEConv", of(WIDTH, 4), (X, sparse(weighted=True)), {}),
    "sparse between two": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS), sparse(shape=(TARGETS, SOURCES))),
                           {}),
    "turned, two": ("SAGEConv", of(WIDTH, 4, flow="target_to_source", root_weight=False),
                    ((X, X_TARGETS), TURNED), {}),
    "node_dim": ("GCNConv", of(WIDTH, 4, node_dim=1), (STATIC, BOTH), {}),
    "own messages": ("SAGEConv", own_messages, (X, BOTH), {}),
    "own messages, mixed in": ("SAGEConv", mixed_in, (X, BOTH), {}),
    "messages of one layer": ("SAGEConv", messages_of_one, (X, BOTH), {}),
    "hooks of an aggregation": ("SAGEConv", hooked_aggregation, (X, BOTH), {}),
    "sparse, not coalesced": ("GraphConv", of(WIDTH, 4),
                              (X, torch.sparse_coo_tensor(BOTH.flip(0), WEIGHT, (SOURCES, SOURCES))), {}),
    "hooks of messages": ("GCNConv", hooked, (X, BOTH), {}),
    "negative degrees": ("GCNConv", of(WIDTH, 4), (X, BOTH, -9 * WEIGHT), {}),
    "weights that are not finite": ("GraphConv", of(WIDTH, 4), (X, BOTH, WEIGHT / 0), {}),
    "explained": ("GCNConv", lambda layer: explained(layer), (X, BOTH), {}),
}

# Mistakes: PyTorch Geometric's error, of the same type and text.
WRONG = {
    "ids": ("SAGEConv", of(WIDTH, 4), (X, BOTH + 5), {}),
    "negative ids": ("GCNConv", of(WIDTH, 4), (X, BOTH - 3), {}),
    "ids of targets": ("SAGEConv", of(WIDTH, 4), ((X, X_TARGETS[:2]), BOTH), {}),
    "edges of floats": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (X, BOTH.float()), {}),
    "shape of edges": ("SAGEConv", of(WIDTH, 4), (X, BOTH.repeat(2, 1)), {}),
    "one dimension": ("SAGEConv", of(WIDTH, 4), (X, BOTH[0]), {}),
    "size": ("SAGEConv", of(WIDTH, 4), (X, BOTH), {"size": (SOURCES, TARGETS)}),
    "two x for GCN": ("GCNConv", of(WIDTH, 4), ((X, X), BOTH), {}),
    "three x": ("SAGEConv", of(WIDTH, 4), ((X, X, X), BOTH), {}),
    "width": ("GCNConv", of(WIDTH, 4), (X[:, 1:], BOTH), {}),
    "width of targets": ("SAGEConv", of((WIDTH, OTHER), 4), ((X, X_TARGETS), BOTH), {}),
    "a row alone": ("GATConv", of(WIDTH, 4), (X[0], BOTH), {}),
    "static GAT": ("GATConv", of(WIDTH, 4), (STATIC, BOTH), {}),
    "number of weights": ("GraphConv", of(WIDTH, 4), (X, BOTH, WEIGHT[1:]), {}),
    "x of whole numbers": ("GCNConv", of(WIDTH, 4), (X.long(), BOTH), {}),
    "dropout": ("GATConv", of(WIDTH, 4, dropout=1.5), (X, BOTH), {}),
    "arguments": ("GINConv", of(torch.nn.Linear(WIDTH, 4)), (X, BOTH, WEIGHT, WEIGHT), {}),
    "turned, sparse": ("SAGEConv", of(WIDTH, 4, flow="target_to_source"), (X, sparse(weighted=True)), {}),
}

# Errors when a layer is made.
NEVER = {
    "loops": ("GCNConv", {"in_channels": 3, "out_channels": 3, "normalize": False, "add_self_loops": True}),
    "flow": ("SAGEConv", {"in_channels": 3, "out_channels": 3, "flow": "up"}),
    "aggregation": ("SAGEConv", {"in_channels": 3, "out_channels": 3, "aggr": "middle"}),
    "option": ("GATConv", {"in_channels": 3, "out_channels": 3, "colour": "red"}),
}


def explained(layer):
    conv = layer(WIDTH, 4)
    conv.explain = True
    conv._edge_mask, conv._loop_mask = torch.rand(EDGES), BOTH[0] != BOTH[1]
    conv._apply_sigmoid = True
    return conv


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch):
    monkeypatch.setattr(_slow, "_told", set())


def pair(name, make):
    layers = []
    for package in (plait.nn, pyg):
        torch.manual_seed(2)
        layers.append(make(getattr(package, name)))
    return layers


def with_gradients(layer, args, named):
    """Returns the results, and gradients of x and of parameters."""
    leaves = []

    def leaf(t):
        if isinstance(t, (tuple, list)):
            return type(t)(map(leaf, t))
        wants = isinstance(t, torch.Tensor) and t.is_floating_point() and t.layout == torch.strided
        if wants and t.dim() > 1:
            leaves.append(t.clone().requires_grad_())
            return leaves[-1]
        return t

    torch.manual_seed(2)
    out = layer(*map(leaf, args), **{key: leaf(t) for key, t in named.items()})
    results = [out] if isinstance(out, torch.Tensor) else [out[0], *out[1]]
    sum(t.square().sum() for t in results if t.is_floating_point()).backward()
    grown = [*leaves, *(p for _, p in sorted(layer.named_parameters()))]
    return [*results, *(torch.zeros(0) if t.grad is None else t.grad for t in grown)]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return type(value)(moved(v, device) for v in value) if isinstance(value, (tuple, list)) else value


def compare(name, make, args, named, device="cpu"):
    ours, theirs = pair(name, make)
    wanted = with_gradients(theirs, args, named)
    named = {key: moved(value, device) for key, value in named.items()}
    found = [t.cpu() for t in with_gradients(ours.to(device), moved(args, device), named)]
    for ours_is, theirs_is in zip(found, wanted, strict=True):
        assert ours_is.shape == theirs_is.shape and ours_is.dtype == theirs_is.dtype
        if theirs_is.isfinite().all():
            assert_close(ours_is.double(), theirs_is.double(), 1e-5)
        else:
            assert torch.equal(ours_is.isnan(), theirs_is.isnan())
    assert ours.state_dict().keys() == theirs.state_dict().keys()


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
])
def test_scripts_traces_and_printed_forms(name, make, args):
    ours, theirs = pair(name, make)
    assert repr(ours) == repr(theirs)
    wanted = theirs(*args)
    if name != "GATConv":  # theirs cannot be scripted alone, either
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


@pytest.mark.parametrize("name", ["GCNConv", "GATConv"])
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
    ("GCNConv", {}), ("GCNConv", {"normalize": False}), ("GATConv", {}), ("TAGConv", {}), ("SGConv", {})])
def test_types_under_autocast(name, options, dtype, monkeypatch):
    monkeypatch.setenv("PLAIT_STRICT", "1")
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = (conv(X.to(dtype), BOTH) for conv in pair(name, of(WIDTH, 4, **options)))
    assert ours.dtype == theirs.dtype
    assert_close(ours.float().detach(), theirs.float().detach(), 2e-2)


@pytest.mark.parametrize("name", ["SAGEConv", "GATConv"])
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


def test_export():
    ours, theirs = pair("SAGEConv", of(WIDTH, 4))
    exported = torch.export.export(ours, (X, BOTH)).module()
    assert_close(exported(X, BOTH).detach(), theirs(X, BOTH).detach())


def test_weights_of_a_graph_that_has_none():
    graph = plait.Graph(BOTH, SOURCES)
    conv = plait.nn.GraphConv(WIDTH, 4)
    assert_close(conv(X, graph, WEIGHT), conv(X, BOTH, WEIGHT).detach())
    slow = plait.nn.GraphConv(WIDTH, 4, aggr="max")
    with pytest.warns(UserWarning, match="MaxAggregation of weighted rows"):
        assert_close(slow(X, plait.Graph(BOTH, SOURCES, WEIGHT)), slow(X, BOTH, WEIGHT).detach())

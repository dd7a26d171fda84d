"""plait.nn.GCNConv against torch_geometric.nn.GCNConv with the same weights."""

import copy
import pickle

import pytest
import torch
import torch_geometric.data
import torch_geometric.nn

import plait
from edges import assert_close, random_edges
from layers import gradients

OPTIONS = [
    {},
    {"improved": True},
    {"add_self_loops": False},
    {"normalize": False},
    {"bias": False},
    {"improved": True, "add_self_loops": False, "bias": False},
]


def pair(*sizes, **options):
    """Returns PyG's layer, and ours with its weights."""
    theirs = torch_geometric.nn.GCNConv(*sizes, **options)
    if theirs.bias is not None:
        torch.nn.init.normal_(theirs.bias)
    ours = plait.nn.GCNConv(*sizes, **options)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_as_torch_geometric(options, weighted, seed):
    torch.manual_seed(seed)
    edges = random_edges(seed, weighted, symmetric=seed % 4 == 0)
    sizes = (5, 9) if seed % 2 else (9, 5)  # both orders of product and aggregation
    ours, theirs = pair(*sizes, **options)
    x = torch.randn(edges.num_nodes, sizes[0])
    dy = torch.randn(edges.num_nodes, sizes[1])
    wanted = gradients(theirs, x, dy, edges.index, edges.weight)
    graph = plait.Graph(edges.index, edges.num_nodes, edges.weight)
    for found in (gradients(ours, x, dy, edges.index, edges.weight), gradients(ours, x, dy, graph)):
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            assert_close(found[name], value)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_edge_weights(options, seed):
    """They are compared in double precision: they are differences where degrees divide them."""
    torch.manual_seed(seed)
    edges = random_edges(seed, weighted=True)
    # PyTorch Geometric gives all loops of a node a gradient, of which one counts.
    source, target = edges.index
    loops = edges.index[:, source == target].unique(dim=1)
    index = torch.cat([edges.index[:, source != target], loops], 1)
    weight = edges.weight[:index.size(1)]
    ours, theirs = pair(5, 3, **options)
    x, dy = torch.randn(edges.num_nodes, 5), torch.randn(edges.num_nodes, 3)
    results = []
    for layer, dtype in ((ours, torch.float), (theirs.double(), torch.double)):
        learnt = weight.to(dtype).clone().requires_grad_()
        found = gradients(layer, x.to(dtype), dy.to(dtype), index, learnt)
        results.append(found | {"edge_weight": learnt.grad})
    found, wanted = results
    for name, value in wanted.items():
        assert_close(found[name], value, 2e-5)


def test_edge_weights_with_and_without_a_gradient():
    index, x = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 1]]), torch.randn(3, 4)
    conv = plait.nn.GCNConv(4, 2)
    weight = torch.tensor([0.5, 2.0, 3.0, 0.25])
    wanted = conv(x, index, weight)
    weight.requires_grad_()  # the graph is known, but not for gradients
    y = conv(x, index, weight)
    assert_close(y, wanted)
    y.sum().backward()
    assert weight.grad[2] == 0 and (weight.grad[[0, 1, 3]] != 0).all()  # the last loop counts
    with torch.no_grad():
        assert torch.equal(conv(x, index, weight), wanted)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(conv(x, index, weight).float(), wanted, 0.02)
    data = torch_geometric.data.Data(x, index, edge_weight=weight)
    plait.nn.SAGEConv(4, 2)(x, data)  # uses no weights
    assert_close(conv(x, data), wanted)


def test_state_dict_goes_both_ways():
    ours = plait.nn.GCNConv(6, 4)
    theirs = torch_geometric.nn.GCNConv(6, 4)
    state = ours.state_dict()

    def shapes(layer):
        return {name: tensor.shape for name, tensor in layer.state_dict().items()}

    assert shapes(ours) == shapes(theirs)
    theirs.load_state_dict(state)
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(theirs.lin.weight, state["lin.weight"])


def test_first_weights():
    torch.manual_seed(0)
    conv = plait.nn.GCNConv(300, 200)
    bound = (6 / 500) ** 0.5
    assert conv.lin.weight.abs().max() <= bound
    assert abs(conv.lin.weight.std() / (bound / 3**0.5) - 1) < 0.02
    assert torch.equal(conv.bias, torch.zeros(200))
    before = conv.lin.weight.detach().clone()
    torch.nn.init.ones_(conv.bias)
    conv.reset_parameters()
    assert not torch.equal(conv.lin.weight, before) and torch.equal(conv.bias, torch.zeros(200))


def test_input_width_found_at_the_first_call():
    edges = random_edges(1)
    x = torch.randn(edges.num_nodes, 7)
    conv = plait.nn.GCNConv(-1, 3)
    assert conv(x, edges.index).shape == (edges.num_nodes, 3)
    assert conv.lin.weight.shape == (3, 7)
    other = plait.nn.GCNConv(-1, 3)
    other.load_state_dict(conv.state_dict())
    assert torch.equal(other(x, edges.index), conv(x, edges.index))


def test_cached_keeps_the_first_graph():
    torch.manual_seed(0)
    ours, theirs = pair(4, 4, cached=True)
    first, second = torch.randint(0, 9, (2, 30)), torch.randint(0, 9, (2, 30))
    x = torch.randn(9, 4)
    for index in (first, second):
        assert_close(ours(x, index), theirs(x, index))
    assert torch.equal(ours(x, second), ours(x, first))
    by_first = ours(x, second)
    state = copy.deepcopy(ours.state_dict())
    ours.reset_parameters()
    ours.load_state_dict(state)
    assert not torch.equal(ours(x, second), by_first)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_layers_and_graphs_can_be_copied(duplicate):
    edges = random_edges(6)
    x = torch.randn(edges.num_nodes, 4)
    conv = plait.nn.GCNConv(4, 2, cached=True)
    graph = plait.Graph(edges.index, edges.num_nodes)
    wanted = conv(x, graph)
    assert torch.equal(duplicate(conv)(x, duplicate(graph)), wanted)


def test_training_reaches_the_same_weights():
    torch.manual_seed(0)
    edges = random_edges(8)
    x = torch.randn(edges.num_nodes, 6)
    y = torch.randint(0, 3, (edges.num_nodes,))
    pairs = [pair(6, 16), pair(16, 3)]
    for layers in zip(*pairs):
        optimizer = torch.optim.SGD([p for l in layers for p in l.parameters()], lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            h = layers[1](layers[0](x, edges.index).relu(), edges.index)
            torch.nn.functional.cross_entropy(h, y).backward()
            optimizer.step()
    for ours, theirs in pairs:
        for found, wanted in zip(ours.parameters(), theirs.parameters()):
            assert_close(found, wanted, 1e-4)


def test_mistakes():
    index, x = torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 3)
    conv = plait.nn.GCNConv(3, 3)
    with pytest.raises(ValueError, match="edge_weight.detach"):
        plait.Graph(index, 2, torch.ones(2, requires_grad=True))
    with pytest.raises(ValueError, match="its own"):
        conv(x, plait.Graph(index, 2, torch.ones(2)), torch.ones(2))
    assert_close(conv(x, plait.Graph(index), torch.ones(2)), conv(x, index))

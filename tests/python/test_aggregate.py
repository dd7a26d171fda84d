"""plait.aggregate and its gradients against SciPy."""

import concurrent.futures

import pytest
import torch

import plait
from edges import assert_close, extreme_by_scatter, random_edges

OPS = ("sum", "mean", "weighted")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", range(60))
def test_values_and_gradients(op, seed):
    edges = random_edges(seed, weighted=seed % 2 == 0, symmetric=seed % 3 == 0)
    torch.manual_seed(seed)
    graph = plait.Graph(edges.index, edges.num_nodes, edges.weight)
    x = torch.randn(edges.num_nodes, 1 + seed % 40, requires_grad=True)
    y = plait.aggregate(graph, x, op)
    dy = torch.randn_like(y)
    y.backward(dy)
    a = edges.matrix(op)
    assert_close(y, a @ x.detach().double().numpy())
    assert_close(x.grad, a.T @ dy.double().numpy())


@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes(op):
    """As scatter_reduce of PyTorch, and so as PyTorch Geometric, on odd graphs and rows with ties. A node without
    edges has 0. scatter_reduce withholds a share of a gradient at 0, which rows here do not reach."""
    for seed in range(40):
        edges = random_edges(seed, weighted=seed % 2 == 0)
        torch.manual_seed(seed)
        rows = (edges.num_nodes, 1 + seed % 20)
        x = torch.randint(1, 4, rows).mul_(torch.randint(0, 2, rows) * 2 - 1).float()
        x = x if seed % 3 else torch.randn(rows)
        graph = plait.Graph(edges.index, edges.num_nodes, edges.weight)
        results = []
        for aggregated in (plait.aggregate, extreme_by_scatter):
            leaf = x.clone().requires_grad_()
            y = aggregated(graph, leaf, op)
            (y * torch.linspace(1, 2, y.numel()).view(rows)).sum().backward()
            results.append((y.detach(), leaf.grad))
        assert torch.equal(results[0][0], results[1][0])
        assert_close(results[0][1], results[1][1])


def test_extremes_of_what_is_not_finite():
    graph = plait.Graph(torch.tensor([[0, 1, 2, 2], [3, 3, 4, 5]]))
    x = torch.tensor([[1.0], [float("nan")], [float("-inf")], [5], [5], [5]])
    assert plait.aggregate(graph, x, "max")[3].isnan() and plait.aggregate(graph, x, "min")[3].isnan()
    assert plait.aggregate(graph, x, "max")[4].item() == float("-inf")
    assert torch.equal(plait.aggregate(graph, x.nan_to_num(), "min")[:3], torch.zeros(3, 1))
    x = torch.randn(6, 2, requires_grad=True)
    (first,) = torch.autograd.grad(plait.aggregate(graph, x, "max").square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        first.sum().backward()


def test_used_twice_in_one_expression():
    edges = random_edges(7, weighted=True)
    graph = plait.Graph(edges.index, edges.num_nodes, edges.weight)
    x = torch.randn(edges.num_nodes, 5, requires_grad=True)
    twice = plait.aggregate(graph, plait.aggregate(graph, x), "weighted")
    (twice * plait.aggregate(graph, x, "mean")).sum().backward()
    ours = x.grad
    x.grad = None
    a, m, w = (torch.from_numpy(edges.matrix(op).toarray()).float() for op in OPS)
    ((w @ (a @ x)) * (m @ x)).sum().backward()
    assert_close(ours, x.grad)


def test_gradient_of_a_gradient():
    edges = random_edges(11)
    graph = plait.Graph(edges.index, edges.num_nodes)
    a = torch.from_numpy(edges.matrix("mean").toarray()).float()
    x = torch.randn(edges.num_nodes, 4, requires_grad=True)

    def penalty(product):
        value = product(product(x).tanh()).pow(2).sum()
        (gradient,) = torch.autograd.grad(value, x, create_graph=True)
        return torch.autograd.grad(gradient.pow(2).sum(), x)[0]

    ours = penalty(lambda t: plait.aggregate(graph, t, "mean"))
    assert_close(ours, penalty(lambda t: a @ t), 1e-4)


def test_modes_without_gradients():
    edges = random_edges(3)
    graph = plait.Graph(edges.index, edges.num_nodes)
    x = torch.randn(edges.num_nodes, 3)
    y = plait.aggregate(graph, x, "mean")
    assert not y.requires_grad and y.grad_fn is None
    with torch.no_grad():
        assert not plait.aggregate(graph, x.clone().requires_grad_(), "mean").requires_grad
    with torch.inference_mode():
        fresh = plait.Graph(edges.index.clone(), edges.num_nodes)
        assert torch.equal(plait.aggregate(fresh, x, "mean"), y)
    # Objects made in inference mode serve training too.
    plait.aggregate(fresh, x.requires_grad_(), "mean").sum().backward()


@pytest.mark.parametrize("change", [
    lambda x: x.t().contiguous().t(),
    lambda x: x.repeat(1, 2)[:, ::2],
    lambda x: x[:1].expand_as(x),
])
def test_layout_of_x_does_not_matter(change):
    edges = random_edges(5)
    graph = plait.Graph(edges.index, edges.num_nodes)
    x = torch.randn(edges.num_nodes, 6)
    other = change(x)
    assert_close(plait.aggregate(graph, other), edges.matrix("sum") @ other.double().numpy())


@pytest.mark.parametrize("nodes,width", [(0, 3), (0, 0), (4, 0), (1, 1)])
def test_nothing_to_sum(nodes, width):
    graph = plait.Graph(torch.empty(2, 0, dtype=torch.long), nodes)
    x = torch.ones(nodes, width, requires_grad=True)
    for op in OPS:
        y = plait.aggregate(graph, x, op)
        assert torch.equal(y, torch.zeros(nodes, width))
        y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(nodes, width))


def test_widths_that_grow_and_shrink():
    edges = random_edges(9)
    graph = plait.Graph(edges.index, edges.num_nodes)
    a = edges.matrix("mean")
    for width in (3, 50, 1, 200, 4):
        x = torch.randn(edges.num_nodes, width)
        assert_close(plait.aggregate(graph, x, "mean"), a @ x.double().numpy())


def test_many_threads_on_one_graph():
    torch.manual_seed(0)
    handle = torch.ops.plait.graph_from_edges(torch.randint(0, 2000, (2, 20000)), 2000)
    scale = torch.rand(2000)  # rows are scaled in the graph's workspace

    def run(x):
        return torch.ops.plait.aggregate(x, handle, False, scale, None)

    inputs = [torch.randn(2000, 64) for _ in range(8)]
    wanted = [run(x) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            assert all(map(torch.equal, pool.map(run, inputs), wanted))


def test_meta_tensors_have_the_shape():
    edges = random_edges(2)
    handle = torch.ops.plait.graph_from_edges(edges.index, edges.num_nodes)
    x = torch.empty(edges.num_nodes, 8, device="meta")
    assert torch.ops.plait.aggregate(x, handle).shape == x.shape


def test_under_torch_compile():
    edges = random_edges(4, weighted=True)
    graph = plait.Graph(edges.index, edges.num_nodes, edges.weight)
    x = torch.randn(edges.num_nodes, 3)

    def function(t):
        return plait.aggregate(graph, 2 * t, "weighted") + 1

    assert_close(torch.compile(function, backend="eager")(x), function(x))


@pytest.mark.parametrize("x,words", [
    (torch.ones(4, 2), "x has shape [4, 2]"),
    (torch.ones(3), "x has shape [3]"),
    (torch.ones(3, 2, dtype=torch.double), "float32"),
    (torch.ones(3, 2, dtype=torch.long), "float32"),
    (torch.ones(3, 2).to_sparse(), "sparse"),
])
def test_wrong_x(x, words):
    graph = plait.Graph(torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(ValueError) as error:
        plait.aggregate(graph, x)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_wrong_arguments():
    graph = plait.Graph(torch.tensor([[0, 1], [1, 2]]))
    x = torch.ones(3, 2)
    with pytest.raises(ValueError, match="op is 'median'; use 'sum', 'mean', 'weighted', 'max' or 'min'"):
        plait.aggregate(graph, x, "median")
    with pytest.raises(TypeError, match="plait.Graph"):
        plait.aggregate(graph.edge_index, x)
    handle = torch.ops.plait.graph_from_edges(graph.edge_index, 3)
    for scale, words in [(torch.ones(2), r"shape \[2\]"), (torch.ones(3).double(), "float32"),
                         (torch.ones(3, requires_grad=True), "not supported yet")]:
        with pytest.raises(ValueError, match=words):
            torch.ops.plait.aggregate(x, handle, True, scale, None)
        with pytest.raises(ValueError, match=words):
            torch.ops.plait.aggregate(x, handle, True, None, scale)

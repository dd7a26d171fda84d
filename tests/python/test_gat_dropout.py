"""Dropout of attention: by a seed from torch's generator, the same backward as forward."""

import pytest
import torch

import plait
from edges import assert_close, random_edges

NODES, HEADS, FEATURES = 12, 3, 4


@pytest.fixture(scope="module")
def case():
    """A graph with a loop at each node and few parallel edges, and random h and scores."""
    torch.manual_seed(5)
    index = torch.randint(0, NODES, (2, 50)).unique(dim=1)
    graph = plait.Graph(index, NODES).adjacency(1.0)
    return graph, torch.randn(NODES, HEADS * FEATURES), torch.randn(NODES, 2 * HEADS)


def attention_of(graph, scores, dropout, seed):
    """Returns the weights as (heads, targets, sources), read off by one-hot rows of h."""
    torch.manual_seed(seed)
    one_hot = torch.eye(NODES).repeat(1, HEADS)
    return graph.attend(one_hot, scores, 0.2, dropout).view(NODES, HEADS, NODES).transpose(0, 1)


def test_mask(case):
    """Weights that are kept are divided by 1 - p, and a share of 1 - p is kept."""
    graph, _, scores = case
    whole = attention_of(graph, scores, 0.0, 0)
    assert_close(whole.sum(-1), torch.ones(HEADS, NODES))
    edges = whole > 0
    kept = 0
    for seed in range(40):
        factor = attention_of(graph, scores, 0.4, seed)[edges] / whole[edges]
        is_kept = factor > 0
        assert_close(factor[is_kept], torch.full_like(factor[is_kept], 1 / 0.6))
        kept += is_kept.sum().item()
    drawn = 40 * edges.sum().item()
    assert abs(kept / drawn - 0.6) < 4 * (0.24 / drawn) ** 0.5


def test_seed(case):
    graph, _, scores = case
    first = attention_of(graph, scores, 0.4, 1)
    assert torch.equal(first, attention_of(graph, scores, 0.4, 1))
    assert not torch.equal(first, attention_of(graph, scores, 0.4, 2))
    torch.manual_seed(1)
    one, two = (graph.attend(torch.eye(NODES).repeat(1, HEADS), scores, 0.2, 0.4) for _ in "ab")
    assert not torch.equal(one, two)  # a number is drawn at every call
    assert not torch.equal(first[0] > 0, first[1] > 0)  # heads have masks of their own


def test_gradients_at_a_fixed_mask(case):
    """They agree with a dense formula in double precision, with the mask read off."""
    graph, h, scores = case
    kept = (attention_of(graph, scores, 0.4, 7) > 0).double() / 0.6
    edges = attention_of(graph, scores, 0.0, 7) > 0
    h, scores = h.clone().requires_grad_(), scores.clone().requires_grad_()
    dy = torch.randn(NODES, HEADS * FEATURES)
    torch.manual_seed(7)
    y = graph.attend(h, scores, 0.2, 0.4)
    found = (y, *torch.autograd.grad(y, (h, scores), dy))

    wide, s = h.detach().double().requires_grad_(), scores.detach().double().requires_grad_()
    source, target = s[:, :HEADS].t(), s[:, HEADS:].t()
    logits = torch.nn.functional.leaky_relu(source[:, None, :] + target[:, :, None], 0.2)
    attention = logits.masked_fill(~edges, -torch.inf).softmax(-1) * kept
    rows = wide.view(NODES, HEADS, FEATURES).transpose(0, 1)
    wanted = (attention @ rows).transpose(0, 1).reshape(NODES, -1)
    wanted = (wanted, *torch.autograd.grad(wanted, (wide, s), dy.double()))
    for ours, theirs in zip(found, wanted):
        assert_close(ours, theirs)


def test_layer_drops_while_training_alone():
    edges = random_edges(6)
    x = torch.randn(edges.num_nodes, 5)
    conv = plait.nn.GATConv(5, 4, heads=2, dropout=0.5)
    plain = plait.nn.GATConv(5, 4, heads=2)
    plain.load_state_dict(conv.state_dict())
    wanted = plain(x, edges.index)
    assert not torch.equal(conv(x, edges.index), wanted)
    assert torch.equal(conv.eval()(x, edges.index), wanted)
    before = torch.get_rng_state()
    conv(x, edges.index)
    assert torch.equal(torch.get_rng_state(), before)


def test_gradient_of_a_gradient_is_refused(case):
    graph, h, scores = case
    h = h.detach().requires_grad_()
    for result in (graph.attend(h, scores.detach(), 0.2, 0.0), graph.aggregate(h, "max")):
        (gradient,) = torch.autograd.grad(result.square().sum(), h, create_graph=True)
        with pytest.raises(RuntimeError, match="not implemented"):
            gradient.sum().backward()


def test_shapes_of_meta_tensors(case):
    graph, h, scores = case
    ops = torch.ops.plait
    assert ops.attend(h.to("meta"), scores.to("meta"), graph._handle).shape == h.shape
    assert ops.extremum_of_neighbours(h.to("meta"), graph._handle).shape == h.shape


def test_wrong_operands(case):
    graph, h, scores = case
    for wrong, words in [((h[1:], scores), "h has shape"), ((h, scores[1:]), "scores has shape"),
                         ((h, scores[:, 1:]), "scores has 5 columns"),
                         ((h[:, 1:], scores), "h 11"), ((h.double(), scores), "float32")]:
        with pytest.raises(ValueError, match=words) as error:
            graph.attend(*wrong, 0.2, 0.0)
        assert "\n" not in str(error.value)

"""Edges of batches, as they are converted on a GPU; the conversion itself runs on any device."""

import gc
import types
import weakref

import pytest
import scipy.sparse
import torch
from torch_geometric.utils import add_remaining_self_loops

import plait
from plait._edges import batch_graph
from plait._edges.batch_graph import Uses, on_their_gpu, one_loop_each

NODES = 50


def random_edges(count, seed=1):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(NODES, (2, count), generator=random), torch.rand(count, generator=random)


def matrix_of(found, weighted):
    offsets, sources, *weights = found
    assert len(weights) == weighted and offsets.dtype == torch.int64 and sources.dtype == torch.int32
    values = weights[0] if weights else torch.ones(sources.numel())
    return scipy.sparse.csr_matrix((values.numpy(), sources.numpy(), offsets.numpy()), (NODES, NODES))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["random", "by target"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
@pytest.mark.parametrize("count", [0, 1, 2, 400])
def test_edges_are_sorted_by_target(weighted, order, dtype, count):
    index, weight = random_edges(count)
    if order == "by target":
        index = index[:, index[1].argsort(stable=True)]
    given = weight if weighted else None
    index = index.to(dtype)
    found = torch.ops.plait.edges_by_target(index, NODES, given)
    apart = {t.untyped_storage().data_ptr() for t in found if t.numel()}
    assert not apart & {t.untyped_storage().data_ptr() for t in (index, weight)}
    values = weight if weighted else torch.ones(count)
    wanted = scipy.sparse.coo_matrix((values, (index[1], index[0])), (NODES, NODES)).tocsr()
    assert abs(matrix_of(found, weighted) - wanted).sum() < 1e-5
    assert found[0][-1] == count


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
@pytest.mark.parametrize("in_order", [False, True])
def test_more_nodes_than_the_type_of_ids_holds(dtype, in_order):
    nodes = torch.iinfo(dtype).max + 100
    targets = torch.tensor([3, 3, 100] if in_order else [100, 3, 3], dtype=dtype)
    offsets, _ = torch.ops.plait.edges_by_target(torch.stack([targets, targets]), nodes)
    assert offsets.tolist() == [0] * 4 + [2] * 97 + [3] * (nodes - 100)


def test_edges_of_a_target_keep_their_order():
    index = torch.tensor([[7, 3, 5, 3], [1, 0, 1, 1]])
    offsets, sources, weights = torch.ops.plait.edges_by_target(index, 8, torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert sources.tolist() == [3, 7, 5, 3] and weights.tolist() == [2, 1, 3, 4]
    assert offsets.tolist() == [0, 1, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("wrong, text", [
    (([[0, 9], [1, 2]], None), r"edge_index\[0, 1\] is 9, outside 0..2"),
    (([[0], [-1]], None), r"edge_index\[1, 0\] is -1"),
    (([[0], [1]], [float("nan")]), r"edge_weight\[0\] is nan"),
    (([[0], [1]], [1.0, 2.0]), "give one weight for each"),
])
def test_wrong_edges_are_refused(wrong, text):
    index, weight = wrong
    with pytest.raises(ValueError, match=text):
        torch.ops.plait.edges_by_target(torch.tensor(index), 3, None if weight is None else torch.tensor(weight))


def test_edges_on_the_cpu_make_no_batch_graph():
    with pytest.raises(ValueError, match="must be on a GPU"):
        torch.ops.plait.batch_graph(torch.zeros(2, 1, dtype=torch.long), 1)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_loop_for_each_node(weighted, dtype):
    index, weight = random_edges(400)
    loops = torch.tensor([3, 3, 9])  # node 3 has two more, of which the last counts
    index = torch.cat([index, loops.expand(2, -1)], 1)
    weight = torch.cat([weight, torch.tensor([5.0, 6.0, 7.0])])
    found, weights = one_loop_each(index.to(dtype), weight if weighted else None, NODES, 2.0)
    wanted, of_wanted = add_remaining_self_loops(index, weight, 2.0, NODES)
    assert found.dtype == dtype and found.tolist() == wanted.tolist()
    if weighted:
        assert weights.tolist() == of_wanted.tolist() and weights[-NODES + 3] == 6 and weights[-NODES + 9] == 7
    else:
        assert weights is None


def test_loops_pass_gradients_on():
    index = torch.tensor([[0, 1, 1], [1, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    _, weights = one_loop_each(index, weight, 2, 1.0)
    (weights * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert weight.grad.tolist() == [1, 1000, 10]


def test_the_host_plans_edges_that_a_layer_uses_often(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    uses, layers = Uses(), range(100)
    assert not any(uses.are_many(layer) for _ in range(batch_graph._LASTING - 1) for layer in layers)
    assert uses.are_many(7) and not any(uses.are_many(7) for _ in range(3 * batch_graph._LASTING))


def test_a_captured_step_keeps_its_graph(monkeypatch):
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    uses = Uses()
    assert not uses.are_many(1)
    capturing[0] = True
    assert not uses.are_many(1)
    capturing[0] = False
    assert not any(uses.are_many(1) for _ in range(3 * batch_graph._LASTING))


class Made:
    """An object that can be referred to weakly."""


def test_what_a_captured_step_uses_stays_with_its_edges(monkeypatch):
    """Replays read it after its place among the kept results has gone to others, and after its weights have."""
    capturing = [False]
    monkeypatch.setattr(plait._edges.adjacency, "is_capturing", lambda: capturing[0])
    edges, other = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1], [1, 0]])
    weights = [torch.ones(2) for _ in range(3 * plait._edges.adjacency._MOST_KEPT)]
    kept = plait._edges.adjacency.kept
    uncaptured = weakref.ref(kept(edges, weights[0], ("a",), Made))
    capturing[0] = True
    captured = [weakref.ref(kept(edges, w, ("a",), Made)) for w in (None, weights[1], weights[1])]
    changed = weakref.ref(kept(edges, weights[2], ("b",), Made))
    capturing[0] = False
    weights[2].add_(1)
    assert kept(edges, weights[2], ("b",), Made) is not changed()
    for k in range(3, len(weights)):
        kept(edges, weights[k], ("a",), Made)
    del weights[1:]
    kept(edges, None, ("c",), Made)
    gc.collect()
    assert uncaptured() is None
    assert all(made() is not None for made in (*captured, changed)) and captured[1]() is captured[2]()
    del edges
    gc.collect()
    assert all(made() is None for made in (*captured, changed))
    assert kept(other, None, ("a",), Made) is kept(other, None, ("a",), Made)


def on(device, *shape):
    """Returns what on_their_gpu() reads of a tensor."""
    return types.SimpleNamespace(device=torch.device(device), layout=torch.strided, dim=lambda: len(shape),
                                 size=lambda i: shape[i])


@pytest.mark.parametrize("edges, weight, taken", [
    (("cuda:1", 2, 9), None, True), (("cuda:1", 2, 9), ("cuda:1", 9), True), (("cuda:0", 2, 9), None, False),
    (("cpu", 2, 9), None, False), (("cuda:1", 2, 9), ("cpu", 9), False), (("cuda:1", 2, 2**31 - 6), None, False),
    (("cuda:1", 2, 2**31 - 7), None, True), (("cuda:1", 9), None, False)])
def test_which_edges_are_converted_on_their_gpu(edges, weight, taken):
    weight = weight and on(*weight)
    assert on_their_gpu(on(*edges), weight, 5, torch.device("cuda:1")) is taken
    assert not on_their_gpu(on(*edges), weight, 5, torch.device("cpu"))


def test_a_graph_that_does_not_fit_is_made_by_the_host(monkeypatch):
    def refuse(*_):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(batch_graph, "on_their_gpu", lambda *_: True)
    monkeypatch.setattr(batch_graph, "batch_graph", refuse)
    index, _ = random_edges(40)
    by_host, asked_for = plait._edges.adjacency._on_one_rank, []

    def on_cpu(*given):
        asked_for.append(given[-1])
        return by_host(*given[:-1], torch.device("cpu"))

    monkeypatch.setattr(plait._edges.adjacency, "_on_one_rank", on_cpu)
    found = plait._edges.adjacency.adjacency(index, None, NODES, device=torch.device("cuda:0"), user=1)
    assert found._handle.num_edges() == 40 and asked_for == [torch.device("cuda:0")]


def test_a_plan_that_does_not_fit_leaves_the_graph(monkeypatch):
    def refuse():
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    made = plait._edges.adjacency.Adjacency("batch", uses=Uses())
    for _ in range(2 * batch_graph._LASTING):
        made.use(1, refuse)
    assert made._handle == "batch" == made._handle_with_rows
    made = plait._edges.adjacency.Adjacency("batch", uses=Uses())
    assert made._handle_with_rows == "batch"
    for _ in range(2 * batch_graph._LASTING):
        made.use(1, lambda: "host")
    assert made._handle == "host" == made._handle_with_rows


def test_memory_that_does_not_suffice_is_torchs_error():
    with pytest.raises(torch.OutOfMemoryError, match="everything"):
        torch.ops.plait.require_memory(2**62, "everything")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_numbers_of_a_graph_are_float32(dtype):
    index, weight = random_edges(100)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        graph = torch.ops.plait.graph_from_edges(index, NODES, weight)
        counts, degree = graph.edge_counts(), graph.degree()
    finally:
        torch.set_default_dtype(before)
    assert counts.dtype == degree.dtype == torch.float32
    assert torch.equal(counts, index[1].bincount(minlength=NODES).float())
    assert torch.allclose(degree, torch.zeros(NODES).index_add(0, index[1], weight))

"""Edges of batches, as they are converted on a GPU; the conversion itself runs on any device."""

import pytest
import scipy.sparse
import torch
from torch_geometric.utils import add_remaining_self_loops

import plait  # noqa: F401 (registers the operations)
from plait import _batch_graph
from plait._batch_graph import Uses, on_their_gpu, one_loop_each

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
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("count", [0, 1, 2, 400])
def test_edges_are_sorted_by_target(weighted, order, dtype, count):
    index, weight = random_edges(count)
    if order == "by target":
        index = index[:, index[1].argsort(stable=True)]
    given = weight if weighted else None
    found = torch.ops.plait.edges_by_target(index.to(dtype), NODES, given)
    values = weight if weighted else torch.ones(count)
    wanted = scipy.sparse.coo_matrix((values, (index[1], index[0])), (NODES, NODES)).tocsr()
    assert abs(matrix_of(found, weighted) - wanted).sum() < 1e-5
    assert found[0][-1] == count


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


def test_the_host_plans_edges_that_are_used_often(monkeypatch):
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    uses = Uses()
    assert not any(uses.are_many() for _ in range(_batch_graph._LASTING - 1))
    capturing[0] = True
    assert not uses.are_many()
    capturing[0] = False
    assert uses.are_many() and not any(uses.are_many() for _ in range(3 * _batch_graph._LASTING))


def test_which_edges_are_converted_on_their_gpu():
    index, weight = random_edges(4)
    gpu = torch.device("cuda", 0)
    assert not on_their_gpu(index, None, NODES, gpu) and not on_their_gpu(index, weight, NODES, torch.device("cpu"))

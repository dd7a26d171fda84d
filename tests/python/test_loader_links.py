"""plait.loader.LinkNeighborLoader: batches around edges, with negative ones."""

import pytest
import torch

from loader_checks import check_hops, check_rows, graph
from plait.loader import LinkNeighborLoader


def batches(data, fanouts, **options):
    torch.manual_seed(3)
    return list(LinkNeighborLoader(data, fanouts, **options))


def ends(batch):
    return batch.n_id[batch.edge_label_index]


@pytest.mark.parametrize("disjoint", [False, True])
def test_edges_in_their_order(disjoint):
    data = graph()
    wanted = data.edge_index[:, 5:30]
    label = torch.arange(25)
    found = batches(data, [3, 2], edge_label_index=wanted, edge_label=label, batch_size=10, disjoint=disjoint)
    assert [batch.input_id.numel() for batch in found] == [10, 10, 5]
    for n, batch in enumerate(found):
        own = slice(10 * n, min(10 * n + 10, 25))
        assert torch.equal(ends(batch), wanted[:, own]) and torch.equal(batch.edge_label, label[own])
        assert torch.equal(batch.input_id, label[own])
        check_rows(data, batch)
        if not disjoint:  # else the trees of an edge's ends have one number
            check_hops(data, batch, [3, 2], wanted[:, own].unique().tolist())
        else:
            assert batch.batch[batch.edge_label_index].tolist() == [list(range(batch.input_id.numel()))] * 2
            assert torch.equal(*batch.batch[batch.edge_index])


def test_all_edges_without_edge_label_index():
    data = graph()
    found = batches(data, [2], batch_size=100)
    assert torch.equal(torch.cat([ends(batch) for batch in found], 1), data.edge_index)


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("amount,label", [(1, None), (2.5, None), (1, torch.arange(10))])
def test_binary(amount, label, disjoint):
    data = graph()
    wanted = data.edge_index[:, :10]
    batch, = batches(data, [3, 2], edge_label_index=wanted, edge_label=label, batch_size=10, disjoint=disjoint,
                     neg_sampling={"mode": "binary", "amount": amount})
    check_rows(data, batch)
    assert torch.equal(ends(batch)[:, :10], wanted)
    assert batch.edge_label_index.size(1) == 10 + int(10 * amount + 0.5)
    assert torch.equal(batch.edge_label[:10], torch.ones(10) if label is None else label + 1)
    assert not batch.edge_label[10:].any()
    assert ends(batch)[:, 10:].unique().numel() > 5


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("amount", [1, 3])
def test_triplets(amount, disjoint):
    data = graph()
    wanted = data.edge_index[:, :10]
    batch, = batches(data, [3, 2], edge_label_index=wanted, batch_size=10, disjoint=disjoint,
                     neg_sampling={"mode": "triplet", "amount": amount})
    check_rows(data, batch)
    assert torch.equal(batch.n_id[batch.src_index], wanted[0])
    assert torch.equal(batch.n_id[batch.dst_pos_index], wanted[1])
    assert batch.dst_neg_index.shape == ((10, amount) if amount > 1 else (10,))
    if disjoint:
        assert torch.equal(batch.batch[batch.dst_neg_index].view(10, amount),
                           torch.arange(10)[:, None].expand(10, amount))


def test_negative_ends_by_weight():
    data = graph()
    weight = torch.zeros(60)
    weight[[4, 9]] = 1.0
    batch, = batches(data, [2], edge_label_index=data.edge_index[:, :50], batch_size=50,
                     neg_sampling={"mode": "triplet", "amount": 1, "dst_weight": weight})
    assert batch.n_id[batch.dst_neg_index].unique().tolist() == [4, 9]


def test_the_old_argument_for_negative_edges():
    batch = batches(graph(), [2], batch_size=20, neg_sampling_ratio=1.0)[0]
    assert batch.edge_label.tolist() == [1.0] * 20 + [0.0] * 20


def test_no_edges():
    assert batches(graph(), [2], edge_label_index=torch.empty(2, 0, dtype=torch.long)) == []

"""plait.loader: neighbours by time and by weight."""

import pytest
import torch

from loader_checks import check_hops, check_rows, edges_into, graph
from plait.loader import LinkNeighborLoader, NeighborLoader


def timed(of="node"):
    data = graph()
    count = data.num_nodes if of == "node" else data.num_edges
    data.moment = torch.randint(20, (count,), generator=torch.Generator().manual_seed(5))
    return data


def is_past(data, of, times):
    """Returns the function that says whether an edge may be drawn in a tree, by the times of seeds."""
    moment = data.moment[data.edge_index[0]] if of == "node" else data.moment
    return lambda tree, edge: int(moment[edge]) <= int(times[tree])


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("of", ["node", "edge"])
def test_nothing_is_later_than_the_seed(of, strategy):
    data = timed(of)
    times = torch.randint(-2, 22, (60,), generator=torch.Generator().manual_seed(6))
    loader = NeighborLoader(data, [3, 2], input_time=times, time_attr="moment", temporal_strategy=strategy,
                            batch_size=20)
    for n, batch in enumerate(loader):
        check_rows(data, batch)
        own = times[20 * n:20 * n + 20]
        assert torch.equal(batch.seed_time, own)
        check_hops(data, batch, [3, 2], range(20 * n, 20 * n + 20), allowed=is_past(data, of, own))


@pytest.mark.parametrize("of", ["node", "edge"])
def test_the_last_are_the_latest(of):
    data = timed(of)
    times = torch.full((60,), 12)
    moment = data.moment[data.edge_index[0]] if of == "node" else data.moment
    for batch in NeighborLoader(data, [4], input_time=times, time_attr="moment", temporal_strategy="last",
                                batch_size=20):
        for place in range(batch.batch_size):
            found = moment[batch.e_id[batch.edge_index[1] == place]].sort().values
            there = moment[edges_into(data)[int(batch.n_id[place])]]
            assert found.tolist() == there[there <= 12].sort().values[-4:].tolist()


def test_seeds_have_their_own_time_if_none_is_given():
    data = timed()
    for n, batch in enumerate(NeighborLoader(data, [3, -1], time_attr="moment", batch_size=20)):
        seeds = range(20 * n, 20 * n + 20)
        check_hops(data, batch, [3, -1], seeds, allowed=is_past(data, "node", data.moment[20 * n:20 * n + 20]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16])
def test_seeds_of_small_types_have_their_own_time(dtype):
    data, seeds = timed(), torch.tensor([1, 1, 1, 9, 0])
    for batch in NeighborLoader(data, [-1], seeds.to(dtype), time_attr="moment", batch_size=5):
        check_hops(data, batch, [-1], seeds.tolist(), allowed=is_past(data, "node", data.moment[seeds]))


@pytest.mark.parametrize("negative", [None, "binary", "triplet"])
@pytest.mark.parametrize("of", ["node", "edge"])
def test_times_of_links(of, negative):
    data = timed(of)
    times = torch.arange(40) % 20
    loader = LinkNeighborLoader(data, [3, 2], edge_label_index=data.edge_index[:, :40], edge_label_time=times,
                                time_attr="moment", neg_sampling=negative, batch_size=10)
    for n, batch in enumerate(loader):
        check_rows(data, batch)
        own = times[10 * n:10 * n + 10]
        may = is_past(data, of, own)
        assert batch.e_id.numel() > 20
        assert all(may(tree, edge) for tree, edge in
                   zip(batch.batch[batch.edge_index[0]].tolist(), batch.e_id.tolist()))


@pytest.mark.parametrize("replace", [False, True])
def test_heavier_edges_are_drawn_more_often(replace):
    data = graph()
    data.weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(7))
    there = edges_into(data)[2]
    data.weight[there[:5]] = torch.tensor([0.0, 8.0, 4.0, 2.0, 0.0])
    loader = NeighborLoader(data, [1], input_nodes=[2] * 4000, disjoint=True, weight_attr="weight", batch_size=500,
                            replace=replace)
    torch.manual_seed(1)
    drawn = torch.cat([batch.e_id for batch in loader]).bincount(minlength=data.num_edges)
    assert set(drawn.nonzero().view(-1).tolist()) <= set(there)
    share = data.weight[there] / data.weight[there].sum()
    error = (share * (1 - share) / 4000).sqrt()
    assert ((drawn[there] / 4000 - share).abs() <= 5 * error).all()


def test_edges_without_weight_are_never_drawn():
    data = graph()
    data.weight = (torch.arange(data.num_edges) % 3 == 0).double()
    data.weight[edges_into(data)[5]] = 0.0
    for fanouts in ([3, 2], [-1, -1]):
        for batch in NeighborLoader(data, fanouts, weight_attr="weight", batch_size=20):
            check_hops(data, batch, fanouts, batch.n_id[:batch.batch_size].tolist(),
                       allowed=lambda tree, edge: bool(data.weight[edge] > 0))

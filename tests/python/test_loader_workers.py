"""plait.loader: workers, repetition, iterators that are left half-way, copies, and stores."""

import copy
import multiprocessing
import pickle
import warnings

import pytest
import torch
import torch_geometric.loader
from torch_geometric.testing import MyFeatureStore, MyGraphStore

import plait
from loader_checks import check_hops, check_rows, graph
from plait.loader import LinkNeighborLoader, NeighborLoader
from plait.loader.sampler import NeighborSampler


def drawn(loader, seed=1):
    torch.manual_seed(seed)
    return [batch.e_id for batch in loader]


def same(first, second):
    return len(first) == len(second) and all(map(torch.equal, first, second))


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True},
                                     {"num_workers": 1, "filter_per_worker": False}])
def test_workers(options):
    data = graph()
    loader = NeighborLoader(data, [3, 2], batch_size=16, **options)
    torch.manual_seed(1)
    found = list(loader)
    for n, batch in enumerate(found):
        check_rows(data, batch)
        check_hops(data, batch, [3, 2], range(16 * n, min(16 * n + 16, 60)))
    again = drawn(loader)
    if "persistent_workers" not in options:  # whose generators go on
        assert same(again, [batch.e_id for batch in found])
    assert not same(drawn(loader, 2), again)
    assert not torch.equal(found[0].e_id, drawn(loader, 3)[0])


@pytest.mark.parametrize("torchrun", [False, True])
def test_workers_after_threads_were_used(torchrun, monkeypatch):
    """Forked processes have no threads: those of their parent must not be waited for. torchrun's ranks take
    their share of the cores, but not their workers."""
    if torchrun:
        for name, value in {"TORCHELASTIC_RUN_ID": "x", "OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "1"}.items():
            monkeypatch.setenv(name, value)
    torch.set_num_threads(2)
    data = graph(nodes=5000, edges=60000)
    plait.aggregate(plait.Graph(data.edge_index, data.num_nodes), torch.randn(data.num_nodes, 64))
    list(NeighborLoader(data, [20, 20], batch_size=2500))
    for batch in NeighborLoader(data, [20, 20], batch_size=2500, num_workers=2, timeout=60):
        check_rows(data, batch)
        assert batch.batch_size == 2500


def test_two_epochs_differ_and_seeds_repeat_them():
    loader = NeighborLoader(graph(), [3, 2], batch_size=16, shuffle=True)
    first, second = drawn(loader), [batch.e_id for batch in loader]
    assert not same(first, second)
    assert same(drawn(loader), first)
    links = LinkNeighborLoader(graph(), [3], neg_sampling="binary", batch_size=50)
    assert same(drawn(links), drawn(links)) and not same(drawn(links), drawn(links, 2))


def test_threads_change_nothing():
    data = graph(nodes=3000, edges=30000)
    loader = NeighborLoader(data, [10, 10], batch_size=1000)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(drawn(loader))
    finally:
        torch.set_num_threads(before)
    assert same(*results)


@pytest.mark.parametrize("workers", [0, 2])
def test_iterators_that_are_left(workers):
    before = multiprocessing.active_children()  # of other tests
    loader = NeighborLoader(graph(), [3, 2], batch_size=8, num_workers=workers)
    for _ in range(3):
        next(iter(loader))
    half = iter(loader)
    next(half)
    wanted = drawn(loader)
    assert len(wanted) == 8 and same(drawn(loader), wanted)
    del half
    own = [p for p in multiprocessing.active_children() if p not in before]
    assert not [p for p in own if not p.join(10) and p.is_alive()]


def test_copies_and_pickles():
    sampler = NeighborSampler(graph(), [3, 2])
    loader = NeighborLoader(graph(), [3, 2], batch_size=16)
    for twin in (copy.deepcopy(loader.node_sampler), pickle.loads(pickle.dumps(sampler))):
        again = NeighborLoader(graph(), [3, 2], batch_size=16, neighbor_sampler=twin)
        assert same(drawn(again), drawn(loader))


def test_settings_that_change():
    data = graph()
    loader = NeighborLoader(data, [3, 2], batch_size=60)
    loader.node_sampler.num_neighbors = [-1]
    check_hops(data, next(iter(loader)), [-1], range(60))
    loader.node_sampler.replace, loader.node_sampler.num_neighbors = True, [4]
    check_hops(data, next(iter(loader)), [4], range(60), replace=True)
    for fanout in range(1, 40):  # of old settings nothing stays
        loader.node_sampler.num_neighbors = [fanout]
        check_hops(data, next(iter(loader)), [fanout], range(60), replace=True)
    assert len(loader.node_sampler.relation._made) < 20


def test_no_warning_and_no_change_of_theirs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(NeighborLoader(graph(), [2])))
    with pytest.raises(ImportError, match="requires either 'pyg-lib' or 'torch-sparse'"):
        next(iter(torch_geometric.loader.NeighborLoader(graph(), [2])))


def test_backward():
    """Edges that leave the nodes, instead of edges that lead to them."""
    data = graph()
    sampler = NeighborSampler(data, [-1], sample_direction="backward")
    loader = NeighborLoader(data, [-1], [5, 2], batch_size=2, neighbor_sampler=sampler)
    batch, = loader
    check_rows(data, batch)
    leaves = (data.edge_index[0] == 5) | (data.edge_index[0] == 2)
    assert torch.equal(batch.e_id.sort().values, leaves.nonzero().view(-1))


@pytest.mark.parametrize("layout", ["coo", "csc"])
def test_stores(layout):
    data = graph().sort(sort_by_row=False)
    features, edges = MyFeatureStore(), MyGraphStore()
    features.put_tensor(data.x, group_name=None, attr_name="x", index=None)
    index = tuple(data.edge_index)
    if layout == "csc":
        index = index[0], torch_geometric.index.index2ptr(index[1], data.num_nodes)
    edges.put_edge_index(index, edge_type=None, layout=layout, is_sorted=True, size=(60, 60))
    for n, batch in enumerate(NeighborLoader((features, edges), [3, 2], torch.arange(60), batch_size=16)):
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        check_hops(data, batch, [3, 2], range(16 * n, min(16 * n + 16, 60)))
    for group in (None, (None, None)):  # values of edges, as their name is not "time"
        features.put_tensor(torch.arange(data.num_edges) % 2, group_name=group, attr_name="moment", index=None)
        for n, batch in enumerate(NeighborLoader((features, edges), [3], torch.arange(60), torch.zeros(60).long(),
                                                 time_attr="moment", batch_size=30)):
            check_hops(data, batch, [3], range(30 * n, 30 * n + 30), allowed=lambda tree, edge: edge % 2 == 0)
        features.remove_tensor(group_name=group, attr_name="moment", index=None)

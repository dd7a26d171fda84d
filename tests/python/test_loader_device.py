"""plait.loader: the argument `device` on a machine without GPUs, and where the tensors of batches are.
tests/gpu/test_sampling.py has GPUs."""

import pickle
import types

import pytest
import torch
import torch_geometric.loader
from torch_geometric.data import Data

import plait._devices
from loader_checks import check_hops, check_rows, check_rows_of_types, graph, graph_of_types
from plait.loader import LinkNeighborLoader, NeighborLoader
from plait.loader.sampler import NeighborSampler


def drawn(loader):
    torch.manual_seed(4)
    return list(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_cpu_is_the_default(workers):
    data = graph()
    named, default = (drawn(NeighborLoader(data, [3, 2], batch_size=16, num_workers=workers, **device))
                      for device in ({"device": "cpu"}, {}))
    assert len(named) == len(default) == 4
    for one, other in zip(named, default):
        check_rows(data, one)
        check_hops(data, one, [3, 2], other.input_id.tolist())
        assert torch.equal(one.e_id, other.e_id)
        assert set(one.keys()) == set(other.keys())


def test_batches_have_what_the_graph_has():
    """The number of nodes may be known by nothing but the edges, whose content batches are made without."""
    data = Data(y=torch.arange(60), edge_index=graph().edge_index, note=torch.ones(3))
    data.edge_index[0, 0] = 59
    for batch, wanted in zip(*(drawn(NeighborLoader(data, [3], torch.arange(50), batch_size=30, **device))
                               for device in ({"device": "cpu"}, {}))):
        assert torch.equal(batch.y, batch.n_id) and torch.equal(batch.note, torch.ones(3))
        assert torch.equal(batch.edge_index, wanted.edge_index) and set(batch.keys()) == set(wanted.keys())
    data = graph_of_types()
    for batch in drawn(NeighborLoader(data, [3, 2], "paper", batch_size=16, device="cpu")):
        check_rows_of_types(data, batch)
    assert torch.equal(data["paper", "cites", "paper"].edge_index, graph_of_types()["cites"].edge_index)


def test_the_users_transforms():
    seen = []

    def note(x):
        seen.append(type(x).__name__)
        return x

    loader = LinkNeighborLoader(graph(), [3], batch_size=300, transform=note, transform_sampler_output=note,
                                device=torch.device("cpu"))
    assert loader.transform is note and len(list(loader)) == 2
    assert seen == ["SamplerOutput", "Data"] * 2


def test_edges_have_their_own_ids():
    sampler = NeighborSampler(graph(), [3])
    assert sampler.device == torch.device("cpu") and sampler.edge_permutation is None
    assert pickle.loads(pickle.dumps(sampler)).device == sampler.device


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("loader", [NeighborLoader, LinkNeighborLoader, NeighborSampler])
def test_without_a_gpu(loader):
    known = plait._library.ops.built_with_cuda()
    text = ("PyTorch finds no GPU; give device='cpu', or install a driver and a PyTorch with CUDA" if known else
            "this build of Plait has no GPU engine; build it where nvcc is found, or give device='cpu'")
    with pytest.raises(ValueError, match=f"^device is 'cuda', but {text}$"):
        loader(graph(), [2], device="cuda")


def test_without_the_gpu_engine(monkeypatch):
    """Graphs on a GPU are then sampled on the CPU, as by PyTorch Geometric."""
    monkeypatch.setattr(plait._devices, "ops", types.SimpleNamespace(built_with_cuda=lambda: False))
    with pytest.raises(ValueError, match="^device is 'cuda:1', but this build of Plait has no GPU engine; build it "
                                         "where nvcc is found, or give device='cpu'$"):
        NeighborLoader(graph(), [2], device="cuda:1")
    assert not plait._devices.samples_on(torch.device("cuda", 0))
    assert plait._devices.samples_on(torch.device("cpu"))


def test_a_gpu_too_many(monkeypatch):
    monkeypatch.setattr(plait._devices, "ops", types.SimpleNamespace(built_with_cuda=lambda: True))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="^device is 'cuda:2', but there are 2 GPUs; give cuda:0 to cuda:1$"):
        NeighborLoader(graph(), [2], device="cuda:2")


@pytest.mark.parametrize("device,name", [("gpu", "'gpu'"), ("meta", "'meta'"), (2.5, "2.5")])
def test_other_devices(device, name):
    with pytest.raises(ValueError, match=f"^device is {name}; give 'cpu', 'cuda' or 'cuda:N'$"):
        NeighborLoader(graph(), [2], device=device)


@pytest.mark.parametrize("sampler", [NeighborSampler, torch_geometric.sampler.NeighborSampler])
def test_a_sampler_has_its_own_device(sampler):
    with pytest.raises(ValueError, match="^device is given beside neighbor_sampler, which has its own; leave it out$"):
        NeighborLoader(graph(), [2], neighbor_sampler=sampler(graph(), [2]), device="cpu")


def test_workers_beside_a_gpu():
    sampler = NeighborSampler(graph(), [2])
    sampler.device = torch.device("cuda", 0)
    with pytest.raises(ValueError, match="^num_workers is 2, but neighbours are drawn on cuda:0 by this process; leave "
                                         "num_workers out, or give device='cpu' to the loader, or to its "
                                         "NeighborSampler if it has one$"):
        NeighborLoader(graph(), [2], neighbor_sampler=sampler, num_workers=2)


class Foreign(torch_geometric.sampler.BaseSampler):
    """A sampler that is not Plait's, with an attribute of the same name."""

    device = "cuda:0"
    edge_permutation = None

    def sample_from_nodes(self, inputs, **_):
        none = torch.empty(0, dtype=torch.long)
        return torch_geometric.sampler.SamplerOutput(inputs.node, none, none, none, metadata=(inputs.input_id, None))

    def sample_from_edges(self, inputs, neg_sampling=None):
        raise NotImplementedError


@pytest.mark.parametrize("workers", [0, 2])
def test_a_foreign_sampler_may_have_a_device(workers):
    loader = NeighborLoader(graph(), [2], neighbor_sampler=Foreign(), batch_size=7, num_workers=workers)
    assert next(iter(loader)).n_id.tolist() == list(range(7))

"""Pairs of nodes without edges and random walks on a GPU, bit by bit those of the CPU. scripts/gpu-test runs it."""

import pathlib
import pickle
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import conftest  # noqa: F401  the package under test

import plait
from test_sampling import GPU, assert_same


def edges(nodes=40, count=200, seed=0):
    return torch.randint(0, nodes, (2, count), generator=torch.Generator().manual_seed(seed))


# --- pairs that are no edges ---


@pytest.mark.parametrize("num_nodes, options", [(40, {}), (40, {"loops": True}), (40, {"ascending": True}), ((40, 45), {})])
def test_pairs_are_the_cpus(num_nodes, options):
    index = edges()
    here, there = plait.NonEdges(index, num_nodes, **options), plait.NonEdges(index.to(GPU), num_nodes, **options)
    for count, replace in ((0, False), (7, False), (500, False), (len(here), False), (5000, True), (3, True)):
        found = []
        for pairs in (here, there):
            torch.manual_seed(count)
            found.append(pairs.sample(count, replace))
        assert found[1].device == GPU and found[1].cpu().equal(found[0])
    if options.get("ascending"):
        return
    source, found = torch.arange(200) % 40, []
    for pairs, place in ((here, "cpu"), (there, GPU), (here, GPU)):
        torch.manual_seed(1)
        found.append(pairs.targets(source.to(place)))
    assert found[1].device == found[2].device == GPU
    assert found[1].cpu().equal(found[0]) and found[2].cpu().equal(found[0])


def test_wrong_sources_of_pairs():
    pairs = plait.NonEdges(torch.tensor([[0, 0], [0, 1]], device=GPU), 2, loops=True)
    for source, text in (([1, 2], r"source 1 is 2, outside 0\.\.1"), ([1, 0], "vertex 0 has edges to all 2 vertices")):
        with pytest.raises(ValueError, match=text):
            pairs.targets(torch.tensor(source, device=GPU))


# --- random walks ---


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"p": 0.25, "q": 4.0}, {"p": 1e-6, "q": 2.0}, {"restart": 0.3},
                                     {"p": 2.0, "q": 0.5, "restart": 0.1}])
def test_walks_are_the_cpus(options, weighted):
    for index, nodes in ((edges(), 45), (edges(3000, 40000, 1), 3000), (torch.empty(2, 0, dtype=torch.long), 3),
                         (torch.zeros(2, 1, dtype=torch.long), 1)):
        weight = torch.rand(index.size(1)) * (torch.arange(index.size(1)) % 5 > 0) if weighted else None
        for place in ("cpu", GPU):
            walks = plait.RandomWalks(index.to(place), nodes, None if weight is None else weight.to(place))
            for start in (torch.arange(nodes).repeat(2), torch.tensor([0, 0]), torch.empty(0, dtype=torch.long),
                          torch.arange(nodes, dtype=torch.int32)):
                for length in (0, 1, 20):
                    found = []
                    for device in ("cpu", GPU):
                        torch.manual_seed(6)
                        found.append(walks.walk(start.to(device), length, **options))
                    assert_same({"walk": found[0]}, {"walk": found[1]})
            found = []
            for device in ("cpu", GPU):
                torch.manual_seed(6)
                found.append(walks.neighbors(torch.arange(nodes).to(device), 4, num_walks=30))
            assert_same(dict(enumerate(found[0])), dict(enumerate(found[1])))


def test_walks_on_streams_and_copies():
    walks = plait.RandomWalks(edges(3000, 40000, 1), 3000)
    start = torch.arange(3000)
    torch.manual_seed(2)
    wanted = walks.walk(start, 15)
    for one in (walks, pickle.loads(pickle.dumps(walks))):
        with torch.cuda.stream(torch.cuda.Stream()):
            slow = torch.randn(4096, 4096, device=GPU)
            for _ in range(8):
                slow = slow @ slow / 64
            late = start.to(GPU) + (slow[0, 0] * 0).nan_to_num().long()
            torch.manual_seed(2)
            assert torch.equal(one.walk(late, 15).cpu(), wanted)


@pytest.mark.parametrize("start,options,text", [
    ([0, 40], {}, r"start 1 is 40, outside 0\.\.39"), ([-1], {}, r"start 0 is -1, outside 0\.\.39"),
    ([0], {"p": 0.0}, r"p is 0, outside"), ([[1]], {}, "start has shape"),
    ([1], {"walk_length": -1}, "walk_length is -1; it must be at least 0")])
def test_wrong_walks(start, options, text):
    walks = plait.RandomWalks(edges())
    with pytest.raises(ValueError, match=text):
        walks.walk(torch.tensor(start, device=GPU), **{"walk_length": 3, **options})
    assert walks.walk(torch.tensor([1], device=GPU), 3).shape == (1, 4)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_walks_on_a_second_gpu():
    other, walks, found = torch.device("cuda", 1), plait.RandomWalks(edges()), []
    for device in ("cpu", GPU, other):
        torch.manual_seed(1)
        found.append(walks.walk(torch.arange(40, device=device), 9))
        assert found[-1].device.type == torch.device(device).type
    assert found[2].device == other and all(torch.equal(found[0], each.cpu()) for each in found)
    assert torch.cuda.current_device() == 0

"""plait.random_walk and plait.RandomWalks against networkx, exact chances and a count by hand."""

import os
import pathlib
import pickle
import subprocess

import networkx
import numpy
import pytest
import scipy.stats
import torch

import plait

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 1e-4  # of a right draw's p values


def edges(nodes=40, count=200, seed=0):
    return torch.randint(0, nodes, (2, count), generator=torch.Generator().manual_seed(seed))


def p_value(found, chances):
    """Returns the p value of the counts of `found` against chances, by outcome; 0 for an impossible outcome."""
    outcomes, counts = numpy.unique(found, return_counts=True)
    if not set(outcomes.tolist()) <= set(chances):
        return 0
    by_outcome = dict(zip(outcomes.tolist(), counts.tolist()))
    keys = [key for key, chance in chances.items() if chance > 0]
    expected = numpy.array([chances[key] for key in keys]) * len(found)
    return scipy.stats.chisquare([by_outcome.get(key, 0) for key in keys], expected).pvalue


def test_steps_are_edges_and_ends_stay():
    edge_index = edges(seed=1)
    graph = networkx.MultiDiGraph(edge_index.t().tolist())
    graph.add_nodes_from(range(45))
    start = torch.arange(45).repeat(3)
    walk = plait.random_walk(edge_index, start, 12, num_nodes=45)
    assert walk.shape == (135, 13) and walk.dtype == torch.long and walk[:, 0].equal(start)
    for row in walk.tolist():
        for at, to in zip(row, row[1:]):
            assert graph.has_edge(at, to) or (to == at and graph.out_degree(at) == 0)


@pytest.mark.parametrize("p,q", [(1, 1), (0.25, 4), (4, 0.25)])
@pytest.mark.parametrize("weighted", [False, True])
def test_chances_of_node2vec(p, q, weighted):
    edge_index = edges(7, 30, seed=3)
    weight = torch.rand(30) if weighted else None
    value = weight if weighted else torch.ones(30)
    dense = torch.zeros(7, 7, dtype=torch.double).index_put_(tuple(edge_index), value.double(), accumulate=True)
    start = 2
    chances = {}
    for first in range(7):
        once = dense[start] / dense[start].sum()
        factor = torch.where(dense[:, start] > 0, 1.0, 1 / q)
        factor[start] = 1 / p
        twice = dense[first] * factor
        if not twice.any():
            twice[first] = 1  # an end stays
        for second in range(7):
            if once[first] * twice[second] > 0:
                chances[7 * first + second] = float(once[first] * twice[second] / twice.sum())
    torch.manual_seed(5)
    walk = plait.random_walk(edge_index, torch.full((40000,), start), 2, p, q, edge_weight=weight)
    found = (7 * walk[:, 1] + walk[:, 2]).numpy()
    assert p_value(found, chances) > LEAST
    wrong = {key: chance * (1.5 if key % 7 == start else 1) for key, chance in chances.items()}
    total = sum(wrong.values())
    assert p_value(found, {key: chance / total for key, chance in wrong.items()}) < LEAST


def test_seed_and_number_alone():
    walks = plait.RandomWalks(edges(), edge_weight=torch.rand(200))
    start = torch.arange(40)
    torch.manual_seed(1)
    walk = walks.walk(start, 9, p=0.5, restart=0.1)
    again = pickle.loads(pickle.dumps(walks))
    torch.manual_seed(1)
    assert again.walk(start[:7].int(), 9, p=0.5, restart=0.1).equal(walk[:7])
    assert not walks.walk(start, 9, p=0.5, restart=0.1).equal(walk)
    torch.manual_seed(1)
    assert walks.walk(start, 4, p=0.5, restart=0.1).equal(walk[:, :5])


def test_neighbors_are_the_most_visited():
    walks = plait.RandomWalks(edges(seed=2), 41)
    start = torch.tensor([3, 40, 7, 3])
    torch.manual_seed(4)
    (nodes, place), visits = walks.neighbors(start, 5, num_walks=80, walk_length=4, restart=0.3)
    torch.manual_seed(4)
    walk = walks.walk(start.repeat_interleave(80), 4, restart=0.3).view(4, -1)
    sums = [0.0] * 4
    expected = []
    for i, row in enumerate(walk.tolist()):
        count = numpy.bincount(row, minlength=41)
        count[start[i]] = 0
        order = [v for v in numpy.argsort(-count, kind="stable") if count[v] > 0][:5]
        sums[i] = sum(count[v] for v in order)
        expected += [(v, int(start[i]), count[v] / sums[i]) for v in order]
    assert [(int(v), int(s)) for v, s in zip(nodes, place)] == [(int(v), s) for v, s, _ in expected]
    torch.testing.assert_close(visits, torch.tensor([share for *_, share in expected], dtype=torch.float))


@pytest.mark.parametrize("at_once", [1, 250, 2**24])
def test_most_visited_by_either_way(at_once, monkeypatch):
    """A GPU finds the nodes by PyTorch's operations, some starts at a time: here on the CPU."""
    monkeypatch.setattr(plait.walks, "_VISITS_AT_ONCE", at_once)
    for edge_index, nodes in ((edges(seed=2), 41), (torch.zeros(2, 1, dtype=torch.long), 1),
                              (torch.empty(2, 0, dtype=torch.long), 3)):
        walks = plait.RandomWalks(edge_index, nodes)
        for start in (torch.arange(nodes).repeat(2), torch.tensor([0, 0]), torch.empty(0, dtype=torch.long)):
            for settings in ((4, 60, 5), (1, 1, 1), (3, 20, 100), (0, 5, 2)):
                here, there = (list(find(start, settings, 0.3, 9)) for find in (walks._visited_here,
                                                                                walks._visited_there))
                assert all(map(torch.equal, here, there)) and len(here) == len(there) == 3
    with pytest.raises(ValueError, match="give at least one each"):
        walks._visited_there(start, (3, 0, 5), 0.3, 9)
    with pytest.raises(ValueError, match=r"start 1 is 3, outside 0\.\.2"):
        walks._visited_there(torch.tensor([0, 3]), (3, 50, 5), 0.3, 9)


def test_sources_of_edges():
    edge_index = edges()
    start = torch.arange(40)
    found = []
    for source in (edge_index, plait.Graph(edge_index), edge_index.numpy()):
        torch.manual_seed(0)
        found.append(plait.random_walk(source, start, 5))
    assert all(walk.equal(found[0]) for walk in found)


def test_odd_inputs():
    none = torch.empty(2, 0, dtype=torch.long)
    assert plait.random_walk(none, torch.tensor([1, 0]), 2, num_nodes=2).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert plait.random_walk(edges(), torch.empty(0, dtype=torch.long), 3).shape == (0, 4)
    assert plait.random_walk(edges(), torch.tensor([4, 4]), 0).tolist() == [[4], [4]]
    index, visits = plait.RandomWalks(none, 2).neighbors(torch.tensor([1]), 3)
    assert index.shape == (2, 0) and visits.shape == (0,)


def test_node2vec_learns_communities():
    torch.manual_seed(0)
    inside = torch.cat([torch.randint(0, 25, (2, 150)) + 25 * part for part in range(2)], dim=1)
    edge_index = torch.cat([inside, inside.flip(0), torch.tensor([[0, 30], [30, 0]])], dim=1)
    model = plait.nn.Node2Vec(edge_index, 8, walk_length=10, context_size=5, walks_per_node=4, p=0.5, q=2.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        for positive, negative in model.loader(batch_size=25, shuffle=True):
            assert positive.shape == (25 * 4 * 6, 5)
            optimizer.zero_grad()
            loss = model.loss(positive, negative)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]
    similar = torch.nn.functional.normalize(model().detach(), dim=1)
    similar = similar @ similar.t()
    assert similar[:25, :25].mean() > similar[:25, 25:].mean() + 0.3
    with pytest.raises(ValueError, match="context_size is 6, but walks have 5 nodes; give at most as many"):
        plait.nn.Node2Vec(edge_index, 8, walk_length=5, context_size=6)


@pytest.mark.parametrize("change,message", [
    ({"start": torch.tensor([0, 40])}, r"start 1 is 40, outside 0\.\.39"),
    ({"start": torch.tensor([-1])}, r"start 0 is -1, outside 0\.\.39"),
    ({"start": torch.tensor([1.0])}, r"start holds torch.float32; use integers \(torch.long\)"),
    ({"start": torch.tensor([[1]])}, r"start has shape \[1, 1\], but must have one dimension"),
    ({"walk_length": -1}, "walk_length is -1; it must be at least 0"),
    ({"walk_length": 2**70}, f"walk_length is {2**70}, which is beyond 64 bits"),
    ({"walk_length": 2**40}, "a walk of 1099511627776 steps is asked for; at most 2147483648 are allowed"),
    ({"p": 0.0}, r"p is 0, outside 1e-09\.\.1000000000"),
    ({"q": float("nan")}, r"q is nan, outside 1e-09\.\.1000000000"),
    ({"restart": 1.0}, "the chance of a restart is 1; it must be at least 0 and below 1"),
    ({"edge_weight": torch.full((200,), -1.0)}, r"edge_weight\[0\] is -1; weights must be at least 0"),
    ({"edge_weight": torch.full((200,), float("nan"))}, r"edge_weight\[0\] is nan; weights must be finite"),
    ({"num_nodes": 5}, r"edge_index\[0, \d+\] is \d+, outside 0\.\.4; correct it, or raise num_nodes to \d+"),
])
def test_refuses(change, message):
    arguments = {"edge_index": edges(), "start": torch.tensor([1]), "walk_length": 3, "num_nodes": 40} | change
    with pytest.raises(ValueError, match=message):
        plait.random_walk(**arguments)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_command_has_the_same_walks(tmp_path, weighted):
    """plait walk --seed S is torch.manual_seed(S) and plait.random_walk."""
    program = os.environ.get("PLAIT_PROGRAM", CHECKOUT / "build/bin/plait")
    edge_index, weight, out = edges(seed=4), torch.randint(1, 9, (200,)).float(), tmp_path / "walks.npy"
    lines = (f"{u} {v} {w}" for (u, v), w in zip(edge_index.t().tolist(), weight.tolist()))
    (tmp_path / "g.el").write_text("\n".join(lines))
    options = ["--vertices", 40, "--walks", 3, "--length", 9, "--q", 2, "--restart", 0.1, "--seed", 11, "-o", out]
    subprocess.run([program, "walk", tmp_path / "g.el", *map(str, options), *(["--weighted"] if weighted else [])],
                   check=True, capture_output=True, timeout=300)
    torch.manual_seed(11)
    walks = plait.random_walk(edge_index, torch.arange(40).repeat_interleave(3), 9, q=2, restart=0.1, num_nodes=40,
                              edge_weight=weight if weighted else None)
    assert numpy.array_equal(numpy.load(out), walks.numpy())


@pytest.mark.parametrize("wrong", ["1", None, True, torch.ones(2)])
@pytest.mark.parametrize("name", ["p", "q", "restart"])
def test_settings_of_other_types(name, wrong):
    walks = plait.RandomWalks(torch.tensor([[0], [1]]))
    with pytest.raises(TypeError, match=f"^{name} is .*, not a number$"):
        walks.walk(torch.tensor([0]), 3, **{name: wrong})
    assert walks.walk(torch.tensor([0]), 1, **{name: torch.tensor(0.5)}).shape == (1, 2)


@pytest.mark.parametrize("name", ["num_walks", "num_neighbors"])
def test_no_neighbors(name):
    with pytest.raises(ValueError, match=f"^{name} is -1, but must be at least 1"):
        plait.RandomWalks(torch.tensor([[0], [1]])).neighbors(torch.tensor([0]), **{"num_neighbors": 2, name: -1})

"""plait.bfs and the other functions of analytics: answers against networkx, arguments, and several ranks."""

import json
import pathlib
import pickle

import networkx as nx
import numpy as np
import pytest
import torch

import plait
from ranks import Ranks

HERE = pathlib.Path(__file__).resolve().parent
NODES = 60


@pytest.fixture(scope="module")
def graphs():
    """Returns the same directed graph for networkx and for Plait."""
    theirs = nx.gnm_random_graph(NODES, 170, 3, directed=True)
    random = np.random.default_rng(1)
    for _, _, edge in theirs.edges(data=True):
        edge["weight"] = float(random.integers(0, 5))
    index = torch.tensor(list(theirs.edges)).T
    return theirs, plait.Graph(index, NODES, torch.tensor([w for *_, w in theirs.edges(data="weight")]))


def test_networkx_graphs():
    """Nodes are numbered in their order, whatever they are; loops count once, parallel edges each."""
    club = nx.karate_club_graph()
    named = nx.relabel_nodes(club, {v: f"member {v}" for v in club})
    for graph in (club, named):
        assert plait.triangles(graph).triangles == 45
    assert plait.louvain(nx.Graph(club.edges)).modularity == pytest.approx(0.4197896, abs=1e-7)
    found = plait.louvain(club, weighted=True)
    members = [set(np.flatnonzero(found.community == label)) for label in found.community.unique()]
    assert found.modularity == pytest.approx(nx.community.modularity(club, members), abs=1e-9)
    directed = nx.MultiDiGraph([("b", "a"), ("b", "a"), ("a", "c"), ("c", "c")])
    assert plait.bfs(directed, source=0).distance.tolist() == [0, 1, 2]  # b, a, c
    assert plait.Graph(directed).edge_index.tolist() == [[0, 0, 1, 2], [1, 1, 2, 2]]
    assert plait.Graph(nx.MultiGraph([(0, 0), (0, 1), (0, 1)])).edge_index.shape == (2, 5)
    weighted = nx.DiGraph([(0, 1), (1, 2)])
    weighted[0][1]["weight"] = 0.5
    assert plait.Graph(weighted).edge_weight.tolist() == [0.5, 1]
    assert plait.components(nx.empty_graph(3)).components == 3
    weighted[0][1]["weight"] = "much"
    with pytest.raises(TypeError, match="the weight of an edge is 'much', not a number"):
        plait.Graph(weighted)


@pytest.mark.parametrize("largest", [2**40, 2**62])
def test_ids_that_no_memory_holds(largest):
    with pytest.raises(torch.OutOfMemoryError, match=f"a graph of {largest + 1} vertices does not fit in memory"):
        plait.louvain(torch.tensor([[0], [largest]]))


def test_answers(graphs):
    theirs, graph = graphs
    distances = nx.single_source_shortest_path_length(theirs, 4)
    found = plait.bfs(graph, source=4)
    assert found.distance.tolist() == [distances.get(v, -1) for v in range(NODES)]
    assert (found.source, found.reached, found.depth) == (4, len(distances), max(distances.values()))
    lengths = nx.single_source_dijkstra_path_length(theirs, 4)
    found = plait.sssp(graph, source=4)
    assert found.distance.tolist() == [lengths.get(v, float("inf")) for v in range(NODES)]
    assert found.distance.dtype == torch.float64 and found.farthest == max(lengths.values())
    assert plait.components(graph).components == nx.number_weakly_connected_components(theirs)
    found, strong = plait.components(graph, strong=True), list(nx.strongly_connected_components(theirs))
    assert (found.components, found.largest) == (len(strong), max(map(len, strong)))
    least = {v: min(some) for some in strong for v in some}
    assert found.component.tolist() == [least[v] for v in range(NODES)]
    assert plait.components(graph).components == nx.number_weakly_connected_components(theirs)  # not strong again
    cores = nx.core_number(nx.Graph(theirs))
    assert plait.kcore(graph).core.tolist() == [cores[v] for v in range(NODES)]
    triangles = nx.triangles(nx.Graph(theirs))
    found = plait.triangles(graph)
    assert found.per_vertex.tolist() == [triangles[v] for v in range(NODES)] and found.per_vertex.dtype == torch.int64
    assert (found.triangles, found.most) == (sum(triangles.values()) // 3, max(triangles.values()))
    for function in (plait.louvain, plait.leiden):
        found = function(graph)
        members = [set(np.flatnonzero(found.community == label)) for label in sorted(set(found.community.tolist()))]
        assert [min(some) for some in members] == sorted(set(found.community.tolist()))
        both_ways = nx.Graph(theirs)  # an edge each way counts twice
        for u, v in both_ways.edges:
            both_ways[u][v]["weight"] = theirs.has_edge(u, v) + theirs.has_edge(v, u)
        assert found.modularity == pytest.approx(nx.community.modularity(both_ways, members), abs=1e-9)
        assert (found.communities, found.largest) == (len(members), max(map(len, members)))
    ranks = nx.pagerank(theirs, tol=1e-13, max_iter=500)
    found = plait.pagerank(graph, weighted=True, tolerance=1e-12, iterations=500)
    torch.testing.assert_close(found.rank, torch.tensor([ranks[v] for v in range(NODES)], dtype=torch.float64))
    assert found.change < 1e-12 and found.top == max(ranks, key=ranks.get)


def test_sources_of_edges(graphs):
    """Tensors, matrices and graphs in another order give the same answer."""
    theirs, graph = graphs
    expected = plait.bfs(graph, source=4)
    for same in (graph.edge_index, nx.to_scipy_sparse_array(theirs).T,
                 plait.Graph(graph.edge_index, NODES, reorder="degree")):
        found = plait.bfs(same, source=4)
        assert found.distance.equal(expected.distance) and found.parent.equal(expected.parent)


def test_changed_edges():
    """The graph is placed anew when its tensor has changed."""
    index = torch.tensor([[0, 1], [1, 2]])
    graph = plait.Graph(index, 4)
    assert plait.bfs(graph).reached == 3
    index[1, 1] = 0
    assert plait.bfs(graph).reached == 2


@pytest.mark.parametrize("value", [3, np.int32(3), torch.tensor(3)])
def test_whole_numbers(graphs, value):
    assert plait.bfs(graphs[1], source=value).source == 3


@pytest.mark.parametrize("name,settings,text", [
    ("bfs", {"source": "3"}, "source is '3', but must be a whole number"),
    ("bfs", {"source": 1.5}, "source is 1.5, but must be a whole number"),
    ("bfs", {"source": True}, "must be a whole number"), ("bfs", {"source": None}, "must be a whole number"),
    ("bfs", {"source": 10**400}, "no graph has"), ("bfs", {"source": torch.ones(2)}, "must be a whole number"),
    ("bfs", {"source": -1}, "source is -1"), ("sssp", {"source": NODES}, f"is not in 0..{NODES - 1}"),
    ("pagerank", {"damping": 1}, "damping"), ("pagerank", {"damping": "0.5"}, "must be a number"),
    ("components", {"strong": 1}, "must be True or False"), ("pagerank", {"weighted": 1}, "must be True or False"), ("pagerank", {"iterations": 0}, "iterations"),
])
def test_wrong_arguments(graphs, name, settings, text):
    with pytest.raises(ValueError, match=text.replace(".", r"\.")):
        getattr(plait, name)(graphs[1], **settings)
    assert plait.bfs(graphs[1]).source == 0  # the next call is right


def test_unknown_arguments(graphs):
    with pytest.raises(TypeError, match="sourc"):
        plait.bfs(graphs[1], sourc=1)
    with pytest.raises(ValueError, match="no weights"):
        plait.sssp(torch.tensor([[0], [1]]))


def test_results_can_be_kept(graphs):
    found = plait.bfs(graphs[1])
    again = pickle.loads(pickle.dumps(found))
    assert again.distance.equal(found.distance) and again[2:] == found[2:]


def test_ranks():
    """Answers and refusals are checked on the ranks."""
    first, *others = map(json.loads, Ranks(3, HERE / "analytics_on_ranks.py").succeed())
    assert all(other == first for other in others)

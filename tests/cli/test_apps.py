"""Commands of analytics apps: answers against SciPy and networkx, the files that they write, and refusals."""

import os

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csgraph

from program import FAILED, RIGHT, USAGE, contents

SOURCE = 17


def shuffled(graph, seed):
    """Returns the graph with its vertices in another order."""
    order = np.random.default_rng(seed).permutation(len(graph)).tolist()
    return nx.relabel_nodes(graph, dict(enumerate(order)))


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Returns {name: (arguments, graph)} of a directed graph and of one both ways, each in several pieces."""
    folder, made = tmp_path_factory.mktemp("apps"), {}
    directed = nx.disjoint_union_all([nx.gnm_random_graph(160, 420, 1, directed=True),
                                      nx.path_graph(40, nx.DiGraph), nx.cycle_graph(9, nx.DiGraph),
                                      nx.empty_graph(6, nx.DiGraph)])
    both_ways = nx.disjoint_union_all([nx.gnm_random_graph(150, 300, 2), nx.star_graph(50), nx.path_graph(30)]).to_directed()
    for name, graph in (("directed", shuffled(directed, 3)), ("both ways", shuffled(both_ways, 4))):
        graph.add_edges_from([(5, 5), (SOURCE, SOURCE)])
        file = folder / f"{name.split()[0]}.el"
        file.write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
        made[name] = ([file, "--vertices", len(graph)], graph)
    return made


def matrix(graph):
    return nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), format="csr")


def paths(graph):
    """Returns distances and parents of all vertices, -1 for those that the source does not reach."""
    distance = csgraph.shortest_path(matrix(graph), unweighted=True, indices=SOURCE)
    depth = np.where(np.isinf(distance), -1, distance).astype(np.int64)
    parent = np.full(len(graph), -1)
    for v in np.flatnonzero(depth > 0):
        parent[v] = min(u for u in graph.predecessors(v) if depth[u] == depth[v] - 1)
    parent[SOURCE] = SOURCE
    return np.stack([depth, parent], axis=1)


def pieces(graph, connection="weak"):
    """Returns the least vertex of each vertex's component."""
    _, label = csgraph.connected_components(matrix(graph), directed=True, connection=connection)
    least = {c: v for v, c in reversed(list(enumerate(label)))}
    return np.array([least[c] for c in label])


def read(path, columns):
    """Returns what a file says of the vertices."""
    if path.suffix == ".npy":
        values = np.load(path)
        assert values.dtype == np.int64
        return values
    if path.suffix == ".csv":
        header, *lines = path.read_text().splitlines()
        assert header == ",".join(["vertex", *columns])
        rows = np.array([line.split(",") for line in lines], np.int64)
        np.testing.assert_array_equal(rows[:, 0], np.arange(len(rows)))
        rows = rows[:, 1:]
    else:
        assert path.read_text().endswith("\n")
        rows = np.array([line.split(" ") for line in path.read_text().splitlines()], np.int64)
    return rows[:, 0] if len(columns) == 1 else rows


WAYS = [("directed", ".npy", []), ("directed", ".csv", ["--ranks", 3, "--partition", "hash"]),
        ("directed", ".txt", ["--ranks", 2, "--reorder", "rcm"]),
        ("both ways", ".npy", ["--ranks", 3, "--partition", "metis", "--seed", 5, "--reorder", "degree"]),
        ("both ways", ".csv", ["--ranks", 2, "--partition", "vertices", "--repetitions", 3])]


@pytest.mark.parametrize("name,ending,options", WAYS)
def test_bfs(plait, tmp_path, graphs, name, ending, options):
    (arguments, graph), out = graphs[name], tmp_path / f"paths{ending}"
    found = plait.json("bfs", *arguments, "--source", SOURCE, "--verify", "-o", out, *options)
    expected = paths(graph)
    np.testing.assert_array_equal(read(out, ["distance", "parent"]), expected)
    assert found["source"] == SOURCE and found["reached"] == (expected[:, 0] >= 0).sum()
    assert found["depth"] == expected[:, 0].max()
    check_run(found, graph, out, options)


@pytest.mark.parametrize("name,ending,options", WAYS)
def test_components(plait, tmp_path, graphs, name, ending, options):
    (arguments, graph), out = graphs[name], tmp_path / f"pieces{ending}"
    found = plait.json("components", *arguments, "--verify", "-o", out, *options)
    expected = pieces(graph)
    np.testing.assert_array_equal(read(out, ["component"]), expected)
    sizes = np.unique(expected, return_counts=True)[1]
    assert found["components"] == len(sizes) == nx.number_weakly_connected_components(graph)
    assert found["largest"] == sizes.max()
    check_run(found, graph, out, options)


@pytest.mark.parametrize("name,ending,options", WAYS)
def test_strong_components(plait, tmp_path, graphs, name, ending, options):
    (arguments, graph), out = graphs[name], tmp_path / f"pieces{ending}"
    found = plait.json("components", *arguments, "--strong", "--verify", "-o", out, *options)
    expected = pieces(graph, "strong")
    np.testing.assert_array_equal(read(out, ["component"]), expected)
    sizes = np.unique(expected, return_counts=True)[1]
    assert found["components"] == len(sizes) == nx.number_strongly_connected_components(graph)
    assert found["largest"] == sizes.max()
    check_run(found, graph, out, options)


def odd_directed_graphs():
    """Yields directed graphs with components of many shapes: rings in rows, chains between them, and random ones."""
    order = np.random.default_rng(5).permutation(240).tolist()
    for step in (1, 2, 3, 5):  # rings of that size, one after the other
        rings = [list(range(k, k + step)) for k in range(0, 240 - step + 1, step)]
        edges = [(ring[i], ring[(i + 1) % step]) for ring in rings for i in range(step)]
        edges += [(one[-1], other[0]) for one, other in zip(rings, rings[1:])]
        yield edges
        yield [(order[u], order[v]) for u, v in edges]
    yield [(v, v + 1) for v in range(239)] + [(v + 1, v) for v in range(0, 238, 3)] + [(7, 7)] * 2
    yield [(0, v) for v in range(1, 240)] + [(v, 0) for v in range(2, 240, 2)]
    for seed, count in ((1, 200), (2, 260), (3, 320), (4, 500), (5, 900)):
        random = np.random.default_rng(seed)
        yield [(int(u), int(v)) for u, v in random.integers(0, 240, (count, 2))]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_strong_components_of_odd_graphs(plait, tmp_path, ranks):
    for number, edges in enumerate(odd_directed_graphs()):
        (tmp_path / "g.el").write_text("".join(f"{u} {v}\n" for u, v in edges))
        out = tmp_path / "pieces.npy"
        found = plait.json("components", tmp_path / "g.el", "--vertices", 240, "--strong", "--ranks", ranks, "--partition",
                           ("edges", "hash")[number % 2], "-o", out)
        graph = nx.DiGraph(edges)
        graph.add_nodes_from(range(240))
        expected = pieces(graph, "strong")
        np.testing.assert_array_equal(np.load(out), expected, err_msg=f"graph {number}")
        assert found["components"] == len(set(expected.tolist())), number


def test_long_ring_of_one_component(plait, tmp_path):
    """Bids that go round take no step of the host each."""
    size = 200000
    order = np.random.default_rng(1).permutation(size)
    (tmp_path / "ring.el").write_text("\n".join(f"{u} {v}" for u, v in zip(order.tolist(), np.roll(order, 1).tolist())))
    found = plait.json("components", tmp_path / "ring.el", "--strong", "--verify")
    assert (found["components"], found["largest"]) == (1, size)


def check_run(found, graph, out, options):
    assert found["vertices"] == len(graph) and found["edges"] == graph.number_of_edges()
    assert found["verified"] is True and found["out"] == str(out) and found["device"] == "cpu"
    assert found["ranks"] == (options[1] if "--ranks" in options else 1)
    assert found["partition"] == (options[options.index("--partition") + 1] if "--partition" in options else "edges")
    assert 0 < found["least_ms"] <= found["milliseconds"] <= found["most_ms"]


@pytest.fixture(scope="module")
def weighted(graphs, tmp_path_factory):
    """Returns the arguments of the directed graph with weights, some of them 0, and the graph."""
    arguments, graph = graphs["directed"]
    random = np.random.default_rng(7)
    graph = nx.DiGraph(graph)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = float(random.choice([0, 0.5, 1, 3, 20]))
    file = tmp_path_factory.mktemp("weighted") / "weighted.el"
    file.write_text("".join(f"{u} {v} {edge['weight']}\n" for u, v, edge in graph.edges(data=True)))
    return [file, *arguments[1:]], graph


NUMBER_WAYS = [[], ["--ranks", 3, "--partition", "hash", "--reorder", "rcm"]]


@pytest.mark.parametrize("options", NUMBER_WAYS)
def test_sssp(plait, tmp_path, weighted, options):
    (arguments, graph), out = weighted, tmp_path / "paths.npy"
    found = plait.json("sssp", *arguments, "--source", SOURCE, "--verify", "-o", out, *options)
    distance, parent = np.load(out).T
    expected = nx.single_source_dijkstra_path_length(graph, SOURCE)
    np.testing.assert_array_equal(distance, [expected.get(v, np.inf) for v in range(len(graph))])
    assert found["reached"] == len(expected) and found["farthest"] == max(expected.values())
    for v in expected:  # parents lead to the source
        for _ in range(len(graph)):
            v = int(parent[v])
        assert v == SOURCE
    check_run(found, graph, out, options)


@pytest.mark.parametrize("weight,names", [("-1", ["-1"]), ("nan", ["nan"]), ("inf", ["inf"])])
def test_weights_that_no_path_can_have(plait, tmp_path, weight, names):
    (tmp_path / "g.el").write_text(f"0 1 2\n1 2 {weight}\n")
    plait.fails(FAILED if weight != "-1" else USAGE, "sssp", tmp_path / "g.el", names=names)


def test_sssp_needs_weights(plait, graphs):
    plait.fails(USAGE, "sssp", *graphs["directed"][0], names=["no weights"])


@pytest.mark.parametrize("options", NUMBER_WAYS)
@pytest.mark.parametrize("name", ["directed", "both ways"])
def test_kcore(plait, tmp_path, graphs, name, options):
    (arguments, graph), out = graphs[name], tmp_path / "cores.csv"
    found = plait.json("kcore", *arguments, "--verify", "-o", out, *options)
    simple = nx.Graph(graph)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    cores = nx.core_number(simple)
    expected = np.array([cores[v] for v in range(len(graph))])
    np.testing.assert_array_equal(read(out, ["core"]), expected)
    assert found["max_core"] == expected.max() and found["max_core_size"] == (expected == expected.max()).sum()
    check_run(found, graph, out, options)


def corners(graph):
    """Returns the triangles of each vertex, of the graph without directions and loops: half of its paths of three
    edges that end where they begin."""
    simple = matrix(graph) != 0
    simple = (simple + simple.T).astype(np.int64)
    simple.setdiag(0)
    simple.eliminate_zeros()
    return ((simple @ simple) * simple).sum(axis=1) // 2


@pytest.mark.parametrize("options", NUMBER_WAYS)
@pytest.mark.parametrize("name", ["directed", "both ways", "dense", "cliques"])
def test_triangles(plait, tmp_path, graphs, name, options):
    out = tmp_path / "triangles.csv"
    if name in graphs:
        arguments, graph = graphs[name]
    else:
        graph = (nx.gnm_random_graph(80, 1500, 6, directed=True) if name == "dense" else
                 shuffled(nx.ring_of_cliques(5, 9), 7).to_directed())
        (tmp_path / "g.el").write_text("".join(f"{u} {v}\n" for u, v in graph.edges))
        arguments = [tmp_path / "g.el", "--vertices", len(graph)]
    found = plait.json("triangles", *arguments, "--verify", "-o", out, *options)
    simple = nx.Graph(graph)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    expected = corners(graph)
    assert expected.tolist() == [nx.triangles(simple)[v] for v in range(len(graph))]
    np.testing.assert_array_equal(read(out, ["per_vertex"]), expected)
    assert found["triangles"] == expected.sum() // 3 and found["most"] == expected.max()
    assert found["transitivity"] == pytest.approx(nx.transitivity(simple), rel=1e-12)
    check_run(found, graph, out, options)


def test_triangles_of_the_karate_club(plait, tmp_path):
    (tmp_path / "club.el").write_text("".join(f"{u} {v}\n" for u, v in nx.karate_club_graph().edges))
    for options in ([], ["--ranks", 3, "--partition", "hash"]):
        found = plait.json("triangles", tmp_path / "club.el", *options)
        assert (found["triangles"], found["most"]) == (45, 18)


@pytest.mark.parametrize("app", ["louvain", "leiden"])
@pytest.mark.parametrize("name, options", [("club", []), ("club", ["--ranks", 3, "--partition", "hash"]), ("ring", []),
                                           ("ring", ["--resolution", 30]), ("weighted", ["--weighted", "--ranks", 2])])
def test_communities(plait, tmp_path, app, name, options):
    """Known answers: the best modularity of the club (Brandes et al., 2008) and of rings of cliques."""
    graph = {"club": nx.karate_club_graph(), "ring": nx.ring_of_cliques(30, 5)}.get(name, nx.gnp_random_graph(60, 0.1, 3))
    for u, v in graph.edges:
        graph[u][v]["weight"] = (7 * u * v) % 11 / 4 if name == "weighted" else 1
    lines = [f"{u} {v} {w}\n{v} {u} {w}\n" for u, v, w in graph.edges(data="weight")]
    (tmp_path / "g.el").write_text("".join(line if name == "weighted" else line.replace(" 1\n", "\n") for line in lines))
    out = tmp_path / "communities.csv"
    found = plait.json(app, tmp_path / "g.el", "--vertices", len(graph), "--verify", "-o", out, *options)
    label = read(out, ["community"])
    members = [set(np.flatnonzero(label == least)) for least in np.unique(label)]
    assert found["communities"] == len(members) and found["largest"] == max(map(len, members))
    resolution = 30 if "--resolution" in options else 1
    expected = nx.community.modularity(graph, members, resolution=resolution)
    assert found["modularity"] == pytest.approx(expected, abs=1e-9)
    if name == "club":
        assert found["modularity"] == pytest.approx(0.4197896, abs=1e-7)
    if name == "ring":
        assert resolution == 30 or found["modularity"] >= 0.875757
        assert all(len({v // 5 for v in some}) * 5 == len(some) for some in members) or resolution == 30
    if app == "leiden":
        assert all(nx.is_connected(graph.subgraph(some)) for some in members)


@pytest.mark.parametrize("app", ["louvain", "leiden"])
@pytest.mark.parametrize("change, options", [("0 0 -0.0\n", ["--weighted"]), ("", ["--vertices", 100_000]),
                                             ("", ["--vertices", 100_000, "--ranks", 3]),
                                             ("0 1 3e38\n1 0 3e38\n", ["--weighted", "--resolution", 1e-3])])
def test_communities_with_what_must_not_matter(plait, tmp_path, app, change, options):
    """A loop of no weight, isolated vertices, and an edge that outweighs all others where chance hardly counts."""
    edges = "".join(f"{u} {v} 0.3\n{v} {u} 0.3\n" for u, v in nx.karate_club_graph().edges)
    (tmp_path / "g.el").write_text(edges + change)
    found = plait.json(app, tmp_path / "g.el", "--verify", *options)
    if "--resolution" in options:
        assert found["modularity"] > 0.99
    else:
        assert found["modularity"] == pytest.approx(0.4197896, abs=1e-7)


@pytest.mark.parametrize("resolution", [1e-9, 1e9])
def test_communities_of_extreme_resolutions(plait, graphs, resolution):
    for app in ("louvain", "leiden"):
        found = plait.json(app, *graphs["both ways"][0], "--resolution", resolution, "--verify", "--ranks", 2)
        assert found["verified"]


@pytest.mark.parametrize("app", ["louvain", "leiden"])
@pytest.mark.parametrize("options, name", [(["--resolution", 0], "resolution"), (["--resolution", -1], "resolution"),
                                           (["--resolution", "nan"], "resolution"), (["--weighted"], "weights")])
def test_communities_refuse(plait, graphs, app, options, name):
    plait.fails(USAGE, app, *graphs["directed"][0], *options, names=[name])


@pytest.mark.parametrize("options", NUMBER_WAYS)
@pytest.mark.parametrize("settings", [{}, {"source": SOURCE}, {"damping": 0.5}, {"weighted": True}])
def test_pagerank(plait, tmp_path, weighted, settings, options):
    (arguments, graph), out = weighted, tmp_path / "ranks.npy"
    given = [word for name, value in settings.items() for word in
             ([f"--{name}"] if value is True else [f"--{name}", value])]
    found = plait.json("pagerank", *arguments, *given, "--tolerance", 1e-10, "--iterations", 1000, "--verify", "-o", out,
                       *options)
    expected = nx.pagerank(graph, settings.get("damping", 0.85), tol=1e-13, max_iter=1000,
                           personalization={SOURCE: 1} if "source" in settings else None,
                           weight="weight" if "weighted" in settings else None)
    expected = np.array([expected[v] for v in range(len(graph))])
    assert np.abs(np.load(out) - expected).sum() < 1e-8
    assert found["top"] == expected.argmax() and found["change"] < 1e-10 and found["iterations"] > 5
    check_run(found, graph, out, options)


@pytest.mark.parametrize("option,value,name", [("--damping", 0, "damping"), ("--damping", 1, "damping"),
                                               ("--damping", 1.5, "--damping"), ("--source", 10**6, "source")])
def test_pagerank_of_numbers_out_of_range(plait, graphs, option, value, name):
    plait.fails(USAGE, "pagerank", *graphs["directed"][0], option, value, names=[name])


def test_text(plait, graphs):
    """The source is vertex 0 unless another is named; nothing is written or verified unasked."""
    arguments, graph = graphs["both ways"]
    text = plait.ok("bfs", *arguments).out
    assert "source 0, reached " in text and " ms\n" in text and "verified" not in text
    text = plait.ok("components", *arguments, "--verify", "--repetitions", 2).out
    count = nx.number_weakly_connected_components(graph)
    assert f": components {count}, largest " in text and "median of 2 runs" in text and "verified" in text


@pytest.mark.parametrize("options", [[], ["--ranks", 2]])
def test_a_source_that_does_not_exist(plait, graphs, options):
    arguments, graph = graphs["directed"]
    plait.fails(USAGE, "bfs", *arguments, "--source", len(graph), *options, names=[f"source {len(graph)} is not in 0..{len(graph) - 1}"])


@pytest.mark.parametrize("value", ["-1", "one", "1.5"])
def test_a_source_that_is_no_number(plait, graphs, value):
    plait.fails(USAGE, "bfs", *graphs["directed"][0], f"--source={value}", names=["--source"])


@pytest.mark.parametrize("command", ["bfs", "components"])
def test_output_that_cannot_be_written(plait, tmp_path, graphs, command):
    """The ending is checked before any work; a file that stood there stays as it was."""
    arguments, _ = graphs["directed"]
    plait.fails(USAGE, command, "missing.el", "-o", tmp_path / "out.json", names=[".npy, .csv or .txt"])
    plait.fails(FAILED, command, *arguments, "-o", tmp_path / "no folder/out.csv", names=["no folder"])
    if os.geteuid() != 0:
        old = tmp_path / "folder/old.npy"
        old.parent.mkdir()
        old.write_text("stays")
        old.parent.chmod(0o555)
        plait.fails(FAILED, command, *arguments, "-o", old, "--ranks", 2, names=["old.npy"])
        assert old.read_text() == "stays"


@pytest.mark.parametrize("command", ["bfs", "components"])
def test_a_graph_without_vertices(plait, tmp_path, command):
    """No file can hold one."""
    empty = tmp_path / "empty.mtx"
    empty.write_text("%%MatrixMarket matrix coordinate pattern general\n0 0 0\n")
    plait.fails(FAILED, command, empty, "-o", tmp_path / "out.csv", names=["the number of rows '0'"])


def test_a_graph_without_edges(plait, tmp_path):
    lonely = tmp_path / "lonely.mtx"
    lonely.write_text("%%MatrixMarket matrix coordinate pattern general\n5 5 0\n")
    found = plait.json("components", lonely, "--verify", "-o", tmp_path / "five.txt")
    assert (found["components"], found["largest"]) == (5, 1)
    assert (tmp_path / "five.txt").read_text() == "0\n1\n2\n3\n4\n"
    found = plait.json("bfs", lonely, "--source", 3, "--verify", "-o", tmp_path / "one.txt", "--ranks", 3)
    assert (found["reached"], found["depth"]) == (1, 0)
    assert (tmp_path / "one.txt").read_text() == "-1 -1\n-1 -1\n-1 -1\n0 3\n-1 -1\n"


@pytest.mark.parametrize("options", [["--transport", "nvshmem"], ["--gpu-timeout", 5], ["--seed", 3]])
def test_options_that_do_nothing_are_refused(plait, graphs, options):
    for command in ("bfs", "components"):
        plait.fails(USAGE, command, *graphs["directed"][0], "--ranks", 2, *options, names=[options[0], "does nothing"])


def test_the_same_file_by_any_way(plait, tmp_path, graphs):
    """Bytes do not depend on ranks and orders."""
    arguments, _ = graphs["directed"]
    for command in ("bfs", "components"):
        for number, options in enumerate([[], ["--ranks", 2, "--partition", "hash", "--reorder", "communities"]]):
            assert plait(command, *arguments, "-o", tmp_path / f"{command}{number}.npy", *options).code == RIGHT
        files = [digest for path, digest in contents(tmp_path).items() if path.name.startswith(command)]
        assert len(files) == 2 and files[0] == files[1]

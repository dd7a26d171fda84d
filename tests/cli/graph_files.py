"""Graph files of other programs, written and read slowly, word by word, from the descriptions of the
formats: the oracles of Plait's readers and writers. `write` takes Graphs; `read` returns the number
of vertices and the sorted (row, column, weight) of Graphs.edges()."""

import dataclasses
import struct
from collections.abc import Callable

import numpy as np

from random_graphs import Graphs


def edges_of(vertices, triples):
    """Makes edges from (source, target, weight)."""
    source, target, weight = zip(*triples) if triples else ((), (), ())
    integers = [np.array(ids, np.int64) for ids in (target, source)]
    return vertices, Graphs(vertices, *integers, np.array(weight, float), []).edges()


def triples_of(graphs):
    weight = np.ones(len(graphs.row)) if graphs.weight is None else graphs.weight
    return list(zip(graphs.column.tolist(), graphs.row.tolist(), weight.tolist()))


def by_vertex(graphs, end):
    """Returns, by vertex, the (other end, weight) of the edges of which it is the source or target."""
    lists = [[] for _ in range(graphs.vertices)]
    for source, target, weight in triples_of(graphs):
        mine, other = (source, target) if end == "source" else (target, source)
        lists[mine].append((other, weight))
    return [sorted(entries) for entries in lists]


def is_symmetric(graphs):
    return by_vertex(graphs, "source") == by_vertex(graphs, "target")


# --- METIS ---


def write_metis(path, graphs, vertex_numbers="", fmt=None):
    weighted = graphs.weight is not None
    header = f"{graphs.vertices} {len(graphs.row) // 2}"
    header += f" {fmt}" if fmt else " 1" if weighted else ""
    lines = ["% a comment", header]
    for i, entries in enumerate(by_vertex(graphs, "target")):
        words = [vertex_numbers] if vertex_numbers else []
        for j, weight in entries:
            words += [str(j + 1)] + ([str(int(weight))] if weighted else [])
        lines.append(" ".join(words))
        if i % 50 == 7:
            lines.append("% between lines")
    path.write_text("\n".join(lines) + "\n")


def read_metis(path):
    lines = [line for line in path.read_text().split("\n") if not line.startswith("%")]
    vertices, edges, *fmt = map(int, lines[0].split())
    triples = []
    for i in range(vertices):
        numbers = list(map(int, lines[1 + i].split()))
        pairs = zip(numbers[::2], numbers[1::2]) if fmt == [1] else ((j, 1) for j in numbers)
        triples += [(j - 1, i, weight) for j, weight in pairs]
    assert len(triples) == 2 * edges and "".join(lines[1 + vertices:]) == ""
    return edges_of(vertices, triples)


# --- the GAP benchmark suite ---


def write_el(path, graphs):
    path.write_text("".join(f"{u} {v}\n" for u, v, _ in triples_of(graphs)))


def write_wel(path, graphs):
    path.write_text("".join(f"{u}\t{v}  {w:g}\n" for u, v, w in triples_of(graphs)))


def read_el(path):
    lines = [line.split() for line in path.read_text().splitlines()]
    triples = [(int(u), int(v), float(w[0]) if w else 1) for u, v, *w in lines]
    return edges_of(1 + max(max(u, v) for u, v, _ in triples), triples)


def write_sg(path, graphs, weighted=False):
    directed = not is_symmetric(graphs)
    content = struct.pack("<?qq", directed, len(graphs.row), graphs.vertices)
    for end in ("source", "target") if directed else ("source",):
        lists = by_vertex(graphs, end)
        offsets = np.cumsum([0] + [len(entries) for entries in lists])
        content += struct.pack(f"<{len(offsets)}q", *offsets)
        for entries in lists:
            for other, weight in entries:
                content += struct.pack("<ii", other, int(weight)) if weighted else struct.pack(
                    "<i", other)
    path.write_bytes(content)


def write_wsg(path, graphs):
    write_sg(path, graphs, weighted=True)


def read_sg(path, weighted=False):
    content = path.read_bytes()
    directed, edges, vertices = struct.unpack_from("<?qq", content)
    place, halves = 17, []
    for end in ("source", "target") if directed else ("source",):
        offsets = struct.unpack_from(f"<{vertices + 1}q", content, place)
        place += 8 * (vertices + 1)
        triples = []
        for i in range(vertices):
            assert list(offsets)[i] <= offsets[i + 1]
            for _ in range(offsets[i], offsets[i + 1]):
                other, weight = (struct.unpack_from("<ii", content, place) if weighted else
                                 (*struct.unpack_from("<i", content, place), 1))
                place += 8 if weighted else 4
                triples.append((i, other, weight) if end == "source" else (other, i, weight))
        assert (offsets[0], offsets[-1], len(triples)) == (0, edges, edges)
        halves.append(edges_of(vertices, triples))
    assert place == len(content)
    np.testing.assert_array_equal(halves[0][1], halves[-1][1])
    return halves[0]


def read_wsg(path):
    return read_sg(path, weighted=True)


# --- DIMACS ---


def write_gr(path, graphs):
    lines = ["c a road network", "c", f"p sp {graphs.vertices} {len(graphs.row)}"]
    for edge, (u, v, w) in enumerate(triples_of(graphs)):
        lines.append(f"a {u + 1} {v + 1} {int(w)}")
        if edge % 100 == 9:
            lines.append("c on the way")
    path.write_text("\n".join(lines) + "\n")


def read_gr(path):
    lines = [line.split() for line in path.read_text().splitlines() if line[0] != "c"]
    assert lines[0][:2] == ["p", "sp"]
    vertices, arcs = map(int, lines[0][2:])
    assert len(lines) == 1 + arcs and all(line[0] == "a" for line in lines[1:])
    return edges_of(vertices, [(int(u) - 1, int(v) - 1, int(w)) for _, u, v, w in lines[1:]])


# --- Ligra ---


def write_adj(path, graphs):
    lists = by_vertex(graphs, "source")
    entries = [entry for row in lists for entry in row]
    words = ["AdjacencyGraph" if graphs.weight is None else "WeightedAdjacencyGraph",
             graphs.vertices, len(entries)]
    words += list(np.cumsum([0] + [len(row) for row in lists]))[:-1]
    words += [target for target, _ in entries]
    words += [int(w) for _, w in entries] if graphs.weight is not None else []
    path.write_text("\n".join(map(str, words)) + "\n")


def read_adj(path):
    kind, *numbers = path.read_text().split()
    vertices, edges, *numbers = map(int, numbers)
    offsets = numbers[:vertices] + [edges]
    targets = numbers[vertices:vertices + edges]
    weights = numbers[vertices + edges:] if kind.startswith("Weighted") else [1] * edges
    assert kind in ("AdjacencyGraph", "WeightedAdjacencyGraph")
    assert len(targets) == len(weights) == edges
    return edges_of(vertices, [(i, targets[e], weights[e]) for i in range(vertices)
                               for e in range(offsets[i], offsets[i + 1])])


# --- MGG and GNNAdvisor ---


def mgg_files(path):
    return [path.with_name(path.name.replace("beg_pos", part)) for part in ("csr", "weight")]


def write_mgg(path, graphs, offsets_as="<i8", ids_as="<i8"):
    lists = by_vertex(graphs, "target")
    entries = [entry for row in lists for entry in row]
    np.cumsum([0] + [len(row) for row in lists]).astype(offsets_as).tofile(path)
    csr, weight = mgg_files(path)
    np.array([j for j, _ in entries], ids_as).tofile(csr)
    if graphs.weight is not None:
        np.array([w for _, w in entries], "<i4").tofile(weight)


def read_mgg(path):
    offsets = np.fromfile(path, "<i8")
    csr, weight = (np.fromfile(p, t) for p, t in zip(mgg_files(path), ("<i8", "<i4")))
    assert len(csr) == len(weight) == offsets[-1]
    rows = len(offsets) - 1
    return edges_of(rows, [(csr[e], i, weight[e]) for i in range(rows)
                           for e in range(offsets[i], offsets[i + 1])])


def write_gnnadvisor(path, graphs):
    np.savez(path, src_li=graphs.column, dst_li=graphs.row, num_nodes=graphs.vertices)


def read_gnnadvisor(path):
    with np.load(path, allow_pickle=False) as file:
        source, target = file["src_li"].tolist(), file["dst_li"].tolist()
        return edges_of(int(file["num_nodes"]), list(zip(source, target, [1] * len(source))))


@dataclasses.dataclass
class Format:
    ending: str
    write: Callable
    read: Callable
    weights: tuple = (None, "integer")  # kinds that it can hold, as random_graphs() names them
    directed: bool = True               # and loops
    isolated: bool = True               # keeps vertices after the last edge


FORMATS = {f.ending: f for f in [
    Format(".el", write_el, read_el, weights=(None,), isolated=False),
    Format(".wel", write_wel, read_el, weights=("integer",), isolated=False),
    Format(".sg", write_sg, read_sg, weights=(None,)),
    Format(".wsg", write_wsg, read_wsg, weights=("integer",)),
    Format(".graph", write_metis, read_metis, directed=False),
    Format(".gr", write_gr, read_gr, weights=("integer",)),
    Format(".adj", write_adj, read_adj),
    Format("_beg_pos.bin", write_mgg, read_mgg),
    Format(".gnna.npz", write_gnnadvisor, read_gnnadvisor, weights=(None,)),
]}

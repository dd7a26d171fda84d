"""Random graphs for differential tests, many in one file: blocks of a block-diagonal matrix, each
a graph of its own, with the results of SciPy on them."""

import dataclasses

import numpy as np
import scipy.io
import scipy.sparse


@dataclasses.dataclass
class Graphs:
    """Entry (row, column) of the matrix, once for each parallel edge: `row` aggregates from
    `column`. `blocks` lists the vertices of each graph."""

    vertices: int
    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray | None
    blocks: list

    def matrix(self, op, transposed=False, absolute=False):
        """Returns the matrix that `op` multiplies by, in double precision; with `absolute`, each
        edge's absolute value, for bounds of the error."""
        value = np.ones(len(self.row))
        if op == "weighted" and self.weight is not None:
            value = np.abs(self.weight) if absolute else self.weight
        shape = (self.vertices, self.vertices)
        matrix = scipy.sparse.csr_array((value.astype(np.float64), (self.row, self.column)),
                                        shape=shape)
        if op == "mean":
            degree = np.bincount(self.row, minlength=self.vertices)
            matrix = scipy.sparse.diags_array(1 / np.maximum(degree, 1)) @ matrix
        return matrix.T.tocsr() if transposed else matrix

    def edges(self):
        """Sorted (row, column, weight), to compare graphs by."""
        weight = np.ones(len(self.row)) if self.weight is None else self.weight
        order = np.lexsort((weight, self.column, self.row))
        return np.stack([self.row, self.column, weight]).astype(np.float64)[:, order]


def random_edges(rng, vertices):
    """Returns rows and columns of one directed graph: uniform, a hub, complete or without edges;
    with loops and duplicates."""
    if vertices <= 20 and rng.random() < 0.2:
        return tuple(np.indices((vertices, vertices)).reshape(2, -1))
    count = int(vertices * rng.choice([0, 0.5, 2, 8]))
    row, column = rng.integers(vertices, size=(2, count))
    shape = rng.random()
    if shape < 0.15:
        row[:] = rng.integers(vertices)  # one vertex reads all
    elif shape < 0.3:
        column[:] = rng.integers(vertices)  # one vertex is read by all
    loops = rng.integers(vertices, size=vertices // 10 + 1 if rng.random() < 0.5 else 0)
    again = slice(0, count // 5)
    return tuple(np.concatenate([ids, ids[again], loops]) for ids in (row, column))


def random_size(rng):
    low, high = [(1, 4), (5, 60), (60, 500)][rng.choice(3, p=[0.25, 0.45, 0.3])]
    return int(rng.integers(low, high + 1))


def random_graphs(seed, count, weights=None, shuffled=False):
    """`weights`: None, "integer" or "float". Shuffled ids spread every graph over all ranks, also
    where a rank owns a range of them."""
    rng = np.random.default_rng(seed)
    sizes = [random_size(rng) for _ in range(count)]
    vertices = sum(sizes)
    name = rng.permutation(vertices) if shuffled else np.arange(vertices)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    blocks = [name[a:b] for a, b in zip(starts[:-1], starts[1:])]
    rows, columns = zip(*(random_edges(rng, size) for size in sizes))
    row = np.concatenate([block[r] for block, r in zip(blocks, rows)])
    column = np.concatenate([block[c] for block, c in zip(blocks, columns)])
    order = rng.permutation(len(row))
    weight = {None: None,
              "integer": rng.integers(-3, 4, len(row)).astype(np.float32),
              "float": rng.standard_normal(len(row)).astype(np.float32)}[weights]
    return Graphs(vertices, row[order], column[order], weight, blocks)


# --- files ---


def write_matrix_market(path, graphs):
    value = np.ones(len(graphs.row)) if graphs.weight is None else graphs.weight
    matrix = scipy.sparse.coo_array((value, (graphs.row, graphs.column)),
                                    shape=(graphs.vertices, graphs.vertices))
    scipy.io.mmwrite(path, matrix, field="pattern" if graphs.weight is None else "real",
                     symmetry="general")


def write_scipy(path, graphs):
    """Keeps parallel edges apart, which SciPy's own conversions would add up."""
    order = np.argsort(graphs.row, kind="stable")
    weight = np.ones(len(order), np.float32) if graphs.weight is None else graphs.weight
    offsets = np.concatenate([[0], np.cumsum(np.bincount(graphs.row, minlength=graphs.vertices))])
    matrix = scipy.sparse.csr_matrix((graphs.vertices, graphs.vertices), dtype=np.float32)
    matrix.indptr, matrix.indices = offsets, graphs.column[order]
    matrix.data = weight[order]
    scipy.sparse.save_npz(path, matrix)


def write_edge_list(path, graphs, separator="\t", line_end="\n"):
    """Writes large ids, and comments in between. Vertices without edges are not in such a file."""
    lines = ["# source, target", "% and a comment of the other kind"]
    for edge in range(len(graphs.row)):
        fields = [str(5 * 2**60 + 977 * int(i)) for i in (graphs.column[edge], graphs.row[edge])]
        if graphs.weight is not None:
            fields.append(repr(float(graphs.weight[edge])))
        lines.append(separator.join(fields))
        if edge % 1000 == 0:
            lines.append("# on the way")
    path.write_bytes(line_end.join(lines + [""]).encode())


def without_isolated(graphs):
    """Returns the graphs as an edge list has them: only vertices with edges, in the same order."""
    used = np.unique(np.concatenate([graphs.row, graphs.column]))
    number = np.full(graphs.vertices, -1)
    number[used] = np.arange(len(used))
    blocks = [number[block][number[block] >= 0] for block in graphs.blocks]
    return dataclasses.replace(graphs, vertices=len(used), row=number[graphs.row],
                               column=number[graphs.column], blocks=blocks)

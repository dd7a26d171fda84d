"""Graphs whose edges and vertices have weights and times, as files, for training on samples by these values."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class ValuedGraph:
    """Edges come in the order of a .plait file: by target, then by source. All are different."""

    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    others: np.ndarray  # validation and test
    vertex_times: np.ndarray
    edge_times: np.ndarray

    def save(self, folder, name="g", edges=None, x=None, weight=None):
        """Writes the graph, or some of its edges, with other features or weights if they are given."""
        keep = slice(None) if edges is None else edges
        path = folder / f"{name}.npz"
        np.savez(path, edge_index=np.stack([self.source[keep], self.target[keep]]), x=self.x if x is None else x, y=self.y,
                 edge_weight=(self.weight if weight is None else weight)[keep], train=self.train,
                 val=self.others[: len(self.others) // 2], test=self.others[len(self.others) // 2:])
        return path

    def save_times(self, folder):
        """Returns the files of the times of vertices and edges."""
        paths = folder / "vertices.npy", folder / "edges.npy"
        for path, times in zip(paths, (self.vertex_times, self.edge_times), strict=True):
            np.save(path, times)
        return paths

    def later(self):
        """Returns which edges are later than their target, by themselves or by their source."""
        return np.maximum(self.edge_times, self.vertex_times[self.source]) > self.vertex_times[self.target]


def valued_graph(vertices=200, edges=3000, seed=5):
    rng = np.random.default_rng(seed)
    pairs = np.unique(rng.integers(0, vertices, (edges, 2)), axis=0)  # by target, then by source
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    target, source = pairs.T
    order = rng.permutation(vertices)
    weight = rng.uniform(0.5, 2, len(pairs)).astype(np.float32)
    return ValuedGraph(source, target, weight, rng.standard_normal((vertices, 12), dtype=np.float32),
                       rng.integers(0, 4, vertices), order[:80], order[80:], rng.integers(-50, 50, vertices),
                       rng.integers(-50, 50, len(pairs)))

"""Graphs for the tasks beyond one label per vertex, as archives, with planted labels."""

import numpy as np

from random_graphs import random_edges


def parts_of(rng, count):
    """Returns a split: half of the examples train, a quarter each validate and test."""
    order = rng.permutation(count)
    parts = np.split(order, [count // 2, count * 3 // 4])
    return dict(zip(("train", "val", "test"), map(np.sort, parts)))


def label_sets_archive(path, vertices=500, seed=6):
    """Makes several labels per vertex, or none: each class is a direction in which the
    features of a vertex and of its neighbours point together."""
    rng = np.random.default_rng(seed)
    row, column = random_edges(rng, vertices)
    more = rng.integers(vertices, size=(2, 4 * vertices))
    row, column = np.concatenate([row, more[0]]), np.concatenate([column, more[1]])
    x = rng.standard_normal((vertices, 12), dtype=np.float32)
    near = x.copy()
    np.add.at(near, row, x[column])
    y = (near @ rng.standard_normal((12, 5)) > np.linspace(-1, 6, 5)).astype(np.uint8)
    np.savez(path, edge_index=np.stack([column, row]), x=x, y=y, **parts_of(rng, vertices))


def two_classes_archive(path, vertices=400, seed=9):
    """One vertex in five is of class 1, and its neighbours show it more than it does itself; one
    in ten has no label. Features have few values, so that some scores are tied."""
    rng = np.random.default_rng(seed)
    y = (rng.random(vertices) < 0.2).astype(np.int64)
    row = rng.integers(vertices, size=3 * vertices)
    column = rng.integers(vertices, size=3 * vertices)
    shown = np.zeros(vertices)
    np.add.at(shown, column, y[row])
    x = np.stack([shown > 0, rng.random(vertices) < 0.3], axis=1).astype(np.float32)
    y[rng.random(vertices) < 0.1] = -1
    np.savez(path, edge_index=np.stack([column, row]), x=x, y=y, **parts_of(rng, vertices))


def random_tree(rng, size):
    """Each vertex after the first hangs on one before it."""
    child = np.arange(1, size)
    return child, (rng.random(size - 1) * child).astype(np.int64)


def graphs_archive(path, graphs=90, seed=2):
    """Rings (class 1) and trees of the same sizes (class 0), of which ids are shuffled so that
    graphs are cut between ranks; a graph of one vertex; one in ten has no label. The features, two
    kinds of vertices, tell nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, graphs)
    sizes = np.where(np.arange(graphs) == 7, 1, rng.integers(5, 12, graphs))
    y[7] = 0
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows, columns = [], []
    for graph, size in enumerate(sizes):
        ids = np.arange(size)
        u, v = (ids, (ids + 1) % size) if y[graph] else random_tree(rng, size)
        rows += [u + starts[graph], v + starts[graph]]
        columns += [v + starts[graph], u + starts[graph]]
    name = rng.permutation(starts[-1])
    graph_id = np.empty(starts[-1], np.int64)
    graph_id[name] = np.repeat(np.arange(graphs), sizes)
    edges = np.stack([name[np.concatenate(columns)], name[np.concatenate(rows)]])
    kind = rng.integers(0, 2, starts[-1])
    y[rng.random(graphs) < 0.1] = -1
    np.savez(path, edge_index=edges, graph_id=graph_id, y=y,
             x=np.eye(2, 3, dtype=np.float32)[kind], **parts_of(rng, graphs))


MAKERS = {"sets": label_sets_archive, "two": two_classes_archive, "graphs": graphs_archive}


# --- metrics, by their definitions ---


def slow_auc(scores, labels):
    """Returns the share of pairs of a positive and a negative in which the positive scores higher, ties
    counting half."""
    margin = scores[:, 1].astype(np.float64) - scores[:, 0]
    difference = margin[labels == 1][:, None] - margin[labels == 0][None, :]
    return (np.sign(difference) + 1).mean() / 2


def slow_micro_f1(scores, labels):
    """Computes F1 from precision and recall over all pairs of vertex and class."""
    said, true = 1 / (1 + np.exp(-scores.astype(np.float64))) > 0.5, labels == 1
    precision, recall = (said & true).sum() / said.sum(), (said & true).sum() / true.sum()
    return 2 * precision * recall / (precision + recall)


def slow_accuracy(scores, labels):
    return (scores.argmax(axis=1) == labels).mean()


SLOW = {"accuracy": slow_accuracy, "roc-auc": slow_auc, "micro-f1": slow_micro_f1}

"""Functions that several tests of training share."""

import json

import numpy as np
import safetensors
import scipy.sparse

from random_graphs import random_graphs

SCHEMES = ("edges", "vertices", "clusters", "hash", "metis")
STRATEGIES = ("replicate", "bulk", "get")
EPOCH_FIELDS = ("epoch", "loss", "validation_loss", "train_accuracy", "validation_accuracy",
                "test_accuracy", "milliseconds")


def check_same_curve(found, wanted):
    """Compares curves to 1e-4, relative."""
    assert len(found) == len(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=0)


def metadata_of(checkpoint):
    with safetensors.safe_open(str(checkpoint), "numpy") as file:
        return file.metadata()


def history_of(checkpoint):
    """Returns the epochs that a checkpoint records, as dictionaries."""
    return [dict(zip(EPOCH_FIELDS, epoch, strict=True))
            for epoch in json.loads(metadata_of(checkpoint)["history"])]


def directed_archive(path, vertices, seed=8):
    """Makes a weighted directed graph with loops and duplicates, isolated vertices and sparse features,
    some of them empty; classes that the graph tells something of."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, vertices)
    source = rng.integers(0, vertices * 9 // 10, 6 * vertices)
    target = rng.permutation(source)
    target = np.where(rng.random(len(source)) < 0.1, source, target)
    edges = np.stack([source, target])
    edges = np.concatenate([edges, edges[:, :vertices]], axis=1)
    x = scipy.sparse.random_array((vertices, 40), density=0.1, rng=rng, dtype=np.float32).tocsr()
    order = rng.permutation(vertices)
    np.savez(path, edge_index=edges, edge_weight=rng.random(edges.shape[1]).astype(np.float32),
             x_data=x.data, x_indices=x.indices, x_indptr=x.indptr, x_shape=np.array(x.shape), y=y,
             train=order[:vertices // 2], val=order[vertices // 2:vertices * 3 // 4],
             test=order[vertices * 3 // 4:])


def random_archive(path):
    """Makes twelve random graphs with dense features, of which some classes are known."""
    graphs = random_graphs(seed=3, count=12, shuffled=True)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((graphs.vertices, 20), dtype=np.float32)
    order = rng.permutation(graphs.vertices)
    parts = np.split(order, [graphs.vertices // 2, graphs.vertices * 3 // 4])
    np.savez(path, edge_index=np.stack([graphs.column, graphs.row]), x=x,
             y=(x @ rng.standard_normal((20, 5))).argmax(axis=1),
             **dict(zip(("train", "val", "test"), parts)))


def make_archives(folder):
    """Makes a graph with dense and one with sparse features. Returns their paths, by these words."""
    paths = {name: folder / f"{name}.npz" for name in ("dense", "sparse")}
    random_archive(paths["dense"])
    directed_archive(paths["sparse"], vertices=200)
    return paths

"""Random graphs as tensors, and comparisons in single precision."""

import dataclasses

import numpy as np
import scipy.sparse
import torch


@dataclasses.dataclass
class Edges:
    """num_nodes can be past every id: the last nodes are then isolated."""

    index: torch.Tensor
    weight: torch.Tensor | None
    num_nodes: int

    def matrix(self, op="weighted"):
        """Returns the SciPy matrix A of y = A x, in double precision."""
        weight = np.ones(self.index.size(1))
        if op == "weighted" and self.weight is not None:
            weight = self.weight.double().numpy()
        source, target = self.index.long().numpy()
        shape = (self.num_nodes, self.num_nodes)
        a = scipy.sparse.coo_matrix((weight, (target, source)), shape=shape).tocsr()
        if op == "mean":
            counts = np.bincount(target, minlength=self.num_nodes)
            a = scipy.sparse.diags(1 / np.maximum(counts, 1)) @ a
        return a


def random_edges(seed, weighted=False, symmetric=False):
    """Loops and duplicates come up. The sizes go from nothing to some hundred edges."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 60))
    used = int(random.integers(1, nodes + 1))
    index = random.integers(0, used, (2, int(random.integers(0, 6 * nodes))))
    loops = np.repeat(random.integers(0, used, (1, int(random.integers(0, 4)))), 2, axis=0)
    index = np.concatenate([index, loops, index[:, : index.shape[1] // 4]], axis=1)
    weight = random.uniform(0.1, 2, index.shape[1]).astype(np.float32)
    if symmetric:
        index = np.concatenate([index, index[::-1]], axis=1)
        weight = np.concatenate([weight, weight])
    return Edges(torch.from_numpy(index), torch.from_numpy(weight) if weighted else None, nodes)


def extreme_by_scatter(graph, x, op):
    """Returns the greatest ("max") or least rows of x at the sources of edges, by PyTorch. At values of 0 it withholds
    a share of the gradient."""
    source, target = graph.edge_index
    index = target.view(-1, 1).expand(-1, x.size(1))
    return torch.zeros_like(x).scatter_reduce(0, index, x[source], f"a{op}", include_self=False)


def assert_close(found, wanted, tolerance=1e-5):
    """Compares relative to the largest element, and by norm."""
    found, wanted = (torch.as_tensor(t).detach().double() for t in (found, wanted))
    assert found.shape == wanted.shape
    difference = found - wanted
    if difference.numel() == 0:
        return
    assert not found.isnan().any()
    assert difference.abs().max() <= tolerance * wanted.abs().max()
    assert difference.norm() <= tolerance * wanted.norm()

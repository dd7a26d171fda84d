"""Graphs, from tensors or from files."""

import operator
import os

import torch

from plait._adjacency import adjacency
from plait._inputs import as_edges, fields_of
from plait._library import ops


def _lasting(tensor):
    """The tensor, or where it was made in inference mode a copy that tells when it is changed."""
    if tensor is None or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        return tensor.clone()


class Graph:
    """A graph on `num_nodes` nodes.

    Args:
        edge_index: (2, E), integers, on the CPU. Column e is a message from edge_index[0, e] to
            edge_index[1, e], as in PyTorch Geometric. Loops and duplicates count.
            Or what has edges: an EdgeIndex or a Data of PyTorch Geometric, whose x, y and masks
            become those of the graph; a square sparse matrix A of SciPy or PyTorch, of which entry
            (i, j) is an edge from j to i, so that "weighted" aggregation is A x; an array with
            __dlpack__, such as NumPy's.
        num_nodes: N; ids are 0 .. N - 1. None: what edge_index says, or the largest id + 1.
        edge_weight: (E,), float32, finite; None: those of edge_index, or every edge weighs 1. A
            matrix' entries are weights, converted to float32, unless they are bool.

    Tensors of edges are referred to, not copied. The form in which the C++ operations read the
    graph is made at the first use, once with and once without the loops that layers add; it takes
    about 4 bytes an edge, 8 with weights, twice that if the graph is not symmetric, and 16 a node.
    It is made anew after the tensors were changed in place.

    Raises:
        ValueError: an id out of range, a wrong shape or type, a weight that is not finite; the
            text names the edge, the value and the allowed range.

    Attributes:
        edge_index, edge_weight: the edges as tensors.
        x, y, train_mask, val_mask, test_mask, original_ids: see `load`; None where there is none.
    """

    _FIELDS = ("x", "y", "train_mask", "val_mask", "test_mask", "original_ids")

    def __init__(self, edge_index, num_nodes=None, edge_weight=None):
        edges = as_edges(edge_index, edge_weight)
        self.edge_index = _lasting(edges.index)
        self.edge_weight = _lasting(edges.weight)
        if num_nodes is None:
            num_nodes = count_nodes(edges.index) if edges.num_nodes is None else edges.num_nodes
        self._num_nodes = operator.index(num_nodes)
        ops.check_edges(edges.index, self._num_nodes, edges.weight)
        fields = fields_of(edge_index, self._FIELDS)
        for name in self._FIELDS:
            setattr(self, name, fields.get(name))

    @classmethod
    def load(cls, path):
        """Reads a graph file: .plait, .mtx, .npz, .npy, an edge list (.txt, .csv, ...), or one of
        the other formats of docs/formats.md.

        The attributes that the file has are set:
            x: (N, width), float32, dense, whatever its form in the file.
            y: (N,), int64, -1 where unknown.
            train_mask, val_mask, test_mask: (N,), bool; (K, N) where there are K > 1 splits.
            original_ids: (N,), int64: what the file called each node.

        Raises ValueError if the content is wrong, naming the file and the place in it, and
        RuntimeError if the file cannot be read or does not fit in memory.
        """
        fields = ops.read_dataset(os.fspath(path))
        graph = cls(fields["edge_index"], int(fields["num_nodes"]), fields.get("edge_weight"))
        for name in cls._FIELDS:
            setattr(graph, name, fields.get(name))
        return graph

    @property
    def num_nodes(self):
        return self._num_nodes

    @property
    def num_edges(self):
        return self.edge_index.size(1)

    @property
    def is_weighted(self):
        return self.edge_weight is not None

    def adjacency(self, loop_weight=None):
        """What the C++ operations work on; see plait._adjacency."""
        return adjacency(self.edge_index, self.edge_weight, self.num_nodes, loop_weight)

    def __repr__(self):
        weighted = ", weighted" if self.is_weighted else ""
        return f"Graph({self.num_nodes} nodes, {self.num_edges} edges{weighted})"


def count_nodes(edge_index):
    """The largest id + 1, 0 without edges. Leaves it to check_edges to say what is wrong."""
    integers = edge_index.layout == torch.strided and not edge_index.dtype.is_floating_point
    if not integers or edge_index.is_complex() or edge_index.numel() == 0:
        return 0
    return max(0, int(edge_index.max()) + 1)

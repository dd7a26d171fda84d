"""A graph file, of which features stay where they are."""

import functools
import os

import torch

from plait._library import ops  # noqa: F401 (registers torch.classes.plait)

_OF_EDGES = ("edge_weight",)
_MASKS = ("train_mask", "val_mask", "test_mask")


class GraphFile:
    """Opened for reading, by a FeatureStore and a GraphStore together. Copies are the same object; a pickle has
    the path alone, and opens the file anew."""

    def __init__(self, path):
        self._path = os.fspath(path)
        self._file = torch.classes.plait.GraphFile(self._path)
        self.num_nodes, self.num_edges, self.width = self._file.sizes()
        small = self._file.small_tensors()
        small.pop("num_nodes")
        self.of_edges = {name: small.pop(name) for name in _OF_EDGES if name in small}
        # One row for each node, as in PyTorch Geometric.
        self.of_nodes = {name: t.t().contiguous() if name in _MASKS and t.dim() == 2 else t
                         for name, t in small.items()}

    def gather(self, ids):
        """Returns rows of x. The ids have been checked."""
        return self._file.gather(ids)

    @functools.cached_property
    def csc(self):
        """The edges by target: (row, colptr)."""
        return self._file.edges()

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return GraphFile, (os.path.abspath(self._path),)

"""A graph file whose features stay where they are."""

import functools
import os
import typing
import weakref

import torch

from plait._files import file_errors, warn_of_file
from plait._library import ops  # noqa: F401 (registers torch.classes.plait)

_OF_EDGES = ("edge_weight",)
_MASKS = ("train_mask", "val_mask", "test_mask")


class GraphFile:
    """Opened for reading, by a FeatureStore and a GraphStore together. Copies are the same object. A pickle has
    the absolute path and the options alone, and opens the file anew, if it has neither been replaced nor changed since.

    `options`: of reading_options().

    Raises ValueError, besides the errors of reading, for a file that changes while it is opened, or whose version
    is not `version`.
    """

    def __init__(self, path, options, version=None):
        self._path, self._options = os.path.abspath(path), options
        self._opened = _identity_of(self._path)
        with file_errors(path):
            self._file = torch.classes.plait.GraphFile(os.fspath(path), *options)
        if version is None:  # the first opening of all
            warn_of_file(self._file.warnings(), stacklevel=4)
        # Files of other formats have been read. Other names, or none, may now lead to what is mapped.
        self._mapped = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC) if self._path.endswith(".plait") else None
        if self._mapped is not None:
            weakref.finalize(self, os.close, self._mapped)
        if _identity_of(self._path) != self._opened or version not in (None, self._opened.version):
            raise ValueError(f"{path} was replaced or changed since it was opened first; load the store anew")
        self.num_nodes, self.num_edges, self.width = self._file.sizes()
        small = self._file.small_tensors()
        small.pop("num_nodes")
        self.of_edges = {name: small.pop(name) for name in _OF_EDGES if name in small}
        # One row for each node, as in PyTorch Geometric.
        self.of_nodes = {name: t.t().contiguous() if name in _MASKS and t.dim() == 2 else t
                         for name, t in small.items()}

    def gather(self, ids):
        """Returns rows of x. The ids have been checked. Raises ValueError if the file was changed in place."""
        self._check_unchanged()
        return self._file.gather(ids)

    @functools.cached_property
    def csc(self):
        """The edges by target: (row, colptr). Raises as gather()."""
        self._check_unchanged()
        return self._file.edges()

    def _check_unchanged(self):
        """A file that is replaced by another of its name stays mapped; one that is written to does not stay as it was,
        and one that is shortened ends the process that reads it."""
        if self._mapped is not None and _identity_of(self._mapped) != self._opened:
            raise ValueError(f"{self._path} was changed while it is open; write another file and rename it, and load the "
                             "store anew")

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return GraphFile, (self._path, self._options, self._opened.version)


class _Identity(typing.NamedTuple):
    inode: tuple
    version: tuple  # bytes, and the time of the last change in ns


def _identity_of(path):
    """Returns what tells a file, by its path or descriptor, from others; None if there is none, which reading
    reports."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return _Identity((found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))

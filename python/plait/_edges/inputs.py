"""Converts the accepted forms of edges and features to tensors.

SciPy, networkx and PyTorch Geometric are not imported: if a value belongs to one of them, its module has been
imported already.
"""

import contextlib
import dataclasses
import numbers
import operator
import sys

import torch

from plait._theirs import is_theirs

_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


class UnsupportedType(TypeError, NotImplementedError):
    """A type that is not accepted, although another type of the same kind is."""


@dataclasses.dataclass(frozen=True)
class Edges:
    """Edges as tensors. num_nodes is None if the source does not say it."""

    index: torch.Tensor
    weight: torch.Tensor | None = None
    num_nodes: int | None = None

    def without_ones(self):
        """Returns the same edges without weights if all weights are 1, as those of adj_t are where edges have none."""
        if self.weight is None or not bool(self.weight.eq(1).all()):
            return self
        return Edges(self.index, None, self.num_nodes)


def whole_number(name, value, most=2**63 - 1):
    """Returns a whole number as an int. Raises TypeError for another type, also for a bool, and ValueError beyond
    64 bits."""
    try:
        number = operator.index(None if isinstance(value, bool) else value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, not a whole number") from None
    if not -(2**63) <= number <= most:
        raise ValueError(f"{name} is {number}, which is beyond 64 bits")
    return number


def plain_number(value):
    """Returns a number of NumPy, or a tensor of one number, as a number of Python; other values as they are."""
    if callable(getattr(value, "item", None)):
        with contextlib.suppress(RuntimeError, ValueError):  # of several numbers
            return value.item()
    return value


def real_number(name, value):
    """Returns a number as a float. Raises TypeError for another type, also for a bool, and ValueError for a whole
    number that no float is near. Numbers of NumPy, and tensors of one number, are numbers."""
    value = plain_number(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a number") from None


def word(name, value):
    """Returns a text. Raises TypeError for another type."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a text")
    return value


def as_tensor(name, value, remedy):
    """Converts a tensor or an object with __dlpack__ to a tensor; on the CPU it copies no data, except
    that of an array that runs backwards."""
    if isinstance(value, torch.Tensor):
        return value.as_tensor() if is_theirs(value, "EdgeIndex") else value
    if not hasattr(value, "__dlpack__"):
        raise UnsupportedType(f"{name} is a {type(value).__name__}, not a tensor; {remedy}")
    if any(stride < 0 for stride in getattr(value, "strides", None) or ()):
        value = value.copy()  # PyTorch ends the process
    try:
        return torch.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{name} is a {type(value).__name__} that PyTorch cannot take: {reason}; give a plain "
            "writable array of numbers, as by numpy.array(...)"
        ) from None


def as_edges(source, weight=None):
    """Returns the edges of `source`: a plait.Graph, a (2, E) tensor or array, an EdgeIndex or Data
    of PyTorch Geometric, a networkx graph, or a sparse adjacency matrix of SciPy or PyTorch, whose
    entry (i, j) is an edge from j to i. `weight`: weights for sources that have none of their own."""
    taken = _edges_with_own_weights(source)
    if taken is not None:
        if weight is not None:
            raise ValueError(
                f"edge_weight was given beside a {_full_name(source)}, which has its own; leave "
                "it out"
            )
        return taken
    index = as_tensor("edge_index", source, "give a 2 x E tensor of integers, a Data, a "
                      "sparse matrix, a networkx graph or a plait.Graph")
    if index.dtype in _UNSIGNED:
        index = index.long()  # PyTorch has no maximum of unsigned types
    if weight is not None:
        weight = as_tensor("edge_weight", weight, "give E float32 numbers, or None")
    return Edges(index, weight, _nodes_of_edge_index(source) if is_theirs(source, "EdgeIndex") else None)


def fields_of(source, names):
    """Returns the named attributes of a Data or a plait.Graph, by name; masks of K splits have the
    shape (K, N)."""
    if isinstance(source, torch.Tensor) or not hasattr(source, "edge_index"):
        return {}
    fields = {name: getattr(source, name, None) for name in names}
    if is_theirs(source, "Data"):
        for name, field in fields.items():
            if name.endswith("_mask") and field is not None and field.dim() == 2:
                fields[name] = field.t()
    return fields


def _full_name(value):
    kind = type(value)
    return f"plait.{kind.__name__}" if kind.__module__.startswith("plait.") else kind.__name__


def _edges_with_own_weights(source):
    if isinstance(source, torch.Tensor):
        return None if source.layout == torch.strided else _edges_of_sparse_tensor(source)
    if is_torch_sparse(source):
        return _edges_of_torch_sparse(source)
    if is_theirs(source, "HeteroData"):
        raise UnsupportedType(
            "edge_index is a HeteroData, but only one kind of nodes and edges is supported; give "
            "data.to_homogeneous()"
        )
    if is_theirs(source, "Data"):
        return _edges_of_data(source)
    if hasattr(source, "edge_index") and hasattr(source, "num_nodes"):  # a plait.Graph
        return Edges(source.edge_index, source.edge_weight, source.num_nodes)
    scipy_sparse = sys.modules.get("scipy.sparse")
    if scipy_sparse is not None and scipy_sparse.issparse(source):
        return _edges_of_scipy(source)
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(source, networkx.Graph):
        return _edges_of_networkx(source)
    return None


def _edges_of_networkx(graph):
    """Nodes are numbered in their order in the graph. Edges lead both ways in an undirected one, loops once. There
    are weights if any edge has the attribute "weight"; an edge without it weighs 1."""
    place = {node: i for i, node in enumerate(graph)}
    edges = [(place[u], place[v], weight) for u, v, weight in graph.edges(data="weight")]
    if not graph.is_directed():
        edges += [(v, u, weight) for u, v, weight in edges if u != v]
    index = torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(-1, 2).t().contiguous()
    if all(weight is None for _, _, weight in edges):
        return Edges(index, None, len(place))
    weights = [real_number("the weight of an edge", 1 if weight is None else weight) for _, _, weight in edges]
    return Edges(index, torch.tensor(weights, dtype=torch.float32), len(place))


def _nodes_of_edge_index(edge_index):
    """Returns None if the number of nodes is unknown, or known for only one side."""
    rows, columns = edge_index.sparse_size()
    return rows if rows is not None and rows == columns else None


def _edges_of_data(data):
    if data.edge_index is None:
        adjacency = getattr(data, "adj_t", None)
        if adjacency is None:
            raise ValueError("data has no edge_index; set data.edge_index to a 2 x E tensor")
        return edges_of_adj_t(adjacency)
    edges = as_edges(data.edge_index, getattr(data, "edge_weight", None))
    # Without either of these, Data guesses the number from the largest id.
    knows = "num_nodes" in data or data.x is not None
    return Edges(edges.index, edges.weight, int(data.num_nodes) if knows else None)


def edges_of_adj_t(adjacency):
    """Returns the edges of the attribute adj_t of data: without weights, if all entries are 1."""
    is_sparse_tensor(adjacency)
    return as_edges(adjacency).without_ones()


def is_sparse_tensor(adjacency):
    """Returns whether the attribute adj_t is a sparse tensor of PyTorch. Raises ValueError if it is a dense one."""
    if not isinstance(adjacency, torch.Tensor):
        return False
    if adjacency.layout == torch.strided:
        raise ValueError(f"adj_t is a dense tensor of shape {tuple(adjacency.shape)}; give a sparse one, "
                         "adj_t.to_sparse_csr()")
    return True


def _edges_of_matrix(shape, row, column, values, kind):
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"edge_index is a sparse {kind} of shape {tuple(shape)}; an adjacency is square, and "
            "edges as (2, E) are given densely"
        )
    if values.is_complex():
        raise ValueError(f"edge_index is a sparse {kind} of complex numbers; weights are real")
    weight = None if values.dtype == torch.bool else values.float()
    return Edges(torch.stack([column, row]), weight, shape[0])


def _edges_of_sparse_tensor(matrix):
    if matrix.device.type not in ("cpu", "cuda"):
        raise ValueError(f"edge_index is on {matrix.device}; move it to the CPU with .cpu()")
    entries = matrix.to_sparse_coo()
    if entries.sparse_dim() != 2:
        raise ValueError(
            f"edge_index is a sparse tensor with {entries.sparse_dim()} sparse dimensions; an "
            "adjacency has 2"
        )
    if torch.is_grad_enabled() and matrix.requires_grad:
        raise ValueError(
            "edge_index is a sparse tensor whose gradient is wanted, which is not supported; give "
            "edge_index and edge_weight, or .detach()"
        )
    row, column = entries._indices()
    return _edges_of_matrix(matrix.shape, row, column, entries._values(), "tensor")


def is_torch_sparse(value):
    """Returns whether the value is a SparseTensor of torch_sparse, without importing it."""
    return type(value).__name__ == "SparseTensor"


def _edges_of_torch_sparse(matrix):
    row, column, values = matrix.coo()
    if values is None:
        values = torch.ones(row.shape, dtype=torch.bool, device=row.device)
    if values.dim() != 1:
        raise ValueError(f"edge_index is a SparseTensor with rows of {tuple(values.shape[1:])} as entries; weights are "
                         "numbers: give matrix.set_value(None)")
    if torch.is_grad_enabled() and values.requires_grad:
        raise ValueError("edge_index is a SparseTensor whose gradient is wanted, which is not supported; give "
                         "edge_index and edge_weight, or .detach()")
    return _edges_of_matrix(matrix.sparse_sizes(), row, column, values, "SparseTensor")


def _edges_of_scipy(matrix):
    entries = matrix.tocoo()
    if entries.ndim != 2:
        return _edges_of_matrix(entries.shape, None, None, None, "array")
    row, column = (torch.tensor(ids).long() for ids in (entries.row, entries.col))
    return _edges_of_matrix(entries.shape, row, column, torch.tensor(entries.data), "array")

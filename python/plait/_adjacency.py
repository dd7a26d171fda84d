"""From edges to the C++ graph, made once for as long as the tensors of the edges live unchanged."""

import dataclasses
import functools
import threading
import weakref

import torch
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from plait._dropout import draw
from plait._library import ops
from plait.world import require_equal, world_size


CPU = torch.device("cpu")


def inverse_root(degree, owners=None):
    """1 / sqrt(degree), 0 where that is 0; differentiable where it is not. `owners`: of the nodes,
    where these are not all."""
    if (degree < 0).any():
        row = int((degree < 0).nonzero()[0])
        node = row if owners is None else int(owners.vertices[row])
        raise ValueError(
            f"node {node} has degree {degree[row].item():g}, the sum of its edge weights; GCN's "
            "normalisation needs 0 or more"
        )
    return torch.where(degree > 0, torch.where(degree > 0, degree, 1).rsqrt(), 0.0)


class Adjacency:
    """A C++ graph, and the scalings that operations on it need; gradients do not go into these.

    torch.compile leaves what goes through here as it is: it cannot see into the C++ graph.
    """

    def __init__(self, handle, owners=None):
        self._handle = handle
        self._owners = owners  # None: all nodes are here

    @torch.compiler.disable
    def aggregate(self, x, op):
        """x aggregated by `op`: sum, mean, max, weighted, or gcn (weighted, and normalised as Kipf
        and Welling do)."""
        if op == "max":
            return ops.max_of_neighbours(x, self._handle)
        pre = self._gcn_norm if op == "gcn" else None
        post = self._inverse_count if op == "mean" else pre
        return ops.aggregate(x, self._handle, op in ("weighted", "gcn"), pre, post)

    @torch.compiler.disable
    def attend(self, h, scores, slope, dropout):
        """Attention over neighbours, N x width of h. scores: N x 2 heads, of each node as a source,
        then as a target. What is dropped follows from draw()."""
        seed, step = draw(h.device) if dropout else (0, None)
        return ops.attend(h, scores, self._handle, slope, dropout, seed, step)

    @functools.cached_property
    def _gcn_norm(self):
        """1 / sqrt(degree) of each node, 0 where the degree is 0."""
        with torch.inference_mode(False), torch.no_grad():
            return inverse_root(self._handle.degree(), self._owners)

    @functools.cached_property
    def _inverse_count(self):
        """1 / number of edges of each node, 0 where there are none."""
        with torch.inference_mode(False), torch.no_grad():
            count = self._handle.edge_counts()
            return torch.where(count > 0, 1 / count, 0.0)


@dataclasses.dataclass(frozen=True)
class Owners:
    """Which rank owns which node."""

    handle: object  # torch.classes.plait.Partition
    vertices: torch.Tensor  # ids of this rank's own nodes, ascending
    _copies: dict = dataclasses.field(default_factory=dict)  # of these, by device

    def vertices_on(self, device):
        if device not in self._copies:
            with torch.inference_mode(False):
                self._copies[device] = self.vertices.to(device, copy=True)
        return self._copies[device]


@dataclasses.dataclass(frozen=True)
class _State:
    """What changes when a tensor's content does, short of writing to its memory behind torch's
    back (through NumPy, or .data)."""

    version: int
    pointer: int
    shape: torch.Size
    stride: tuple

    @classmethod
    def of(cls, tensor):
        return cls(tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride())


@dataclasses.dataclass(frozen=True)
class _Entry:
    index: _State
    weight: tuple  # weak reference and _State, or ()
    made: object

    @classmethod
    def of(cls, edge_index, edge_weight, made):
        weight = () if edge_weight is None else (TensorWeakRef(edge_weight), _State.of(edge_weight))
        return cls(_State.of(edge_index), weight, made)

    def is_of(self, edge_index, edge_weight):
        if self.index != _State.of(edge_index):
            return False
        if edge_weight is None:
            return True
        reference, state = self.weight
        return reference() is edge_weight and state == _State.of(edge_weight)

    def is_dead(self):
        return bool(self.weight) and self.weight[0]() is None


# edge_index, held weakly -> {(what is made of it, which edge_weight): _Entry}
_made = WeakTensorKeyDictionary()
# Of _made, and while something is made, so that it is made once; a graph's making asks for owners.
_lock = threading.RLock()


@torch.compiler.disable
def adjacency(edge_index, edge_weight, num_nodes, loop_weight=None, partition=None, device=CPU):
    """The Adjacency of the edges for tensors on that device, wherever the edges are; with
    `loop_weight`, after every node was given one loop: its own last one, or else one of that weight.
    Raises ValueError for edges that are not right.

    Collective: on each of several ranks it has the rows of the nodes that `partition` gives it,
    which must be given there."""
    if world_size() == 1:
        partition = None  # one graph, whatever the scheme
    elif partition is None:
        raise ValueError(
            "on several ranks edge_index must be a plait.Graph, which knows whose rows are whose; "
            "plait.parallelize(model, data) makes one"
        )

    given = num_nodes, loop_weight, partition, device
    return _kept(edge_index, edge_weight, given, lambda: _make(edge_index, edge_weight, *given))


def _make(edge_index, edge_weight, num_nodes, loop_weight, partition, device):
    loops = (False, 1.0) if loop_weight is None else (True, loop_weight)
    owners = None
    if partition is not None:
        require_equal_graphs(edge_index, edge_weight, num_nodes, partition)
        owners = owners_of(edge_index, num_nodes, partition, edge_weight)
    handle = ops.graph_from_edges(edge_index, num_nodes, edge_weight, *loops,
                                  owners and owners.handle, device)
    return Adjacency(handle, owners)


def owner_of_all(num_nodes):
    """The Owners on one rank."""
    with torch.inference_mode(False):
        return Owners(None, torch.arange(num_nodes))


@torch.compiler.disable
def owners_of(edge_index, num_nodes, partition, edge_weight=None):
    """The Owners by a scheme of that name, on several ranks. They do not depend on the weights of
    edges; a graph that is then made with the same ones takes what was built here."""

    def make():
        handle = ops.partition_of_edges(edge_index, num_nodes, edge_weight, partition)
        return Owners(handle, handle.own_vertices())

    return _kept(edge_index, None, (num_nodes, partition), make)


def require_equal_graphs(edge_index, edge_weight, num_nodes, partition):
    """Raises ValueError, the same on every rank, unless all give the same graph; collective."""
    if world_size() == 1:
        return
    weight = None if edge_weight is None else fingerprint(edge_weight)
    edges = fingerprint(edge_index, torch.int64)  # whatever their width
    require_equal(
        "graphs",
        {
            "num_nodes": num_nodes,
            "the number of edges": edge_index.size(1),
            "the partition": partition,
            "the fingerprint of edge_index": edges,
            "the fingerprint of edge_weight": weight,
        },
    )


def fingerprint(tensor, dtype=None):
    """Equal for tensors of equal elements, converted to `dtype` if there is one. Read once for as
    long as the tensor lives unchanged."""

    def make():
        return ops.fingerprint(tensor.detach().to(dtype or tensor.dtype))

    return _kept(tensor, None, ("fingerprint", dtype), make)


def _kept(edge_index, edge_weight, key, make):
    """What make() gives, for as long as the tensors live unchanged."""
    tensors = [t for t in (edge_index, edge_weight) if t is not None]
    # Inference tensors do not tell when they change; a weight whose gradient is wanted must go to
    # the operation, which refuses it.
    tracks = torch.is_grad_enabled() and edge_weight is not None and edge_weight.requires_grad
    if tracks or any(t.is_inference() for t in tensors):
        return make()
    key = (*key, None if edge_weight is None else id(edge_weight))
    with _lock:
        entries = _made.setdefault(edge_index, {})
        entry = entries.get(key)
        if entry is None or not entry.is_of(edge_index, edge_weight):
            for old in [k for k, e in entries.items() if k == key or e.is_dead()]:
                del entries[old]
            entry = entries[key] = _Entry.of(edge_index, edge_weight, make())
    return entry.made

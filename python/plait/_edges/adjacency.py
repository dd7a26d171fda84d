"""Converts edges to the C++ graph, once for as long as the edges' tensors live unchanged."""

import contextlib
import dataclasses
import functools
import threading

import torch
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from plait._devices import is_capturing
from plait._draws import draw
from plait._edges.batch_graph import Uses, batch_graph_if_it_fits
from plait._edges.work_order import WorkOrder
from plait._library import ops
from plait.world import ranks_now, require_equal, world_size


CPU = torch.device("cpu")

NEEDS_GRAPH = ("on several ranks edge_index must be a plait.Graph, which knows whose rows are whose; "
               "plait.parallelize(model, data) makes one; if this process has graphs or batches of its own, as under "
               "DistributedDataParallel, call plait.alone() first")


def inverse_root(degree, owners=None):
    """Returns 1 / sqrt(degree), or 0 where the degree is 0; differentiable where the degree is not
    0. `owners`: the Owners whose nodes `degree` covers; None if it covers all nodes."""
    if (degree < 0).any():
        row = int((degree < 0).nonzero()[0])
        node = row if owners is None else int(owners.vertices[row])
        raise ValueError(
            f"node {node} has degree {degree[row].item():g}, the sum of its edge weights; GCN's "
            "normalisation needs 0 or more"
        )
    return torch.where(degree > 0, torch.where(degree > 0, degree, 1).rsqrt(), 0.0)


class Adjacency:
    """A C++ graph, and the scalings that operations on it need. Gradients do not flow into these.

    torch.compile does not compile calls that use this class: it cannot see into the C++ graph.
    """

    def __init__(self, handle, owners=None, with_rows=None, uses=None):
        """`with_rows`: returns a handle that brings rows to edges as they are, if `handle` does not.
        `uses`: of a handle that is to be replaced after many. Handles take rows in the order of the owners'
        work, if it is another one than that of ids."""
        self._handle = handle
        self._owners = owners  # None: all nodes are here
        self._with_rows = with_rows
        self._uses = uses

    def use(self, user, make):
        """Counts one more use of the edges. make(): returns the handle for lasting edges."""
        if self._uses is not None and self._uses.are_many(user):
            with contextlib.suppress(torch.OutOfMemoryError, MemoryError):  # beside this one, which stays
                self._handle = make()

    @torch.compiler.disable
    def aggregate(self, x, op):
        """Returns x aggregated by `op`: sum, mean, max, min, weighted (a sum), weighted mean (that sum
        divided by the number of edges), or gcn (weighted, with the normalisation of Kipf and
        Welling)."""
        x = self._enter(x)
        if op in ("max", "min"):
            return self._leave(ops.extremum_of_neighbours(x, self._handle_with_rows, op == "min"))
        pre = self._gcn_norm if op == "gcn" else None
        post = self._inverse_count if op in ("mean", "weighted mean") else pre
        return self._leave(ops.aggregate(x, self._handle, op in ("weighted", "weighted mean", "gcn"), pre, post))

    @torch.compiler.disable
    def attend(self, h, scores, slope, dropout):
        """Returns attention over neighbours, in the shape of h, N x width. scores: N x 2 heads;
        each node's scores as a source, then its scores as a target. draw() determines the
        dropped entries, the same on every rank: in the step backward the owner of a row draws again what the
        row's readers have drawn."""
        seed, step = draw(h.device) if dropout else (0, None)
        h, scores = self._enter(h), self._enter(scores)
        return self._leave(ops.attend(h, scores, self._handle_with_rows, slope, dropout, seed, step))

    def normalise(self):
        """Prepares the operation gcn. Raises ValueError if a degree is negative."""
        self._gcn_norm  # noqa: B018

    def _enter(self, rows):
        order = self._owners and self._owners.order
        return rows if order is None else order.enter(rows)

    def _leave(self, rows):
        order = self._owners and self._owners.order
        return rows if order is None else order.leave(rows)

    @property
    def _handle_with_rows(self):
        return self._handle if self._with_rows is None else self._placed_with_rows

    @functools.cached_property
    def _placed_with_rows(self):
        with torch.inference_mode(False):
            return self._with_rows()

    @functools.cached_property
    def _gcn_norm(self):
        """1 / sqrt(degree) of each node, 0 where the degree is 0, as the handle takes it."""
        with torch.inference_mode(False), torch.no_grad():
            return self._enter(inverse_root(self._leave(self._handle.degree()), self._owners))

    @functools.cached_property
    def _inverse_count(self):
        """1 / number of edges of each node, 0 where there are none, as the handle takes it."""
        with torch.inference_mode(False), torch.no_grad():
            count = self._handle.edge_counts()
            return torch.where(count > 0, 1 / count, 0.0)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The way in which a graph is spread over ranks: names of a partition and of a strategy; in which order of
    nodes it is worked on; and the name of the type in which rows cross to be summed."""

    partition: str
    strategy: str = "auto"
    reorder: str = "none"
    wire: str = "fp32"


@dataclasses.dataclass(frozen=True)
class Owners:
    """Maps each node to the rank that owns it."""

    handle: object  # torch.classes.plait.Partition
    vertices: torch.Tensor  # ids of this rank's own nodes, ascending
    order: WorkOrder = None  # in which the handle has these nodes, if it is another one
    _copies: dict = dataclasses.field(default_factory=dict)  # device -> copy of vertices

    def vertices_on(self, device):
        if device not in self._copies:
            with torch.inference_mode(False):
                self._copies[device] = self.vertices.to(device, copy=True)
        return self._copies[device]


@dataclasses.dataclass(frozen=True)
class State:
    """The properties of a tensor that change when its content changes, unless its memory is written
    behind torch's back (through NumPy, or .data)."""

    version: int
    pointer: int
    shape: torch.Size
    stride: tuple

    @classmethod
    def of(cls, tensor):
        if tensor.layout == torch.strided:
            return cls(tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride())
        values = tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()
        return cls(tensor._version, values.data_ptr(), tensor.shape, ())


class _Entry:
    """An object that was made of an edge_index and perhaps of a weight, and the state of both at that time.

    Attributes:
        key: the kind of the object, and the id of the weight; None if the object has gone.
        made: the object.
    """

    def __init__(self, key, edge_index, edge_weight, made):
        self.key, self.made = key, made
        self._index = State.of(edge_index)
        self._weight = () if edge_weight is None else (TensorWeakRef(edge_weight), State.of(edge_weight))

    def is_of(self, key, edge_index, edge_weight):
        if self.key != key or self._index != State.of(edge_index):
            return False
        if edge_weight is None:
            return True
        reference, state = self._weight
        return reference() is edge_weight and state == State.of(edge_weight)

    def is_dead(self):
        return self.key is None or bool(self._weight) and self._weight[0]() is None

    def let_go(self):
        self.key = self.made = None


class _Entries:
    """The last objects of one kind of making, oldest first. Where ranks make objects together, all of them must miss
    the same ones later: there a new object takes the place of the oldest one, and the place of an object that has gone
    stays taken, because a weight may live longer on one rank than on another."""

    def __init__(self, together):
        self._together, self._all = together, []

    def find(self, key, edge_index, edge_weight):
        return next((entry for entry in self._all if entry.is_of(key, edge_index, edge_weight)), None)

    def let_go(self, key):
        """Lets go of objects that can be found no more, and of that of the key."""
        for entry in self._all:
            if entry.key == key or entry.is_dead():
                entry.let_go()
        if not self._together:
            self._all = [entry for entry in self._all if entry.key is not None]

    def make_room(self):
        """Lets go of the oldest object if there are too many for another one."""
        del self._all[:max(0, len(self._all) - _MOST_KEPT + 1)]

    def add(self, entry):
        self._all.append(entry)
        del self._all[:-_MOST_KEPT]  # others may have been added while this one was made


class _Kept:
    """What was made from one edge_index.

    Attributes:
        captured: {id: object} of the objects that captured steps use. Replays read their memory, so they stay
            until the edge_index goes, whatever becomes of their entry.
    """

    def __init__(self):
        self._by_making, self.captured = {}, {}

    def made_by(self, ranks, together, weighted):
        """Returns the _Entries of objects that this number of ranks has made, each by itself or together, with or
        without a weight. Objects of other ranks, or of other making, do not push them out."""
        making = ranks, together and ranks > 1, weighted
        return self._by_making.setdefault(making, _Entries(making[1]))

    def let_go_of_dead(self):
        """Lets go of objects of weights that have gone."""
        for entries in self._by_making.values():
            entries.let_go(None)

    @property
    def entries(self):
        """The entries of objects that are kept, in no particular order."""
        return [entry for entries in self._by_making.values() for entry in entries._all if entry.key is not None]


# edge_index, held weakly -> _Kept
_made = WeakTensorKeyDictionary()
_MOST_KEPT = 16  # results in each _Entries, as for x of other numbers of rows; the oldest goes first
# Guards _made. It is held while an object is made, so that each is made once; making a graph asks
# for its owners, so the lock is reentrant.
_lock = threading.RLock()


@torch.compiler.disable
def adjacency(edge_index, edge_weight, num_nodes, loop_weight=None, layout=None, device=CPU, user=None):
    """Returns the Adjacency of the edges for tensors on the given device, wherever the edges are. `user`: the id of a
    layer; None: the edges are no batch's (plait._edges.batch_graph).
    With `loop_weight`, every node first gets one loop: its own last loop if it has any, else one
    of that weight. Raises ValueError for edges that are not valid.

    Collective: on each of several ranks the Adjacency has the rows of the nodes that the partition of
    `layout`, a Layout, assigns to the rank. `layout` is required on several ranks."""
    if world_size() == 1 and (layout is None or layout.reorder == "none"):
        layout = None  # one rank owns all nodes under every scheme, and moves nothing
    elif layout is None:
        raise ValueError(NEEDS_GRAPH)

    given = num_nodes, loop_weight, layout, device
    if layout is not None or user is None or device.type == "cpu":
        return kept(edge_index, edge_weight, given, lambda: _make(edge_index, edge_weight, *given), together=True)

    def by_host():
        return _on_one_rank(edge_index, edge_weight, num_nodes, loop_weight, device)

    def make():
        batch = batch_graph_if_it_fits(edge_index, edge_weight, num_nodes, device, loop_weight)
        return Adjacency(by_host()) if batch is None else Adjacency(batch, uses=Uses())

    made = kept(edge_index, edge_weight, (*given, "batch"), make)
    with _lock:
        made.use(user, by_host)
    return made


def _loops(loop_weight):
    """Returns the arguments of graph_from_edges for one loop each."""
    return (False, 1.0) if loop_weight is None else (True, loop_weight)


def _on_one_rank(edge_index, edge_weight, num_nodes, loop_weight, device):
    return ops.graph_from_edges(edge_index, num_nodes, edge_weight, *_loops(loop_weight), None, device)


def _make(edge_index, edge_weight, num_nodes, loop_weight, layout, device):
    if layout is None:
        return Adjacency(_on_one_rank(edge_index, edge_weight, num_nodes, loop_weight, device))
    require_equal_graphs(edge_index, edge_weight, num_nodes, layout.partition, device=device.type,
                         **{"the order": layout.reorder, "the strategy": layout.strategy,
                            "the type of rows on the wire": layout.wire,
                            "the weight of self-loops": loop_weight})
    owners = owners_of(edge_index, num_nodes, layout, edge_weight)
    chosen = layout.strategy if world_size() > 1 else "auto"

    # The Adjacency is kept by the edges, so it must not keep them; who calls it has them.
    edges = [t if t is None else TensorWeakRef(t) for t in (edge_index, edge_weight)]

    def placed(strategy, wire="fp32"):
        index, weight = (t and t() for t in edges)
        return ops.graph_from_edges(index, num_nodes, weight, *_loops(loop_weight), owners.handle, device, strategy,
                                    wire)

    rows_as_they_are = ops.brings_rows(chosen, layout.wire, device)
    with_rows = None if rows_as_they_are else lambda: placed(_with_rows(chosen, device))
    return Adjacency(placed(chosen, layout.wire), owners, with_rows)


def _with_rows(strategy, device):
    """Returns the strategy if it brings rows to edges, else "auto"."""
    return strategy if ops.brings_rows(strategy, "fp32", device) else "auto"


def owner_of_all(num_nodes):
    """Returns the Owners on one rank. Raises torch.OutOfMemoryError."""
    with torch.inference_mode(False):
        try:
            return Owners(None, torch.arange(num_nodes))
        except RuntimeError:  # which says nothing of the graph
            raise torch.OutOfMemoryError(f"a graph of {num_nodes} vertices does not fit in memory") from None


@torch.compiler.disable
def owners_of(edge_index, num_nodes, layout, edge_weight=None):
    """Returns the Owners that the partition scheme and the order of a Layout give; collective. They do
    not depend on the weights of edges. A graph that is made later from the same tensors reuses the
    conversion that happens here."""

    def make():
        handle = ops.partition_of_edges(edge_index, num_nodes, edge_weight, layout.partition, layout.reorder)
        vertices = handle.own_vertices()
        if layout.reorder == "none":
            return Owners(handle, vertices)
        order = WorkOrder(vertices)
        return Owners(handle, order.ids, None if torch.equal(order.ids, vertices) else order)

    return kept(edge_index, None, ("owners", num_nodes, layout.partition, layout.reorder), make, together=True)


def require_equal_graphs(edge_index, edge_weight, num_nodes, partition, **more):
    """Raises ValueError, the same on every rank, unless all pass the same graph and the same further
    facts; collective."""
    if world_size() == 1:
        return
    weight = None if edge_weight is None else fingerprint(edge_weight)
    edges = fingerprint(edge_index, torch.int64)  # does not depend on the width of ids
    require_equal(
        "graphs",
        {
            "num_nodes": num_nodes,
            "the number of edges": edge_index.size(1),
            "the partition": partition,
            **more,
            "the fingerprint of edge_index": edges,
            "the fingerprint of edge_weight": weight,
        },
    )


def fingerprint(tensor, dtype=None):
    """Returns a number that is equal for tensors of equal elements, after conversion to `dtype` if
    it is given. The tensor is read once for as long as it lives unchanged."""

    def make():
        return ops.fingerprint(tensor.detach().to(dtype or tensor.dtype))

    return kept(tensor, None, ("fingerprint", dtype), make)


def is_learnt(weight):
    """Returns whether a gradient is wanted of a weight, which may be None."""
    return weight is not None and torch.is_grad_enabled() and weight.requires_grad


def kept(edge_index, edge_weight, key, make, is_kept=bool, together=False):
    """Returns the result of make(), which is kept for as long as the tensors live unchanged.
    is_kept(whether it is kept here) tells whether it need not be made, where ranks decide together. `together`: make()
    is collective, and all ranks come here in the same order."""
    tensors = [t for t in (edge_index, edge_weight) if t is not None]
    # Inference tensors do not record changes. A weight that requires a gradient must go to the
    # operation, which refuses it.
    if is_learnt(edge_weight) or any(t.is_inference() for t in tensors):
        is_kept(False)
        return make()
    key = (*key, None if edge_weight is None else id(edge_weight))
    with _lock:
        of_tensor = _made.setdefault(edge_index, _Kept())
        entries = of_tensor.made_by(ranks_now(), together, edge_weight is not None)
        entry = entries.find(key, edge_index, edge_weight)
        if not is_kept(entry is not None):
            of_tensor.let_go_of_dead()
            entries.let_go(key)
            entries.make_room()
            try:
                made = make()
            except BaseException:
                if together:  # on this rank alone, perhaps: its place is taken on all
                    entries.add(_Entry(None, edge_index, edge_weight, None))
                raise
            entry = _Entry(key, edge_index, edge_weight, made)
            entries.add(entry)
        made = entry.made
        if is_capturing():
            of_tensor.captured[id(made)] = made
    return made

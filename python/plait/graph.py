"""Graphs made from tensors or read from files."""

import os

import torch

from plait._edges.adjacency import (CPU, Layout, State, adjacency, is_learnt, kept, owner_of_all,
                              owners_of, require_equal_graphs)
from plait._edges.inputs import as_edges, as_tensor, fields_of, whole_number, word
from plait._files import file_errors, reading_options, warn_of_file
from plait._library import ops
from plait.world import world_size


_NO_TENSOR = ("a plait.Graph is not a tensor of edges, but {} was asked of it; it stands for the edges of all "
              "ranks: add, drop or sort edges before plait.parallelize or plait.Graph, or read the "
              "whole graph's .edge_index")


def _lasting(tensor):
    """Returns the tensor; if it was made in inference mode, returns a copy that records changes."""
    if tensor is None or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        return tensor.clone()


class Graph:
    """A graph on `num_nodes` nodes.

    Args:
        edge_index: (2, E), integers. Column e is a message from edge_index[0, e] to
            edge_index[1, e], as in PyTorch Geometric. Loops and duplicates count.
            It can also be an object that has edges: an EdgeIndex or a Data of PyTorch Geometric,
            whose x, y and masks become those of the graph; a square sparse matrix A of SciPy or
            PyTorch, whose entry (i, j) is an edge from j to i, so that "weighted" aggregation is
            A x; or an array with __dlpack__, such as NumPy's.
        num_nodes: N; ids are 0 .. N - 1. None: the number that edge_index has, or the largest
            id + 1.
        edge_weight: (E,), float32, finite. None: the weights of edge_index, or weight 1 for every
            edge. The entries of a matrix are weights, converted to float32, unless they are bool.
        partition: the scheme that assigns nodes to ranks: "edges" (ranges of consecutive ids with
            about equally many edges), "vertices" (ranges with equally many nodes), "clusters"
            (keeps communities together, found quickly), "hash" (by a hash of the id) or "metis"
            (fewest edges between ranks). None: "edges", unless plait.parallelize, before the graph is
            used, chooses another one.
        strategy: the way in which rows of other ranks come to where they are summed: "auto" (bulk on
            CPUs, pipelined on GPUs), "bulk", "pipelined", "partial", "replicate", "get" or "paged"
            (docs/architecture.md). Results do not depend on it. None: "auto", or what plait.parallelize
            chooses.
        reorder: the order of nodes in which Plait's operations work, so that nodes which read each other
            stand together in memory and on ranks: "communities", "degree", "rcm", "boba", "metis", or
            "auto" (communities if that brings the ends of edges closer, else none), as in `plait reorder`.
            Ids, and rows of tensors, keep the caller's order; each operation copies its rows into the order
            of the work and back. None: "none", or what plait.parallelize is given.
        wire: the type in which rows cross between ranks to be summed: "fp32" or "bf16". With "bf16" each number
            of a remote row, and of a remote row's gradient, is rounded to 8 bits, which halves the bytes between
            GPUs and between hosts; results then depend on the number of ranks. Own rows and sums are float32, and
            so are rows that attention, maxima, minima and layers with their own code read. None: "fp32", or what
            plait.parallelize is given. On one rank nothing crosses, and "bf16" is refused.

    On several ranks (see docs/parallel.md) every rank passes the same whole graph; operations then
    take and return the rows of the rank's own nodes. Making a graph, and every call that uses one,
    is collective: all ranks do it, in the same order.

    Tensors of edges are referenced, not copied. The form in which the C++ operations read the graph
    is made at the first use, once with and once without the loops that layers add. It takes about 4
    bytes per edge, 8 with weights, twice as much if the graph is not symmetric, and 16 bytes per
    node. It is made again after the tensors were changed in place.

    Raises:
        ValueError: an id out of range, a wrong shape or type, a weight that is not finite; the
            message names the edge, the value and the allowed range. Also, on every rank, if ranks
            pass different graphs.

    Attributes:
        edge_index, edge_weight: the edges as tensors.
        x, y, train_mask, val_mask, test_mask, original_ids: see `load`; None if absent.
    """

    _FIELDS = ("x", "y", "train_mask", "val_mask", "test_mask", "original_ids")

    def __init__(self, edge_index, num_nodes=None, edge_weight=None, partition=None, strategy=None, reorder=None,
                 wire=None):
        edges = as_edges(edge_index, edge_weight)
        self.edge_index = _lasting(edges.index)
        self.edge_weight = _lasting(edges.weight)
        if num_nodes is None:
            num_nodes = count_nodes(edges.index) if edges.num_nodes is None else edges.num_nodes
        self._num_nodes = whole_number("num_nodes", num_nodes)
        ops.check_edges(edges.index, self._num_nodes, edges.weight)
        self._asked = partition, strategy, reorder, wire
        # {number of ranks: partition, strategy, order and wire type there}, and where they are in use. What one rank
        # chooses within plait.alone() must not decide its work together with the others.
        self._placed, self._used = {}, frozenset()  # replaced, not changed: copies of the graph share them
        self.place(partition or "edges", strategy or "auto", reorder or "none", wire or "fp32")
        self._owner_of_all = None  # made when first asked for
        # None: every call uses edge_weight. Else calls use it that are given this tensor, unchanged, which
        # has the weights of edges into own nodes (plait.spread).
        self._asks_for_weight = self._states = None
        require_equal_graphs(edges.index, edges.weight, self._num_nodes, self.partition,
                             **{"the order": self.reorder})
        fields = fields_of(edge_index, self._FIELDS)
        for name in self._FIELDS:
            setattr(self, name, fields.get(name))

    @classmethod
    def load(cls, path, partition=None, strategy=None, reorder=None, wire=None, *, vertices=None, directed=False,
             first_line="auto"):
        """Reads a graph file: .plait, .mtx, .npz, .npy, an edge list (.txt, .csv, ...), or one of
        the other formats of docs/formats.md.

        The attributes that the file has are set:
            x: (N, width), float32, dense, whatever its form in the file.
            y: (N,), int64, -1 where unknown.
            train_mask, val_mask, test_mask: (N,), bool; (K, N) if there are K > 1 splits.
            original_ids: (N,), int64: the ids that the file uses.
        Of a set of graphs, y and the masks have one entry per graph.

        Nodes of a file that `plait reorder` wrote have the ids from before, and are worked on in the order of
        these ids unless `reorder` says otherwise.

        Args:
            vertices: the number of nodes, if the file does not tell it. The ids of an edge list are then
                0 .. vertices - 1, and nodes without edges count.
            directed: read each line of an edge list as one edge, although a comment says that the graph is
                undirected.
            first_line: what the first line of an edge list is: "edge", "counts" of nodes and edges, "skip",
                or "auto", which takes it for counts if they fit the other lines.

        Warns (UserWarning, on the first rank) of arrays that are not read, and of lines that could be read
        in another way.

        Raises ValueError that names the file and the place if the content is wrong, OSError, such as
        FileNotFoundError, if the file cannot be read, and RuntimeError if it does not fit in memory.
        """
        options = reading_options(vertices, directed, first_line)
        with file_errors(path):
            fields, warnings = ops.read_dataset(os.fspath(path), *options)
        graph = cls(
            fields["edge_index"], int(fields["num_nodes"]), fields.get("edge_weight"), partition,
            strategy, reorder, wire,
        )
        for name in cls._FIELDS:
            setattr(graph, name, fields.get(name))
        warn_of_file(warnings)
        return graph

    def to(self, device):
        """Moves the graph's tensors to a device, such as plait.device(). Returns the graph, as
        torch_geometric.data.Data.to does."""
        for name in ("edge_index", "edge_weight", *self._FIELDS):
            tensor = getattr(self, name)
            if tensor is not None:
                setattr(self, name, tensor.to(device))
        return self

    @property
    def num_nodes(self):
        return self._num_nodes

    @property
    def num_edges(self):
        return self.edge_index.size(1)

    @property
    def is_weighted(self):
        return self.edge_weight is not None

    @property
    def vertices(self):
        """The ids of this rank's own nodes, ascending, int64: row i of the tensors that operations
        take and return belongs to vertices[i]. On one rank these are all nodes."""
        return self.vertices_on(CPU).clone()

    def vertices_on(self, device):
        """Returns `vertices` on a device. The tensor is kept and must not be changed."""
        return self._owners().vertices_on(device)

    @property
    def num_own(self):
        """The number of nodes that this rank owns."""
        return self.num_nodes if world_size() == 1 else self._owners().vertices.numel()

    @property
    def asked(self):
        """The partition, the strategy, the order and the type of rows on the wire that were asked for, or are used;
        None for choices that are open."""
        return self._here() if world_size() in self._used else self._asked

    @property
    def placing(self):
        """The values that decide which rank has which row, for keys of anything that is kept of the edges."""
        return self.num_nodes, self.partition, self.reorder

    def place(self, partition, strategy, reorder, wire):
        """Sets the partition, the strategy, the order of the work and the type of rows on the wire, where they are
        open."""
        ops.check_partition(word("partition", partition))
        ops.check_way(word("strategy", strategy), word("wire", wire))
        ops.check_reorder(word("reorder", reorder))
        if wire != "fp32" and world_size() == 1:
            raise ValueError(f"wire is {wire!r}, but rows cross between ranks, and there is one rank; leave it out, "
                             "or start several")
        self._placed = {**self._placed, world_size(): (partition, strategy, reorder, wire)}

    def _here(self):
        """Returns the partition, the strategy, the order and the wire type for the ranks that work together now."""
        ranks = world_size()
        if ranks not in self._placed:
            defaults = zip(self._asked, ("edges", "auto", "none", "fp32"))
            partition, strategy, reorder, wire = (asked or default for asked, default in defaults)
            here = partition, strategy, reorder, wire if ranks > 1 else "fp32"
            self._placed = {**self._placed, ranks: here}
        return self._placed[ranks]

    partition = property(lambda self: self._here()[0])
    strategy = property(lambda self: self._here()[1])
    reorder = property(lambda self: self._here()[2])
    wire = property(lambda self: self._here()[3])

    @property
    def num_own_edges(self):
        """The number of edges that lead to nodes that this rank owns."""
        if world_size() == 1:
            return self.num_edges

        def make():
            is_own = torch.zeros(self.num_nodes, dtype=torch.bool)
            is_own[self.vertices_on(CPU)] = True
            return int(is_own[self.edge_index[1].to(CPU, torch.long)].sum())

        return kept(self.edge_index, None, ("number of own edges", *self.placing), make)

    def ask_for_weight(self, weight):
        """Lets calls use edge_weight that are given `weight`: that of the edges into own nodes."""
        self._asks_for_weight = weight
        self._states = State.of(weight), State.of(self.edge_weight)

    def is_asked_for(self, weight):
        """Returns whether a call that was given this weight may use edge_weight instead."""
        return weight is self._asks_for_weight and not is_learnt(weight) and (
            self._states == (State.of(weight), State.of(self.edge_weight)))

    def stats(self, communities=True):
        """Returns numbers that describe the shape of the whole graph, by name (GNNAdvisor, section 3.1):

            mean_degree, median_degree, percentile_99_degree, largest_degree: of edges that lead to a node.
            isolated: the number of nodes to which no edge leads.
            top_percent_share: the part of the edges that lead to the 1% of the nodes with the most.
            averaged_edge_span: the mean distance between the ids of an edge's two ends.
            scattered: whether `plait reorder` and reorder="auto" find an order in which edges' ends are closer;
                unless `communities` is False.
            communities, largest_community: the number of communities of at least two nodes that `plait reorder`
                orders nodes by, and the number of nodes of the largest; unless `communities` is False.
            inner_edges, modularity: the part of the edges inside communities, and that part less the part
                that is expected by chance.
        """
        numbers = ops.graph_statistics(self.edge_index, self.num_nodes, communities)
        counts = ("median_degree", "percentile_99_degree", "largest_degree", "isolated", "communities",
                  "largest_community")
        kinds = dict.fromkeys(counts, int) | {"scattered": bool}
        return {name: kinds.get(name, float)(value) for name, value in numbers.items()}

    def check_rows(self, rows):
        """Raises ValueError unless `rows` is the number of this rank's own nodes."""
        if rows == self.num_own:
            return
        if world_size() == 1:
            raise ValueError(
                f"x has {rows} rows, but the graph has {self.num_nodes} nodes; give one row for "
                "each"
            )
        raise ValueError(
            f"x has {rows} rows, but this rank owns {self.num_own} of the graph's "
            f"{self.num_nodes} nodes; give their rows, graph.own(x)"
        )

    def own(self, tensor):
        """Returns the rows of this rank's own nodes, from a tensor (N, ...) of one row per node."""
        tensor = as_tensor("tensor", tensor, "give one with a row for each node")
        if tensor.dim() == 0 or tensor.size(0) != self.num_nodes:
            raise ValueError(
                f"the tensor has shape {tuple(tensor.shape)}, but must have a row for each of "
                f"{self.num_nodes} nodes"
            )
        return tensor if world_size() == 1 else tensor[self.vertices_on(tensor.device)]

    def gather(self, rows):
        """Returns the rows of all nodes, in the order of ids, on every rank: the inverse of own().
        Collective. Gradients do not flow through it; compute losses of own rows, with
        plait.mean."""
        rows = as_tensor("rows", rows, "give one with a row for each of this rank's own nodes")
        rows = rows.detach().contiguous()
        if world_size() == 1:
            return self.own(rows).clone()
        ops.wait_for(rows)
        owners = self._owners()
        own = rows.cpu() if owners.order is None else owners.order.enter(rows.cpu())
        return ops.gather_rows(own, owners.handle).to(rows.device)

    def layout(self):
        """Returns the Layout, which from now on is in use."""
        self._used = self._used | {world_size()}
        return Layout(*self._here())

    def _owners(self):
        if world_size() == 1:
            if self._owner_of_all is None:
                self._owner_of_all = owner_of_all(self.num_nodes)
            return self._owner_of_all
        return owners_of(self.edge_index, self.num_nodes, self.layout(), self.edge_weight)

    def adjacency(self, loop_weight=None, device=CPU):
        """Returns the form that C++ operations on tensors on that device read; see
        plait._edges.adjacency."""
        return adjacency(self.edge_index, self.edge_weight, self.num_nodes, loop_weight,
                         self.layout(), device)

    def __getattr__(self, name):
        if hasattr(torch.Tensor, name):
            raise AttributeError(_NO_TENSOR.format(f".{name}"))
        raise AttributeError(f"'Graph' object has no attribute '{name}'")

    def __getitem__(self, key):
        raise TypeError(_NO_TENSOR.format("[...]"))

    def __iter__(self):
        raise TypeError(_NO_TENSOR.format(" as a pair of rows"))

    def __repr__(self):
        weighted = ", weighted" if self.is_weighted else ""
        return f"Graph({self.num_nodes} nodes, {self.num_edges} edges{weighted})"


def count_nodes(edge_index):
    """Returns the largest id + 1, or 0 without edges. Raises ValueError if that is no number of 64 bits;
    check_edges reports other mistakes."""
    integers = edge_index.layout == torch.strided and not edge_index.dtype.is_floating_point
    if not integers or edge_index.is_complex() or edge_index.numel() == 0:
        return 0
    count = max(0, int(edge_index.max()) + 1)
    if count >= 2**63:
        raise ValueError(f"edge_index has the id {count - 1}, which is too large; correct it")
    return count


def as_graph(graph, counted=False):
    """Returns a plait.Graph: the one that is given, or one made of an object that has edges. If it must be `counted`,
    raises TypeError for an object that does not say how many nodes there are."""
    if isinstance(graph, Graph):
        return graph
    edges = as_edges(graph)
    if counted and edges.num_nodes is None:
        raise TypeError(
            f"graph is a {type(graph).__name__}, which does not say how many nodes there are; "
            "make a plait.Graph of the edges"
        )
    return Graph(edges.index, edges.num_nodes, edges.weight)

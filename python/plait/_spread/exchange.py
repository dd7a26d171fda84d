"""Brings rows of other ranks to where they are read, differentiably.

The exchange is a product with a matrix of zeros and ones, made by the same operation as sums over
neighbours. So each distinct row crosses a link once, gradients go back to the owners and are summed
there, and it works on CPUs and GPUs alike.
"""

import dataclasses
import functools

import torch

from plait._edges.adjacency import CPU, kept
from plait._library import ops
from plait.world import counts_of_ranks, rank, world_size

_EXACT = 2**24  # whole numbers up to this one are exact in float32


@dataclasses.dataclass(frozen=True)
class Places:
    """The owner of each node of a graph, and its row there: (num_nodes,), int64, on the CPU."""

    owner: torch.Tensor
    row: torch.Tensor


def places_of(graph):
    """Returns the Places of a plait.Graph's nodes; collective when they are first asked for."""

    def make():
        own = graph.vertices_on(CPU)
        return Places(graph.gather(torch.full_like(own, rank())),
                      graph.gather(torch.arange(graph.num_own)))

    return kept(graph.edge_index, None, ("places", *graph.placing), make, together=True)


class Exchange:
    """Rows are numbered by slot: first those of this rank's own nodes, as in graph.vertices, then those
    of other nodes that this rank reads, ascending by id.

    Args:
        places: the graph's Places.
        reader, node: the ranks and the nodes of other ranks that they read, each pair once, ascending
            by reader and then by node; the same on every rank.
        device: where rows are.

    Attributes:
        vertices: the ids of the slots' nodes, int64, on the CPU.
        num_own, num_slots: the number of own nodes, and of all slots.
    """

    def __init__(self, places, reader, node, device):
        (own,) = (places.owner == rank()).nonzero(as_tuple=True)
        self.vertices = torch.cat([own, node[reader == rank()]])
        self.num_own, self.num_slots = own.numel(), self.vertices.numel()
        self._make = functools.partial(_graph_of_exchange, places, reader, node, device)

    @functools.cached_property
    def _graph(self):
        with torch.inference_mode(False):
            return self._make()

    def slots_of(self, nodes):
        """Returns the slot of each node, (any shape), int64, on the CPU."""
        order = self.vertices.argsort()
        return order[torch.searchsorted(self.vertices[order], nodes.contiguous())]

    def bring(self, rows):
        """Returns one row per slot, (num_slots, ...), from one row per own node, (num_own, ...);
        collective, and differentiable. Raises TypeError for numbers that float32 cannot hold."""
        if rows.layout != torch.strided:
            raise NotImplementedError(
                "sparse rows cannot be brought from other ranks; give x.to_dense()")
        if world_size() == 1:
            return rows
        flat = _as_float32(rows.reshape(self.num_own, rows.shape[1:].numel()))
        flat = torch.nn.functional.pad(flat, (0, 0, 0, self.num_slots - self.num_own))
        slots = ops.aggregate(flat, self._graph, False)
        return slots.to(rows.dtype).view(self.num_slots, *rows.shape[1:])


def exchange_for(places, reader, node, num_nodes, device):
    """Returns the Exchange for pairs of a reader and a node, int64, in any order and number; those of
    nodes that the reader owns are left out."""
    remote = places.owner[node] != reader
    pairs = torch.unique(reader[remote] * num_nodes + node[remote])
    return Exchange(places, pairs // num_nodes, pairs % num_nodes, device)


def gather_rows(rows, ids, graph):
    """As plait.gather, on several ranks and for arguments that are right."""

    def make():
        ops.wait_for(ids)
        nodes = ids.detach().to(CPU, torch.long)
        wanted = nodes.unique()
        counts = torch.tensor(counts_of_ranks("plait.gather", wanted.numel()))
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        wanted = ops.gather_rows(wanted, ops.partition_of_ranges(starts))
        reader = torch.arange(world_size()).repeat_interleave(counts)
        exchange = exchange_for(places_of(graph), reader, wanted, graph.num_nodes, rows.device)
        return exchange, exchange.slots_of(nodes).to(rows.device)

    key = ("gather", *graph.placing, rows.device)
    with torch.inference_mode(False):
        exchange, slots = kept(ids, graph.edge_index, key, make, _all_keep)
    return exchange.bring(rows)[slots]


def _all_keep(here):
    """Returns whether every rank keeps the exchange: ids may be an old tensor on some ranks only."""
    return all(counts_of_ranks("plait.gather: exchanges that are kept", int(here)))


def _graph_of_exchange(places, reader, node, device):
    """Returns a C++ graph whose rank r has a node for each slot of rank r, with one edge, from the
    node's row at its owner."""
    ranks = range(world_size())
    own = torch.stack([(places.owner == r).sum() for r in ranks])
    others = torch.stack([(reader == r).sum() for r in ranks])
    starts = torch.cat([own.new_zeros(1), (own + others).cumsum(0)])
    first = torch.cat([own.new_zeros(1), others.cumsum(0)])[reader]
    copies = starts[reader] + own[reader] + torch.arange(len(first)) - first
    place = starts[places.owner] + places.row
    edges = torch.stack([torch.cat([place, place[node]]), torch.cat([place, copies])])
    partition = ops.partition_of_ranges(starts)
    return ops.graph_from_edges(edges, int(starts[-1]), None, False, 1.0, partition, device)


def _as_float32(rows):
    if rows.dtype == torch.float32:
        return rows
    if rows.dtype in (torch.float16, torch.bfloat16, torch.bool, torch.int8, torch.uint8, torch.int16):
        return rows.float()
    if rows.dtype in (torch.int32, torch.int64):
        ops.wait_for(rows)
        if rows.numel() == 0 or int(rows.abs().max()) <= _EXACT:
            return rows.float()
    raise TypeError(f"rows of {rows.dtype} cannot be brought from other ranks; use float32, or whole "
                    f"numbers up to {_EXACT} in int64")

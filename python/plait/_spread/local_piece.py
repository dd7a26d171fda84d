"""This rank's piece of a spread graph, on which layers that Plait has no kernels for compute by their
own code (plait._spread.conv)."""

import torch

from plait._edges.adjacency import CPU, kept
from plait._edges.rows import EdgeOrder
from plait._spread.exchange import exchange_for, places_of
from plait.world import rank


class LocalPiece:
    """The edges into this rank's own nodes; nodes are numbered by the slots of an Exchange.

    Attributes:
        edge_index: (2, own edges), int64, slots, in the order of the whole graph's edges.
        edge_weight: (own edges,), or None.
        edges: the places of these edges among the edges of the whole graph, ascending, int64.
        vertices: the ids of the slots' nodes, int64.
        num_own, num_slots: the number of own nodes, and of all slots.
        edge_order: the EdgeOrder for edges of the piece.
    """

    def __init__(self, graph, device):
        source, target = graph.edge_index.to(CPU, torch.long)
        places = places_of(graph)
        reader = places.owner[target]
        edges = own_edges(graph)
        self._exchange = exchange_for(places, reader, source, graph.num_nodes, device)
        self._num_nodes = graph.num_nodes
        self.num_own, self.num_slots = self._exchange.num_own, self._exchange.num_slots
        index = self._exchange.slots_of(torch.stack([source[edges], target[edges]]))
        self.edge_index, self.edges = index.to(device), edges.to(device)
        self.vertices = self._exchange.vertices.to(device)
        weight = graph.edge_weight
        self.edge_weight = None if weight is None else weight[edges.to(weight.device)].to(device)
        self.edge_order = EdgeOrder(self.edges.numel() + self.num_slots)

    def bring(self, rows):
        """As Exchange.bring()."""
        return self._exchange.bring(rows)

    def edge_ids(self, edge_index):
        """Returns a number for each edge, (edges,), that depends only on the two nodes."""
        source, target = self.vertices[edge_index]
        return source * self._num_nodes + target


def own_edges(graph):
    """Returns the places of the edges into own nodes among the edges of a plait.Graph, ascending, int64.
    Collective when they are first asked for."""

    def make():
        owner = places_of(graph).owner
        return (owner[graph.edge_index[1].to(CPU, torch.long)] == rank()).nonzero(as_tuple=True)[0]

    return kept(graph.edge_index, None, ("own edges", *graph.placing), make, together=True)


def local_piece(graph, device):
    """Returns the LocalPiece of a plait.Graph for tensors on the device. Collective when it is first
    asked for; it is kept for as long as the graph's tensors live unchanged."""
    key = ("piece", *graph.placing, device)
    with torch.inference_mode(False):
        return kept(graph.edge_index, graph.edge_weight, key, lambda: LocalPiece(graph, device), together=True)

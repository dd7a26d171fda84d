"""What a layer computes on at the moment, in each thread."""

import contextlib
import threading

# piece, edges: of the innermost layer that computes on a piece
_within = threading.local()


@contextlib.contextmanager
def computing_on(piece, edges=None):
    """Within this context a layer computes on the piece: on its nodes, or on its edges, (2, any)."""
    before = current()
    _within.piece, _within.edges = piece, edges
    try:
        yield
    finally:
        _within.piece, _within.edges = before


def compute_on_edges(edges):
    """Makes these the edges on which the layer computes, until its context ends."""
    _within.edges = edges


def current():
    """Returns the piece and the edges on which a layer computes now; each may be None."""
    return getattr(_within, "piece", None), getattr(_within, "edges", None)


def refuse_other_nodes(into, dim):
    """Refuses sums, within a layer, for the nodes of other ranks: only a part of their edges is here.
    into: the tensor, or its first argument, that such a function adds to along `dim`."""
    piece, _ = current()
    if piece is None or piece.num_slots == piece.num_own or not isinstance(dim, int):
        return
    if into.dim() > 0 and into.size(dim) == piece.num_slots:
        raise NotImplementedError(
            "a layer sums over the edges that leave a node, or finds degrees in a way that Plait does not "
            "know; on a spread graph only edges into a rank's own nodes are there. Use gcn_norm or "
            "degree(edge_index[1], x.size(0)) in forward, and send what sources need by messages"
        )

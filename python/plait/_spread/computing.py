"""What a layer computes on at the moment, in each thread."""

import contextlib
import threading

# piece, edges, is_sending, node_dim: of the innermost layer that computes on a piece
_within = threading.local()


@contextlib.contextmanager
def computing_on(piece, edges, node_dim, is_sending=False):
    """Within this context a layer computes on the piece and on edges, (2, any). node_dim: the dimension of
    nodes in its rows. is_sending: it sends messages along the edges; otherwise it prepares for that, and computes
    on its nodes as well."""
    before = *current(), getattr(_within, "is_sending", False), getattr(_within, "node_dim", None)
    _within.piece, _within.edges, _within.is_sending, _within.node_dim = piece, edges, is_sending, node_dim
    try:
        yield
    finally:
        _within.piece, _within.edges, _within.is_sending, _within.node_dim = before


def compute_on_edges(edges):
    """Makes these the edges on which the layer computes, until its context ends."""
    _within.edges = edges


def is_preparing():
    """Returns whether a layer computes on a piece, and does not send messages at the moment."""
    return current()[0] is not None and not _within.is_sending


def has_stacks(rows):
    """Returns whether a layer computes now whose rows of nodes are in stacks, (stacks, nodes, width), and these
    are such rows."""
    piece, _ = current()
    return (piece is not None and _within.node_dim == -2 and rows.dim() == 3
            and rows.size(1) == piece.num_own)


def current():
    """Returns the piece and the edges on which a layer computes now; each may be None."""
    return getattr(_within, "piece", None), getattr(_within, "edges", None)


def refuse_other_nodes(into, dim):
    """Refuses sums, within a layer, for the nodes of other ranks: only a part of their edges is here.
    into: the tensor, or its first argument, that such a function adds to along `dim`."""
    piece, _ = current()
    if piece is None or piece.num_slots == piece.num_own or not isinstance(dim, int):
        return
    if -into.dim() <= dim < into.dim() and piece.num_own < into.size(dim) <= piece.num_slots:
        raise NotImplementedError(
            "a layer sums over the edges that leave a node, or finds degrees in a way that Plait does not "
            "know; on a spread graph only edges into a rank's own nodes are there. Use gcn_norm or "
            "degree(edge_index[1], x.size(0)) in forward, and send what sources need by messages"
        )

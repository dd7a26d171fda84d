"""What a layer computes on at the moment, in each thread."""

import contextlib
import threading

# graph: of the spread model; piece, edges: of the innermost layer that computes on a piece
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


def current():
    """Returns the piece and the edges on which a layer computes now; each may be None."""
    return getattr(_within, "piece", None), getattr(_within, "edges", None)


def graph_of_model():
    """Returns the plait.Graph of the spread model that computes now, or None."""
    return getattr(_within, "graph", None)


@contextlib.contextmanager
def computing_with(graph):
    """Within this context a spread model computes with the graph."""
    before, _within.graph = graph_of_model(), graph
    try:
        yield
    finally:
        _within.graph = before

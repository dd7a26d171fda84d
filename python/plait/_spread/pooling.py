"""Refuses PyTorch Geometric's pooling functions within a spread model: they would take this rank's rows for
those of all nodes."""

import contextlib
import functools
import sys

from plait._spread.dropout import graph_of_model
from plait._spread.replaced_names import Names
from plait.world import world_size

_MODULE = "torch_geometric.nn.pool.glob"  # which defines them
_POOLS = ("global_add_pool", "global_max_pool", "global_mean_pool")


@functools.cache
def _names():
    library = sys.modules[_MODULE]
    return Names([(theirs, _refusing(theirs)) for theirs in (getattr(library, name) for name in _POOLS)])


def _refusing(theirs):
    @functools.wraps(theirs)
    def pool(*args, **kwargs):
        if graph_of_model() is not None:
            raise NotImplementedError(
                f"{theirs.__name__} in a spread model would pool this rank's nodes alone; pool after the model, "
                "the rows of all nodes that data.edge_index.gather(out) returns (without gradients)")
        return theirs(*args, **kwargs)

    return pool


def find_pooling():
    """Finds the names that pooling functions have in the modules that are imported now."""
    if _MODULE in sys.modules:
        _names().search()


@contextlib.contextmanager
def pooling_refused():
    """Within this context, pooling functions are refused in a spread model, on several ranks."""
    if world_size() == 1 or _MODULE not in sys.modules:
        yield
        return
    with _names().replaced():
        yield

"""Puts other functions in the place of some of PyTorch Geometric's and torch's, wherever their names are
bound, for as long as a context lasts.

Layers call gcn_norm or degree by names of their own module, from helpers, decorated functions and base
classes. So all modules are searched that have been imported when a kind of layer is first met. The
functions that are put there act by thread: elsewhere they call the originals.
"""

import contextlib
import sys
import threading
import types

_lock = threading.Lock()


class Names:
    """The places in which functions are bound, and the functions that stand there within `replaced`."""

    def __init__(self, ours, is_place=lambda module, name: True):
        """
        Args:
            ours: a list of pairs: the original, and the function or class for its place.
            is_place: of a module's name and a name bound in it: whether it is to be replaced.
        """
        self._ours = {id(theirs): (theirs, own) for theirs, own in ours}
        self._is_place = is_place
        self._searched = {}  # module -> the number of its names
        self._places = {}  # (dictionary or cell, name) by identity -> (set, original, ours)
        self._depth = 0

    def search(self, functions=()):
        """Finds places in the modules that are imported now, and in the closures of functions."""
        for name, module in list(sys.modules.items()):
            bound = getattr(module, "__dict__", None)
            if isinstance(bound, dict) and self._searched.get(name) != len(bound):
                self._searched[name] = len(bound)
                for key, value in list(bound.items()):
                    if id(value) in self._ours and self._is_place(name, key):
                        self._add((id(bound), key), _setter(bound, key), value)
        for function in functions:
            for cell in getattr(function, "__closure__", None) or ():
                with contextlib.suppress(ValueError):  # an empty cell
                    if id(cell.cell_contents) in self._ours:
                        self._add((id(cell), None), _setter(cell, None), cell.cell_contents)

    def _add(self, place, put, value):
        theirs, own = self._ours[id(value)]
        with _lock:
            if place not in self._places:
                self._places[place] = put, theirs, own
                if self._depth:
                    put(own)

    @contextlib.contextmanager
    def replaced(self):
        with _lock:
            self._depth += 1
            if self._depth == 1:
                for put, _, own in self._places.values():
                    put(own)
        try:
            yield
        finally:
            with _lock:
                self._depth -= 1
                if self._depth == 0:
                    for put, theirs, _ in self._places.values():
                        put(theirs)


def _setter(place, key):
    if isinstance(place, types.CellType):
        def put(value):
            place.cell_contents = value
    else:
        def put(value):
            place[key] = value
    return put

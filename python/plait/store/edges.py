"""plait.store.GraphStore: edges by type."""

import copy

import torch
import torch_geometric.data
from torch_geometric.data.graph_store import EdgeLayout

from plait._edges.ids import check_ids, check_integers, check_sorted, first_where
from plait._edges.inputs import whole_number

# Layout -> the end, of row (0: sources) and col (1: targets), that holds offsets of edges instead of ids.
_OFFSETS = {EdgeLayout.COO: None, EdgeLayout.CSR: 0, EdgeLayout.CSC: 1}
_ENDS = "row", "col"


class GraphStore(torch_geometric.data.GraphStore):
    """Edges by type, as torch_geometric.data.GraphStore: `put_edge_index((row, col), edge_type, layout, is_sorted,
    size)` and `get_edge_index(edge_type, layout)`.

    A type is (source type, name, target type), or None in a graph without types. `size`: the numbers of sources
    and targets. Layouts: "coo", ids of sources and targets; "csc", in which col has the offsets of the targets'
    edges; "csr", in which row has those of the sources. Any layout can be asked for: edges that were put in
    another one are converted, which sorts them.

    Args:
        file: the result of plait.store.load, for its edges, of type None. None: the store is empty.

    Tensors are kept, not copied, and must not be changed.

    Raises KeyError for a type that the store does not have, and ValueError for an end that is no node, offsets
    that do not ascend, edges that are not sorted as is_sorted promises, and sizes that are missing or contradict
    those of other edges; the message names the first wrong place.
    """

    def __init__(self, file=None):
        super().__init__()
        self._edges = {}  # type -> layout -> attributes, (row, col)
        self._file = file  # the edges of type None in layout "csc", if there is no tensor instead
        if file is not None:
            self._edges[None] = {EdgeLayout.CSC: (
                self._edge_attr_cls(None, EdgeLayout.CSC, size=(file.num_nodes, file.num_nodes)), None)}

    def num_nodes(self, node_type=None):
        """Returns the number of nodes of a type; None if no edges have this type at an end."""
        for kind, layouts in self._edges.items():
            for attr, _ in layouts.values():
                for end, count in zip(_types_of(kind), attr.size):
                    if end == node_type:
                        return count
        return None

    def get_all_edge_attrs(self):
        """Returns the attributes of all edges, by type and layout."""
        return [copy.copy(attr) for layouts in self._edges.values() for attr, _ in layouts.values()]

    def _put_edge_index(self, edge_index, edge_attr):
        attr = copy.copy(edge_attr)
        name = f"edges of type {attr.edge_type!r}: "
        attr.size = self._checked_size(name, attr)
        try:
            index = tuple(map(torch.as_tensor, edge_index))
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{name}the index is not made of tensors ({error}); give (row, col)") from None
        check_index(name, index, attr)
        self._edges.setdefault(attr.edge_type, {})[attr.layout] = attr, index
        return True

    def _checked_size(self, name, attr):
        size = size_of(name, attr)
        ends = _types_of(attr.edge_type)
        if ends[0] == ends[1] and size[0] != size[1]:
            raise ValueError(f"{name}both ends are nodes of one type, but size is {size}; give one number twice")
        for end, count in zip(ends, size):
            known = self._without(attr).num_nodes(end)
            if known not in (None, count):
                raise ValueError(f"{name}size is {size}, but of nodes of type {end!r} there are {known} by other edges; "
                                 "correct it")
        return size

    def _without(self, attr):
        """Returns the store as it is without these edges, which are replaced."""
        others = copy.copy(self)
        layouts = {layout: kept for layout, kept in self._edges.get(attr.edge_type, {}).items() if layout != attr.layout}
        others._edges = {**self._edges, attr.edge_type: layouts}
        return others

    def _get_edge_index(self, edge_attr):
        layouts = self._edges.get(edge_attr.edge_type)
        if not layouts:
            there = ", ".join(repr(kind) for kind, kept in self._edges.items() if kept) or "no edges"
            raise KeyError(f"edges of type {edge_attr.edge_type!r} are not in the store, which has {there}")
        if edge_attr.layout in layouts:
            index = layouts[edge_attr.layout][1]
            return self._file.csc if index is None else index
        attr = min((attr for attr, _ in layouts.values()), key=lambda each: each.layout.value)
        return self._edge_to_layout(attr, edge_attr.layout)[:2]

    def _remove_edge_index(self, edge_attr):
        layouts = self._edges.get(edge_attr.edge_type, {})
        found = layouts.pop(edge_attr.layout, None) is not None
        if not layouts:
            self._edges.pop(edge_attr.edge_type, None)
        return found


def _types_of(edge_type):
    """Returns the types of sources and of targets."""
    return (None, None) if edge_type is None else (edge_type[0], edge_type[-1])


def size_of(name, attr, *, inferred=False):
    """Returns the numbers of sources and of targets; None if they are missing and may be `inferred`. Raises ValueError
    unless the type of the edges and the numbers are right."""
    kind, size = attr.edge_type, attr.size
    if kind is not None and not (
            isinstance(kind, tuple) and len(kind) == 3 and all(isinstance(part, str) for part in kind)):
        raise ValueError(f"{name}give (source type, name, target type), or None")
    try:
        given = (None,) if size is None else tuple(each if each is None else whole_number("size", each) for each in size)
    except (TypeError, ValueError):
        given = ()
    if None in given:
        if inferred:
            return None
        raise ValueError(f"{name}the numbers of nodes are not known; give size=(sources, targets)")
    if len(given) != 2 or min(given) < 0:
        raise ValueError(f"{name}size is {size!r}; give (sources, targets), both 0 or more")
    return given


def check_index(name, index, attr):
    """Raises ValueError unless (row, col) is what its attributes say: layout, size, and whether it is sorted."""
    if len(index) != 2 or any(each.dim() != 1 for each in index):
        raise ValueError(f"{name}the index has shapes {[tuple(each.shape) for each in index]}; give (row, col), both "
                         "of one dimension")
    of_offsets = _OFFSETS[attr.layout]
    edges = index[0 if of_offsets == 1 else 1].numel()
    for end, each in enumerate(index):
        if end == of_offsets:
            _check_offsets(f"{name}{_ENDS[end]}", each, attr.size[end], edges)
        else:
            check_ids(f"{name}{_ENDS[end]}", each, attr.size[end])
    if of_offsets is None and index[0].numel() != edges:
        raise ValueError(f"{name}row has {index[0].numel()} ids, but col has {edges}; give one of each for an edge")
    if of_offsets is None and attr.is_sorted:
        check_sorted(f"{name}col", index[1])


def _check_offsets(name, offsets, nodes, edges):
    check_integers(name, offsets)
    if offsets.numel() != nodes + 1:
        raise ValueError(f"{name} has {offsets.numel()} offsets for {nodes} nodes; give {nodes + 1}")
    if (int(offsets[0]), int(offsets[-1])) != (0, edges):
        raise ValueError(f"{name} has offsets from {int(offsets[0])} to {int(offsets[-1])}; they must be from 0 to "
                         f"{edges}, the number of edges")
    place = first_where(offsets[1:] < offsets[:-1])
    if place is not None:
        raise ValueError(f"{name}[{place + 1}] is {int(offsets[place + 1])}, after {int(offsets[place])}; offsets must "
                         "not descend")

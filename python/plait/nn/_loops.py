"""One loop for each node that is source and target, as layers of PyTorch Geometric add them at each call;
here the edges with loops are kept, and so are lists that are made of them."""

import dataclasses

import torch
from torch_geometric.utils.loop import compute_loop_attr

from plait._edges.adjacency import kept
from plait._edges.values import edge_ends, sum_of_edges
from plait.nn._slow import Slow, left_to_theirs


@dataclasses.dataclass(frozen=True)
class _Looped:
    index: torch.Tensor  # (2, E + nodes): other edges, then one loop for each node
    others: torch.Tensor  # the places of edges that are no loops; None if there are no loops
    degree: torch.Tensor  # (nodes, 1): the number of other edges to each node, at least 1


def with_loops(given, pair, fill_value, piece):
    """Replaces the edges, and the features of edges, in the arguments of a layer's call by those with loops.

    Args:
        given: the arguments by name, changed in place.
        pair: the rows of sources and of targets, which may be None.
        fill_value: as in torch_geometric.utils.add_self_loops.
        piece: of a spread graph (plait._spread.local_piece), whose own nodes come first among its slots; or None.

    Returns the edges, which are kept and must not be changed; None if the layer has to add loops."""
    index, attr = given["edge_index"], given.get("edge_attr")
    if type(index) is not torch.Tensor or index.layout != torch.strided or (
            index.dim() != 2 or index.size(0) != 2 or index.dtype not in (torch.int64, torch.int32)):
        raise Slow("edges", "edges that are no tensor (2, E) of ids")
    rows = [each.size(0) for each in pair if each is not None]
    size = given.get("size") or (rows[0], rows[-1])
    if piece is not None:
        size = piece.num_slots, piece.num_own
    nodes = min(given.get("size") or rows)
    with torch.inference_mode(False):
        looped = kept(index, None, ("one loop each", nodes), lambda: _looped(index, nodes))
    if attr is not None:
        if not isinstance(attr, torch.Tensor) or attr.dim() == 0 or attr.size(0) != index.size(1):
            raise Slow("edge_attr", "edge_attr of another number of rows")
        attr = attr.view(-1, 1) if attr.dim() == 1 else attr
        with left_to_theirs(not index.is_cuda and piece is None):
            given["edge_attr"] = _attr_with_loops(looped, attr, fill_value, size)
    given["edge_index"] = looped.index
    return looped.index


def _looped(index, nodes):
    is_other = index[0] != index[1]
    others = None if bool(is_other.all()) else is_other.nonzero(as_tuple=True)[0]
    without = index if others is None else index[:, others]
    loops = torch.arange(nodes, dtype=index.dtype, device=index.device).expand(2, -1)
    to_both = without[1][without[1] < nodes].long()
    degree = torch.bincount(to_both.clamp(min=0), minlength=nodes).clamp(min=1).float()
    return _Looped(torch.cat([without, loops], 1), others, degree.unsqueeze(1))


def _attr_with_loops(looped, attr, fill_value, size):
    if looped.others is not None:
        attr = attr[looped.others]
    nodes = looped.degree.size(0)
    by_edge = fill_value == "mean" if isinstance(fill_value, str) else False
    if by_edge and attr.dim() == 2 and attr.dtype == torch.float32 and attr.device == looped.index.device:
        ends = edge_ends(looped.index, *size)
        sums = sum_of_edges(ends, torch.cat([attr, attr.new_zeros(nodes, attr.size(1))]))
        loops = sums[:nodes] / looped.degree
    else:
        without = looped.index[:, :attr.size(0)]
        loops = compute_loop_attr(without, attr, nodes, False, fill_value)
    return torch.cat([attr, loops])

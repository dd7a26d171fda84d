"""gcn_norm, degree, one_hot and scatter of PyTorch Geometric, as a layer finds them that computes on a
piece of a spread graph (plait._spread.conv)."""

import functools
import types

import torch
from torch_geometric import utils
from torch_geometric.nn.conv import gcn_conv

from plait._edges.adjacency import inverse_root
from plait._edges.rows import reduce
from plait._library import ops
from plait._spread.computing import compute_on_edges, current, is_preparing
from plait._spread.replaced_names import Names
from plait.world import counts_of_ranks


def _gcn_norm(edge_index, edge_weight=None, num_nodes=None, improved=False, add_self_loops=True,
              flow="source_to_target", dtype=None):
    """As torch_geometric.nn.conv.gcn_conv.gcn_norm, for edges of the current piece: degrees are those
    of the whole graph."""
    piece, _ = current()
    if edge_weight is None:
        edge_weight = torch.ones(edge_index.size(1), dtype=dtype, device=edge_index.device)
    if add_self_loops:
        edge_index, edge_weight = utils.add_remaining_self_loops(
            edge_index, edge_weight, 2.0 if improved else 1.0, piece.num_own)
    source, target = edge_index
    degree = edge_weight.new_zeros(piece.num_own).scatter_add(0, target, edge_weight)
    scale = inverse_root(degree, piece)
    compute_on_edges(edge_index)
    return edge_index, piece.bring(scale)[source] * edge_weight * scale[target]


def _degree(index, num_nodes=None, dtype=None):
    """As torch_geometric.utils.degree of the targets, for every slot of the current piece."""
    piece, _ = current()
    if num_nodes != piece.num_own:
        raise NotImplementedError(f"degree(..., num_nodes={num_nodes}) on a spread graph; give the "
                                  "number of rows of x, and count edges by their targets")
    ones = torch.ones(index.size(0), dtype=torch.float32, device=index.device)
    degree = ones.new_zeros(piece.num_own).scatter_add(0, index, ones)
    return piece.bring(degree).to(dtype or torch.get_default_dtype())


def _one_hot(index, num_classes=None, dtype=None):
    """As torch_geometric.utils.one_hot, with the number of classes of all ranks."""
    if num_classes is None:
        ops.wait_for(index)
        here = int(index.max()) + 1 if index.numel() else 0
        num_classes = max(counts_of_ranks("one_hot", here))
    return _originals["one_hot"](index, num_classes, dtype)


def _within_layers(theirs, ours):
    @functools.wraps(theirs)
    def function(*args, **kwargs):
        return (ours if is_preparing() else theirs)(*args, **kwargs)

    return function


@functools.wraps(utils.scatter)
def _scatter(*args, **kwargs):
    return reduce(_originals["scatter"], current()[0], *args, **kwargs)


def _is_place(module, name):
    # Layers of PyTorch Geometric take degrees of targets, by names of their own modules.
    return ("degree" not in name or module == "torch_geometric.utils"
            or not module.startswith("torch_geometric."))


_originals = {"gcn_norm": gcn_conv.gcn_norm, "degree": utils.degree, "one_hot": utils.one_hot,
              "scatter": utils.scatter}
_names = Names([(_originals[name], _within_layers(_originals[name], ours))
                for name, ours in (("gcn_norm", _gcn_norm), ("degree", _degree), ("one_hot", _one_hot))]
               + [(_originals["scatter"], _scatter)], _is_place)

of_whole_graph = _names.replaced


def find_names(cls):
    """Finds the places in which a class of layers may look for the functions."""
    _names.search(value for each in cls.__mro__ for value in vars(each).values()
                  if isinstance(value, types.FunctionType))

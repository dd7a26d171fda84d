"""Pairs of nodes that are no edges."""

import numbers

import torch

from plait._devices import samples_on
from plait._draws import draw_key
from plait._edges.ids import whole_ids
from plait._edges.inputs import as_edges, whole_number
from plait.graph import count_nodes


class NonEdges:
    """The pairs of nodes of a graph that are no edges, prepared once for many draws.

    Draws depend on one number of torch's generator, so that torch.manual_seed repeats them, on any number of
    threads and on either device: pairs are drawn where the edges are. Every pair is equally likely, in dense graphs too.

    Args:
        edge_index: (2, E), integers, or another source of edges that plait.Graph takes.
        num_nodes: N, or (sources, targets) of a graph between two sets of nodes. None: the number that edge_index
            has, or the largest id + 1.
        loops: whether a node and itself are a pair. None: only between two sets of nodes.
        ascending: take pairs (u, v) with u < v alone, as for an undirected graph.

    Raises ValueError for an id out of range, with its place.
    """

    def __init__(self, edge_index, num_nodes=None, loops=None, ascending=False):
        edges = as_edges(edge_index)
        if num_nodes is None:
            num_nodes = count_nodes(edges.index) if edges.num_nodes is None else edges.num_nodes
        two_sets = isinstance(num_nodes, (tuple, list))
        size = _checked_size(num_nodes, two_sets)
        if ascending and two_sets:
            raise ValueError("pairs between two sets of nodes are not ascending; leave ascending out")
        loops = two_sets if loops is None else loops
        if two_sets and not loops:
            raise ValueError("pairs between two sets of nodes have no loops to leave out; leave out loops=False "
                             "(contains_neg_self_loops=False)")
        self._ascending = ascending
        if two_sets:
            _check_ends(edges.index, size)
        self.device = edges.index.device
        self._given = edges.index.cpu(), *size, 2 if ascending else 0 if loops else 1
        self._pairs = torch.classes.plait.NonEdges(*self._given)

    def __len__(self):
        """Returns the number of pairs."""
        return self._pairs.count()

    def sample(self, count, replace=False):
        """Returns (2, M), pairs in no particular order: M is `count` or, if they are to differ, at most len(self). If
        there are no pairs, M is 0."""
        return self.sample_on(self.device, count, replace)

    def sample_on(self, device, count, replace=False):
        """As sample(), but the pairs are drawn on another device than that of the edges."""
        place = _drawing_place(device)
        return self._pairs.draw(whole_number("count", count), replace, draw_key(), place).to(device)

    @property
    def size(self):
        """The numbers of nodes that sources and targets are of."""
        return self._given[1:3]

    @property
    def ascending(self):
        """Whether the first node of each pair is below the second."""
        return self._ascending

    def targets(self, source):
        """Returns a node for each node of `source`, (n,), to which no edge leads from there. Raises ValueError for a
        node that has edges to all others, and for pairs that ascend."""
        if self._ascending:
            raise ValueError("targets are of pairs in both directions; leave ascending out")
        ids = whole_ids("source", source)
        return self._pairs.draw_columns(ids.to(_drawing_place(ids.device)), draw_key()).to(ids.device)

    def check_sources(self, source):
        """Raises ValueError for a node of `source` that has edges to all others, as targets() does, but draws nothing."""
        self._pairs.draw_columns(whole_ids("source", source).cpu().unique(), 0)

    def __getstate__(self):
        return self._given, self.device, self._ascending

    def __setstate__(self, given):
        self._given, self.device, self._ascending = given
        self._pairs = torch.classes.plait.NonEdges(*self._given)


def _drawing_place(device):
    """Returns where pairs for a device are drawn, a torch.device: there if Plait can, else on the CPU."""
    place = torch.device(device)
    if place.type != "cuda" or not samples_on(place):
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device()) if place.index is None else place


def _checked_size(num_nodes, two_sets):
    try:
        size = tuple(whole_number("num_nodes", count) for count in (num_nodes if two_sets else (num_nodes,) * 2))
    except (TypeError, ValueError):
        size = ()
    if len(size) != 2 or min(size) < 0:
        raise ValueError(f"num_nodes is {num_nodes!r}; give a number of nodes, or (sources, targets)")
    return size


def _check_ends(edge_index, size):
    for end, count in enumerate(size):
        wrong = (edge_index[end] >= count).nonzero()
        if wrong.numel():
            place = int(wrong[0])
            raise ValueError(f"edge_index[{end}, {place}] is {int(edge_index[end, place])}, outside 0..{count - 1}; "
                             "correct it, or raise num_nodes")


def negative_sampling(edge_index, num_nodes=None, num_neg_samples=None, method="sparse", force_undirected=False):
    """Returns (2, M): different pairs of nodes that are no edges, as torch_geometric.utils.negative_sampling, but
    exactly as many as are asked for, or all if there are fewer.

    Args:
        edge_index, num_nodes: see plait.NonEdges. Loops count as pairs only if num_nodes has two numbers.
        num_neg_samples: M; a float: that many for each edge. None: one for each edge.
        method: "sparse" or "dense", which makes no difference here.
        force_undirected: return M // 2 pairs, and then the same in the other direction.
    """
    if method not in ("sparse", "dense"):
        raise ValueError(f"method is {method!r}; give 'sparse' or 'dense'")
    undirected = force_undirected and not isinstance(num_nodes, (tuple, list))
    pairs = NonEdges(edge_index, num_nodes, ascending=undirected)
    edges = as_edges(edge_index).index.size(1)
    if num_neg_samples is None:
        num_neg_samples = edges
    elif not isinstance(num_neg_samples, numbers.Integral):
        num_neg_samples = int(num_neg_samples * edges)
    if not undirected:
        return pairs.sample(num_neg_samples)
    found = pairs.sample(num_neg_samples // 2)
    return torch.cat([found, found.flip(0)], dim=1)


def structured_negative_sampling(edge_index, num_nodes=None, contains_neg_self_loops=True):
    """Returns (i, j, k), (E,) each: for each edge (i, j) a pair (i, k) that is no edge, as
    torch_geometric.utils.structured_negative_sampling. Raises ValueError for a node that has edges to all nodes.

    Args:
        edge_index, num_nodes: see plait.NonEdges.
        contains_neg_self_loops: whether k may be i.
    """
    edges = as_edges(edge_index).index
    return edges[0], edges[1], NonEdges(edge_index, num_nodes, loops=contains_neg_self_loops).targets(edges[0])

"""Random walks on graphs."""

import torch

from plait._devices import samples_on
from plait._draws import draw_key
from plait._edges.ids import whole_ids
from plait._edges.inputs import as_edges, real_number, whole_number
from plait.graph import count_nodes

_VISITS_AT_ONCE = 2**24  # a GPU keeps some copies of them


class RandomWalks:
    """Random walks on one graph, which is prepared once for many calls.

    A step leads along an edge, from edge_index[0, e] to edge_index[1, e]. A walk stays at a node that no edge
    leaves. Walks depend on one number of torch's generator, so that torch.manual_seed repeats them, on any number
    of threads and on either device, and on the place of a start in `start`, but not on the other starts.

    Walks are made on the device of their starts. The first from starts on a GPU copies the graph there, and the
    copy is kept. A build without the GPU engine makes all walks on the CPU.

    Args:
        edge_index: (2, E), integers, or another source of edges that plait.Graph takes. Parallel edges count.
        num_nodes: N. None: the number that edge_index has, or the largest id + 1.
        edge_weight: (E,), float32, finite and >= 0: a step takes edges in proportion. None: the weights of
            edge_index, or all edges are equally likely.

    The edges are copied: later changes of edge_index do not matter, except to copies that are pickled after them.

    On several ranks every rank walks for its own starts; nothing is exchanged.

    Raises ValueError for an id out of range or a wrong weight, with its place.
    """

    def __init__(self, edge_index, num_nodes=None, edge_weight=None):
        edges = as_edges(edge_index, edge_weight)
        if num_nodes is None:
            num_nodes = count_nodes(edges.index) if edges.num_nodes is None else edges.num_nodes
        self._given = edges.index, whole_number("num_nodes", num_nodes), edges.weight
        self._walks = torch.classes.plait.RandomWalks(*self._given)

    @property
    def num_nodes(self):
        return self._given[1]

    def walk(self, start, walk_length, p=1.0, q=1.0, restart=0.0):
        """Returns the walks from the nodes `start`, (n,): (n, walk_length + 1) nodes, each row a start and where
        each step has led, on the device of `start`, as torch_cluster.random_walk.

        Args:
            p, q: as in node2vec (Grover and Leskovec, KDD 2016): of the edges of a node that was reached from t,
                one that leads to t has the weight 1 / p, one that leads to a node with an edge to t the weight 1,
                and the others 1 / q, all times edge_weight. 1e-9 to 1e9.
            restart: the chance that a step leads back to the start instead, 0 <= restart < 1.

        Raises ValueError for a start that is no node, with its place, and for numbers out of range.
        """
        ids = whole_ids("start", start)
        here = ids if samples_on(ids.device) else ids.cpu()
        steps = whole_number("walk_length", walk_length)
        p, q, restart = (real_number(name, value) for name, value in (("p", p), ("q", q), ("restart", restart)))
        return self._walks.walk(here, steps, p, q, restart, draw_key(), 0).to(ids.device)

    def neighbors(self, start, num_neighbors, num_walks=200, walk_length=3, restart=0.5):
        """Returns the nodes that matter most to each node of `start`, (n,), by random walks: those that
        `num_walks` walks of `walk_length` steps visit most often, at most `num_neighbors` of them, without the
        start (PinSAGE, Ying et al., KDD 2018, section 3.1).

        Returns (edge_index, visits): edge_index is (2, M), a column from a visited node to its start; visits is
        (M,), float32: the steps that led there, over the steps to all nodes kept for this start, so that they are
        weights of a mean. Of a start's nodes the most visited come first.

        Raises ValueError as walk() does.
        """
        ids = whole_ids("start", start)
        given = {"walk_length": walk_length, "num_walks": num_walks, "num_neighbors": num_neighbors}
        settings = tuple(whole_number(name, value) for name, value in given.items())
        for name in ("num_walks", "num_neighbors"):
            if given[name] < 1:
                raise ValueError(f"{name} is {given[name]}, but must be at least 1")
        restart = real_number("restart", restart)
        on_gpu = ids.is_cuda and samples_on(ids.device)
        find = self._visited_there if on_gpu else self._visited_here
        place, nodes, visits = (each.to(ids.device) for each in find(ids, settings, restart, draw_key()))
        sums = visits.new_zeros(ids.numel()).index_add_(0, place, visits)
        return torch.stack([nodes, ids[place]]), visits.float() / sums[place].float()

    def _visited_here(self, ids, settings, restart, key):
        """Returns what _most_visited() returns, found on the CPU. `settings`: the length and number of
        walks, and the number of nodes."""
        offsets, nodes, visits = self._walks.most_visited(ids.cpu(), *settings, restart, key)
        return torch.repeat_interleave(offsets.diff()), nodes, visits

    def _visited_there(self, ids, settings, restart, key):
        """Does the same on the device of ids, for as many starts at a time as have 2^24 visits."""
        self._visited_here(ids[:0], settings, restart, key)  # checks the settings
        self._walks.walk(ids, 0, 1.0, 1.0, restart, key, 0)  # checks the starts
        length, walks, count = settings
        found = []
        for begin, some in _blocks(ids, max(1, _VISITS_AT_ONCE // max(1, walks * length))):
            walk = self._walks.walk(some.repeat_interleave(walks), length, 1.0, 1.0, restart, key, begin * walks)
            place, *rest = _most_visited(walk[:, 1:].reshape(some.numel(), walks * length), some, self.num_nodes, count)
            found.append((place + begin, *rest))
        return map(torch.cat, zip(*found)) if found else (ids[:0],) * 3

    def __getstate__(self):
        return self._given

    def __setstate__(self, given):
        self._given = given
        self._walks = torch.classes.plait.RandomWalks(*given)


def _blocks(ids, size):
    """Yields (place of the first, ids) of blocks of at most that size."""
    return ((begin, ids[begin:begin + size]) for begin in range(0, ids.numel(), size))


def _most_visited(visited, start, num_nodes, count):
    """Returns (place, node, visits), (M,) each: at most `count` nodes of each start, without itself, the most visited
    first, of equals the least id.

    Args:
        visited: (n, steps), the nodes that the walks of each start have visited.
        start: (n,). `place` is in it.
    """
    place = torch.arange(start.numel(), device=start.device)
    names = (place[:, None] * num_nodes + visited)[visited != start[:, None]]
    names, visits = names.unique(return_counts=True)  # ascending
    order = visits.argsort(descending=True, stable=True)
    order = order[(names[order] // num_nodes).argsort(stable=True)]
    names, visits = names[order], visits[order]
    place = names // num_nodes
    found = place.bincount(minlength=start.numel())
    rank = torch.arange(place.numel(), device=start.device) - (found.cumsum(0) - found)[place]
    kept = rank < count
    return place[kept], names[kept] % num_nodes, visits[kept]


def random_walk(edge_index, start, walk_length, p=1.0, q=1.0, restart=0.0, num_nodes=None, edge_weight=None):
    """Returns plait.RandomWalks(edge_index, num_nodes, edge_weight).walk(start, walk_length, p, q, restart), which
    prepares the graph for this one call."""
    return RandomWalks(edge_index, num_nodes, edge_weight).walk(start, walk_length, p, q, restart)

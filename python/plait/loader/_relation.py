"""The edges of one kind, from which neighbours are drawn in C++."""

import itertools
import typing

import torch

from plait._ids import check_integers
from plait._library import ops  # noqa: F401 (registers torch.classes.plait)


class Settings(typing.NamedTuple):
    """What a sample depends on besides the edges. `fanouts`: edges per vertex, by hop; -1: all."""

    fanouts: tuple
    replace: bool
    disjoint: bool
    last: bool  # of edges that are not later than the seed, the latest


class Relation:
    """Edges by target: those into target i come from row[colptr[i]:colptr[i + 1]].

    Args:
        colptr, row: int64.
        sources: the number of sources.
        weights, edge_times: one per edge, in the order of `row`, or None.
        source_times: one per source, or None.

    One C++ sampler numbers sources and targets alike, so that it has as many vertices as the more numerous
    of the two. Forked processes share its memory; in a pickle it is left out, and made again when first used.
    """

    def __init__(self, colptr, row, sources, weights=None, edge_times=None, source_times=None):
        self.colptr, self.row = colptr.long(), row.long()
        self.sources, self.targets = sources, colptr.numel() - 1
        self._weights = None if weights is None else weights.cpu().float()
        # Names of a graph's times have been checked; these are of a store.
        self._edge_times, self._source_times = (_whole("time_attr", each) for each in (edge_times, source_times))
        self._made = {}

    @property
    def is_temporal(self):
        return self._edge_times is not None or self._source_times is not None

    def sample(self, seeds, key, settings, times=None):
        """Returns what torch.classes.plait.NeighbourSampler.sample returns: (row, col, node, edge, tree or
        None, nodes by hop, edges by hop). Numbers of nodes are places in `node`; edges are places in `row`.
        `times`: one per seed, if the relation is temporal."""
        times = _whole("the time of seeds", times) if self.is_temporal else None
        return self.sampler(settings).sample(seeds.long(), key, times)

    def sampler(self, settings):
        """Returns the C++ sampler with these settings, which is kept."""
        settings = settings._replace(last=settings.last and self.is_temporal)
        if settings not in self._made:
            self._made[settings] = self._make(settings)
        return self._made[settings]

    def _make(self, settings):
        missing = max(self.sources - self.targets, 0)
        rows = torch.cat([self.colptr, self.colptr[-1:].expand(missing)]) if missing else self.colptr
        times = self._source_times
        if times is not None and self.targets > self.sources:
            times = torch.cat([times, times.new_zeros(self.targets - self.sources)])  # of no source
        fanouts, replace, disjoint, last = settings
        return torch.classes.plait.NeighbourSampler(rows, self.row, list(fanouts), replace, disjoint, False, last,
                                                    self._weights, self._edge_times, times)

    def induced(self, sources, targets):
        """Returns (row, col, edge): all edges between the given sources and targets, by target, as places in
        these tensors and in `row`. Edges from a repeated source are numbered by its first place."""
        begin, degree = self.colptr[targets], self.colptr[targets + 1] - self.colptr[targets]
        col = torch.repeat_interleave(degree)
        edge = torch.arange(col.numel()) + (begin - degree.cumsum(0) + degree)[col]
        ids, place = sources.sort(stable=True)
        found = torch.searchsorted(ids, self.row[edge]).clamp_(max=max(ids.numel() - 1, 0))
        inside = ids[found] == self.row[edge] if ids.numel() else edge.new_zeros(edge.numel(), dtype=torch.bool)
        return place[found[inside]], col[inside], edge[inside]

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}


def _whole(name, times):
    if times is None:
        return None
    check_integers(name, times)
    return times.cpu().long()


def before_zero(fanouts):
    """Returns the fan-outs before the first 0, from where on nothing is found."""
    return tuple(itertools.takewhile(bool, fanouts))


def padded(counts, length):
    """Returns counts by hop, with zeros up to `length` hops."""
    return [*counts, *[0] * (length - len(counts))]

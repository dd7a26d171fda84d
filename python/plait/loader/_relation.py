"""The edges of one kind, from which neighbours are drawn in C++."""

import itertools
import os
import typing
import weakref

import torch

from plait._edges.ids import check_ids, check_integers
from plait._library import ops  # noqa: F401 (registers torch.classes.plait)
from plait.loader._plain_edges import plain_seeds


_KEPT = 16  # samplers; each holds some bytes per vertex, and hops of several types have one each

_recorded = weakref.WeakSet()  # relations whose ids a stream has been recorded to read
_kept_by_fork = []


def _keep_recorded():
    """To free what is recorded is work for a GPU, which a forked process cannot use."""
    _kept_by_fork.extend(relation._edge_ids for relation in _recorded)


os.register_at_fork(after_in_child=_keep_recorded)


class Settings(typing.NamedTuple):
    """What a sample depends on besides the edges. `fanouts`: edges per vertex, by hop; -1: all."""

    fanouts: tuple
    replace: bool
    disjoint: bool
    last: bool  # of edges that are not later than the seed, the latest


class Edges(typing.NamedTuple):
    """Edges by target: the edges into target i come from row[colptr[i]:colptr[i + 1]]."""

    colptr: torch.Tensor
    row: torch.Tensor
    ids: torch.Tensor | None = None  # one per edge, in the order of `row`; None: its place there


class Values(typing.NamedTuple):
    """The values that edges are drawn by. Weights and times of edges are in the order of Edges.row. None: there are
    no such values."""

    weights: torch.Tensor | None = None
    edge_times: torch.Tensor | None = None
    source_times: torch.Tensor | None = None


class Relation:
    """Edges of one kind with the values that they are drawn by.

    Args:
        sources: the number of sources.
        device: where samples are made; their tensors are there, too.

    One C++ sampler numbers sources and targets alike, so that it has as many vertices as the more numerous
    of the two. Forked processes share its memory; in a pickle it is left out, and made again when first used.
    """

    def __init__(self, edges, sources, values, device):
        self.sources, self.targets = sources, edges.colptr.numel() - 1
        self.colptr = edges.colptr.to(device).long()
        self.row = _ids("row", edges.row, max(self.sources, self.targets), device)
        self._edge_ids = None if edges.ids is None else _ids("perm", edges.ids, edges.row.numel(), device)
        self._weights = None if values.weights is None else values.weights.to(device).float()
        # The sampler has checked these times under the name that its caller gave them.
        self._edge_times, self._source_times = (
            _whole("time_attr", times, device) for times in (values.edge_times, values.source_times))
        self._made = {}

    @property
    def is_temporal(self):
        return self._edge_times is not None or self._source_times is not None

    def sample(self, seeds, key, settings, times=None):
        """Returns what torch.classes.plait.NeighbourSampler.sample returns: (row, col, node, edge, tree or
        None, nodes by hop, edges by hop), but with ids of edges. Numbers of nodes are places in `node`.
        `times`: one per seed, if the relation is temporal. Seeds that are where the edges are stay there."""
        seeds = plain_seeds(seeds)
        seeds = (seeds if seeds.device == self.row.device else seeds.cpu()).long()
        times = _whole("the time of seeds", times, seeds.device) if self.is_temporal else None
        row, col, node, edge, *rest = self.sampler(settings).sample(seeds, key, times)
        return row, col, node, self._named(edge), *rest

    def sampler(self, settings):
        """Returns the C++ sampler with these settings. Those of the last few settings are kept."""
        settings = settings._replace(last=settings.last and self.is_temporal)
        made = self._made.pop(settings, None)
        if made is None:
            made = self._make(settings)
        self._made[settings] = made  # behind all others
        for oldest in [*self._made][:-_KEPT]:
            self._made.pop(oldest, None)
        return made

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
        these tensors and as ids. Edges from a repeated source are numbered by its first place."""
        begin, degree = self.colptr[targets], self.colptr[targets + 1] - self.colptr[targets]
        col = torch.repeat_interleave(degree)
        edge = torch.arange(col.numel(), device=col.device) + (begin - degree.cumsum(0) + degree)[col]
        ids, place = sources.sort(stable=True)
        source = self.row[edge].long()
        found = torch.searchsorted(ids, source).clamp_(max=max(ids.numel() - 1, 0))
        inside = ids[found] == source if ids.numel() else edge.new_zeros(edge.numel(), dtype=torch.bool)
        return place[found[inside]], col[inside], self._named(edge[inside])

    def pairs(self):
        """Returns (2, E) on the CPU: the source and the target of each edge, by target."""
        return torch.stack([self.row.cpu().long(), torch.repeat_interleave(self.colptr.cpu().diff())])

    def _named(self, places):
        if self._edge_ids is None:
            return places
        if self._edge_ids.is_cuda:  # they stay until this stream has read them, even if the sampler goes
            self._edge_ids.record_stream(torch.cuda.current_stream(self._edge_ids.device))
            _recorded.add(self)
        return self._edge_ids[places].long()

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}


def _ids(name, values, count, device):
    """Returns ids below `count` on a device: on a GPU, whose memory is short, as int32 if that suffices. Raises
    ValueError for others before they are narrowed."""
    if torch.device(device).type == "cuda" and count <= 2**31:
        check_ids(name, values, count)
        return values.to(torch.int32).to(device)
    return values.to(device).long()


def _whole(name, times, device):
    if times is None:
        return None
    check_integers(name, times)
    return times.to(device).long()


def before_zero(fanouts):
    """Returns the fan-outs before the first 0, from where on nothing is found."""
    return tuple(itertools.takewhile(bool, fanouts))


def padded(counts, length):
    """Returns counts by hop, with zeros up to `length` hops."""
    return [*counts, *[0] * (length - len(counts))]

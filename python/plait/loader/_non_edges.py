"""Negative edges of LinkNeighborLoader that are no edges of the graph."""

import math

import torch
from torch_geometric.sampler import NegativeSampling

from plait.negatives import NonEdges


def pairs_without_edges(given, sampler, inputs):
    """Returns the plait.NonEdges that the argument `non_edges` of a loader means. `inputs`: the loader's
    EdgeSamplerInput."""
    if not hasattr(sampler, "edges_of"):
        raise ValueError("non_edges needs Plait's sampler; leave neighbor_sampler out, or give a "
                         "plait.loader.sampler.NeighborSampler")
    if sampler.node_time is not None:
        raise ValueError("non_edges does not regard times of nodes, so that negative nodes could be later than their "
                         "edge; leave it out")
    kind = inputs.input_type
    sources, targets = (sampler.count(kind and kind[end]) for end in (0, 2))
    if isinstance(given, NonEdges):
        if given.size != (sources, targets):
            raise ValueError(f"non_edges has pairs of {given.size[0]} sources and {given.size[1]} targets, but there are "
                             f"{sources} and {targets} nodes; give plait.NonEdges these as num_nodes")
        return given
    if given is not True:
        raise ValueError(f"non_edges is of type {type(given).__name__}; give True, False or a plait.NonEdges")
    if kind is not None and kind not in sampler.edge_types_of_graph():
        raise ValueError(f"non_edges is of edges of type {kind!r}, but the graph has {sampler.edge_types_of_graph()}; give "
                         "a plait.NonEdges of the edges that there are")
    known = torch.cat([sampler.edges_of(kind), torch.stack([inputs.row, inputs.col]).long()], dim=1)
    if kind is None or kind[0] == kind[2]:
        return NonEdges(known, sources)
    return NonEdges(known, (sources, targets))


class NonEdgeSampling(NegativeSampling):
    """A NegativeSampling whose negative edges are pairs of a plait.NonEdges."""

    @classmethod
    def of(cls, sampling, pairs, inputs):
        """Returns `sampling` with pairs to draw from, for the loader's EdgeSamplerInput. Raises ValueError if an edge
        has no negative ones."""
        if sampling.src_weight is not None or sampling.dst_weight is not None:
            raise ValueError("non_edges draws all pairs equally likely; leave src_weight and dst_weight out")
        if sampling.is_triplet() and pairs.ascending:
            raise ValueError("non_edges has ascending pairs, but a triplet's negative nodes are targets of any source; "
                             "leave ascending out")
        if inputs.row.numel() > 0 and sampling.is_triplet():
            pairs.check_sources(inputs.row)
        elif inputs.row.numel() > 0 and len(pairs) == 0:
            raise ValueError("all pairs of nodes are edges, so that there are no negative edges; leave non_edges out")
        found = cls(sampling.mode, sampling.amount)
        found.pairs = pairs
        return found

    def drawn(self, inputs, disjoint):
        """Returns the NegativeSampling that gives PyTorch Geometric's sampler the negative ends of one batch, drawn where
        the batch's ends are."""
        if self.is_triplet():
            # Negative nodes of an edge come one after the other, but nodes of disjoint samples in turns.
            source = inputs.row.repeat(self.amount) if disjoint else inputs.row.repeat_interleave(self.amount)
            return _Drawn(self, {"dst": self.pairs.targets(source)})
        count = math.ceil(inputs.row.numel() * self.amount)
        pairs = self.pairs.sample_on(inputs.row.device, count, replace=count > len(self.pairs))
        return _Drawn(self, dict(zip(("src", "dst"), pairs)))


class _Drawn(NegativeSampling):
    """Negative ends that have been drawn already, by endpoint."""

    def __init__(self, sampling, ends):
        super().__init__(sampling.mode, sampling.amount)
        self._ends = ends

    def sample(self, num_samples, endpoint, num_nodes=None):
        return self._ends[endpoint]

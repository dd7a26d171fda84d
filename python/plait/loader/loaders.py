"""PyTorch Geometric's loaders of sampled neighbourhoods, with Plait's sampler in them."""

import functools
import inspect

import torch_geometric.loader

from plait._ids import check_ids
from plait.loader._checks import check_length, check_times
from plait.loader.sampler import NeighborSampler

_OF_SAMPLER = ("data", "num_neighbors", "subgraph_type", "replace", "disjoint", "temporal_strategy",
               "time_attr", "weight_attr", "is_sorted", "directed")


def _with_own_sampler(theirs):
    """Returns the constructor of a class derived from the loader `theirs`: it makes the sampler, unless
    one is given."""
    signature = inspect.signature(theirs.__init__)

    @functools.wraps(theirs.__init__)
    def __init__(self, *args, **kwargs):
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        options = given.arguments
        if options["neighbor_sampler"] is None:
            workers = options["kwargs"].get("num_workers", 0)
            options["neighbor_sampler"] = NeighborSampler(**{name: options[name] for name in _OF_SAMPLER},
                                                          share_memory=workers > 0)
        theirs.__init__(*given.args, **given.kwargs)
        self._check_input()

    return __init__


class NeighborLoader(torch_geometric.loader.NeighborLoader):
    """Mini-batches around nodes, as torch_geometric.loader.NeighborLoader (Hamilton, Ying and Leskovec,
    NeurIPS 2017): the arguments are the same.

    Raises ValueError, when it is made, for a node of `input_nodes` that the graph does not have, and for
    what plait.loader.sampler.NeighborSampler refuses.
    """

    __init__ = _with_own_sampler(torch_geometric.loader.NeighborLoader)

    def _check_input(self):
        if isinstance(self.node_sampler, NeighborSampler):
            given = self.input_data
            check_ids("input_nodes", given.node, self.node_sampler.count(given.input_type))
            check_times("input_time", given.time, given.node.numel(), "input nodes")


class LinkNeighborLoader(torch_geometric.loader.LinkNeighborLoader):
    """Mini-batches around edges, with negative edges, as torch_geometric.loader.LinkNeighborLoader: the
    arguments are the same.

    Raises ValueError, when it is made, for an end in `edge_label_index` that the graph does not have, and
    for what plait.loader.sampler.NeighborSampler refuses.
    """

    __init__ = _with_own_sampler(torch_geometric.loader.LinkNeighborLoader)

    def _check_input(self):
        if isinstance(self.link_sampler, NeighborSampler):
            given, kinds = self.input_data, self.input_data.input_type or (None, None, None)
            check_length("edge_label", given.label, given.row.numel(), "edges")
            check_times("edge_label_time", given.time, given.row.numel(), "edges")
            for end, (ids, kind) in enumerate(((given.row, kinds[0]), (given.col, kinds[2]))):
                check_ids("edge_label_index", ids, self.link_sampler.count(kind), end)

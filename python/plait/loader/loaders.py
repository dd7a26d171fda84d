"""PyTorch Geometric's loaders of sampled neighbourhoods, with Plait's sampler in them."""

import copy
import inspect

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import link_neighbor_loader, neighbor_loader

from plait._devices import checked_device
from plait._edges.ids import check_ids
from plait.loader._checks import check_length, check_times, checked_pairs, checked_seeds
from plait.loader._non_edges import NonEdgeSampling, pairs_without_edges
from plait.loader._own_arguments import accepts
from plait.loader._plain_edges import matrices_of, with_matrices, with_plain_edges
from plait.loader._store_checks import check_rows
from plait.loader.sampler import NeighborSampler
from plait.store.features import FeatureStore

# A script may put Plait's classes into the namespace torch_geometric.loader.
_NODES, _LINKS = neighbor_loader.NeighborLoader, link_neighbor_loader.LinkNeighborLoader
_OF_SAMPLER = ("data", "num_neighbors", "subgraph_type", "replace", "disjoint", "temporal_strategy",
               "time_attr", "weight_attr", "is_sorted", "directed")


class _Sampled:
    """The part that both loaders share: the sampler is Plait's, and batches come to its device."""

    def _make(self, theirs, device, args, kwargs):
        """Calls the constructor `theirs` with a sampler, if none is given."""
        given = inspect.signature(theirs).bind(self, *args, **kwargs)
        given.apply_defaults()
        options = given.arguments
        self._matrices = matrices_of(options["data"])
        options["data"] = with_plain_edges(options["data"])
        sampler = options["neighbor_sampler"]
        workers = options["kwargs"].get("num_workers", 0)
        _check_stores(options["data"], workers)
        if sampler is None:
            if device is not None and workers > 0:
                _check_workers(workers, checked_device(device))
            sampler = options["neighbor_sampler"] = _sampler_of(options, device)
        elif device is not None:
            raise ValueError("device is given beside neighbor_sampler, which has its own; leave it out")
        if isinstance(sampler, NeighborSampler):
            if "input_nodes" in options:
                options["input_nodes"] = checked_seeds(options["input_nodes"], sampler)
            else:
                options["edge_label_index"] = checked_pairs(options["edge_label_index"], sampler, options["data"])
        place = sampler.device if isinstance(sampler, NeighborSampler) else torch.device("cpu")
        if place.type == "cuda":
            _check_workers(workers, place)
            options["kwargs"].pop("pin_memory", None)  # batches on a GPU do not need it
        self._place = place if place.type == "cuda" or device is not None else None
        theirs(*given.args, **given.kwargs)

    def _sampler(self):
        return self.link_sampler if hasattr(self, "link_sampler") else self.node_sampler

    def filter_fn(self, out):
        if self._place is None and not self._has_other_features() and not self._matrices:
            return super().filter_fn(out)
        own = copy.copy(self)
        own.transform = self._finish
        if self._place is not None:
            own.data = _outline(self.data, self._sampler())
            if self._has_other_features():  # which look rows up on the CPU
                nodes = out.node
                out.node = {kind: ids.cpu() for kind, ids in nodes.items()} if isinstance(nodes, dict) else nodes.cpu()
        return super(_Sampled, own).filter_fn(out)

    def _has_other_features(self):
        """Returns whether features come from a FeatureStore of another class than Plait's."""
        return not isinstance(self.data, (Data, HeteroData)) and not isinstance(self.data[0], FeatureStore)

    def _finish(self, batch):
        if self._has_other_features():
            check_rows(batch, self.data[0])
        if self._matrices:
            batch = with_matrices(batch, self._matrices)
        if self._place is not None:
            batch = batch.to(self._place)
        return batch if self.transform is None else self.transform(batch)


def _sampler_of(options, device):
    workers = options["kwargs"].get("num_workers", 0)
    if device is None and workers > 0:
        device = "cpu"
    return NeighborSampler(**{name: options[name] for name in _OF_SAMPLER}, share_memory=workers > 0, device=device)


def _check_stores(data, workers):
    """Raises ValueError if there are workers, which cannot use a GPU, beside features that are on one."""
    if workers > 0 and isinstance(data, tuple) and isinstance(data[0], FeatureStore) and data[0].gpus:
        raise ValueError(f"num_workers is {workers}, but features are on {min(map(str, data[0].gpus))}; leave "
                         "num_workers out, or load the store without a device")


def _check_workers(workers, device):
    """Raises ValueError if there are workers beside a GPU."""
    if workers > 0 and device.type == "cuda":
        raise ValueError(f"num_workers is {workers}, but neighbours are drawn on {device} by this process; leave "
                         "num_workers out, or give device='cpu' to the loader, or to its NeighborSampler if it has one")


def _outline(data, sampler):
    """Returns a graph like `data` whose edges are on the sampler's device. Only their number and their largest node
    are true: PyTorch Geometric puts the edges of a batch on the device of the graph's edges, and they are to stay on
    the sampler's. Returns stores as they are."""
    if not isinstance(data, (Data, HeteroData)):
        return data
    data = copy.copy(data)
    last = sampler.count() - 1 if isinstance(data, Data) else 0
    for store in data.edge_stores:
        index = store.get("edge_index")
        if isinstance(index, torch.Tensor):
            store["edge_index"] = torch.full((1, 1), last, device=sampler.device).expand(2, index.size(1))
    return data


class NeighborLoader(_Sampled, _NODES):
    """Mini-batches around nodes, as torch_geometric.loader.NeighborLoader (Hamilton, Ying and Leskovec,
    NeurIPS 2017): the arguments are the same, and one more.

    Args:
        device: where neighbours are drawn and all tensors of batches are: "cpu", "cuda" or "cuda:N". Batches
            are the same on all. None: the GPU on which the edges of the graph are, if there are no workers;
            else neighbours are drawn on the CPU, and batches are as PyTorch Geometric's.

    Raises ValueError, when it is made, for a node of `input_nodes` that the graph does not have, for bools that are
    not one for each node, for workers beside a GPU, and for what plait.loader.sampler.NeighborSampler refuses.
    """

    @accepts(_NODES.__init__, device=None)
    def __init__(self, *args, device=None, **kwargs):
        self._make(_NODES.__init__, device, args, kwargs)
        if isinstance(self.node_sampler, NeighborSampler):
            given = self.input_data
            check_ids("input_nodes", given.node, self.node_sampler.count(given.input_type))
            check_times("input_time", given.time, given.node.numel(), "input nodes")


class LinkNeighborLoader(_Sampled, _LINKS):
    """Mini-batches around edges, with negative edges, as torch_geometric.loader.LinkNeighborLoader: the
    arguments are the same, and two more.

    Args:
        device: see NeighborLoader.
        non_edges: which pairs of nodes are negative edges. False: nodes at random, as in PyTorch Geometric, so
            that some pairs are edges. True: pairs that are neither edges of the graph nor in
            `edge_label_index`, and no loops; each is equally likely. A plait.NonEdges: its pairs.

    Raises ValueError, when it is made, for an end in `edge_label_index` that the graph does not have, for what
    plait.loader.sampler.NeighborSampler refuses, and for `non_edges` beside weights of negative nodes or times of
    nodes, or where an edge has no negative ones.
    """

    @accepts(_LINKS.__init__, device=None, non_edges=False)
    def __init__(self, *args, device=None, non_edges=False, **kwargs):
        theirs = _LINKS.__init__
        given = inspect.signature(theirs).bind(self, *args, **kwargs).arguments
        if non_edges is not False and given.get("neg_sampling") is None and not given.get("neg_sampling_ratio"):
            raise ValueError("non_edges is given, but there are no negative edges without neg_sampling; give it, too")
        self._make(theirs, device, args, kwargs)
        if isinstance(self.link_sampler, NeighborSampler):
            self._check_input()
        if non_edges is not False:
            pairs = pairs_without_edges(non_edges, self.link_sampler, self.input_data)
            self.neg_sampling = NonEdgeSampling.of(self.neg_sampling, pairs, self.input_data)

    def _check_input(self):
        given, kinds = self.input_data, self.input_data.input_type or (None, None, None)
        for kind in kinds[::2]:
            if kind is not None and kind not in self.link_sampler.num_nodes:
                raise ValueError(f"edge_label_index is of type {kinds!r}, but the graph has no nodes of type {kind!r}; give "
                                 f"two of {list(self.link_sampler.num_nodes)}")
        check_length("edge_label", given.label, given.row.numel(), "edges")
        check_times("edge_label_time", given.time, given.row.numel(), "edges")
        for end, (ids, kind) in enumerate(((given.row, kinds[0]), (given.col, kinds[2]))):
            check_ids("edge_label_index", ids, self.link_sampler.count(kind), end)

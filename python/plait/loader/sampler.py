"""PyTorch Geometric's sampler of neighbours, which draws by Plait."""

import contextlib
import copy
import inspect
import threading

import torch
import torch_geometric.typing
from torch_geometric.data import Data, HeteroData, remote_backend_utils
from torch_geometric.sampler import SamplerOutput
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import NeighborSampler as _THEIRS

from plait._devices import checked_device, samples_on
from plait._draws import draw_key
from plait.loader._by_type import sample_by_type
from plait.loader._checks import check_data, check_times_of, check_weights, checked_fanouts
from plait.loader._edge_values import in_order, times_of, weights_of
from plait.loader._non_edges import NonEdgeSampling
from plait.loader._own_arguments import accepts
from plait.loader._plain_edges import with_plain_edges
from plait.loader._relation import Edges, Relation, Settings, Values, before_zero, padded

_SIGNATURE = inspect.signature(_THEIRS.__init__)
_STRATEGIES = ("uniform", "last")


class NeighborSampler(_THEIRS):
    """As torch_geometric.sampler.NeighborSampler, whose arguments it has, without pyg-lib and torch-sparse.

    A sample depends on its seeds and on numbers of torch's generator (one; with types, one for each hop and type
    of edges), so that torch.manual_seed repeats it, on any number of threads and on either device. Ids of edges
    in it are the graph's ids, so that there is no edge_permutation.

    Args:
        device: where samples are made, and their tensors are: "cpu", "cuda" or "cuda:N", which holds a copy of
            the edges. None: where the edges of the graph are.

    Raises ValueError, when it is made, for edges whose ends are no nodes, weights that are negative or not
    finite, times that are no integers, fan-outs below -1, and a GPU that there is not. Edges of weight 0 are
    never drawn: a node whose edges all weigh 0 has no neighbours.
    """

    @accepts(_THEIRS.__init__, device=None)
    def __init__(self, *args, device=None, **kwargs):
        given = _SIGNATURE.bind(self, *args, **kwargs)
        given.apply_defaults()
        options = given.arguments
        options["data"] = with_plain_edges(options["data"])
        if options["temporal_strategy"] not in _STRATEGIES:
            raise ValueError(f"temporal_strategy is {options['temporal_strategy']!r}; give 'uniform' or 'last'")
        device = None if device is None else checked_device(device)
        data, names = options["data"], (options["time_attr"], options["weight_attr"])
        check_data(data, options["is_sorted"], *names)
        options["weight_attr"] = None
        if not isinstance(data, (Data, HeteroData)):
            options["time_attr"] = None
        with _drawing_elsewhere():
            super().__init__(*given.args[1:], **given.kwargs)
        self.device = device or self._device_of_edges(data)
        self._take_values(data, *names)
        if self.is_hetero:
            if self._of_stores:
                self._add_types(data)
            self.edge_types = _in_their_order(self.edge_types, data, self._of_graph)
            self.relations = {kind: self._relation_of(kind) for kind in self.edge_types}
        else:
            self.relation = self._relation_of(None)
        self.perm = self.edge_weight = None  # samples have the ids of edges; the relations have weights
        self._prepare()

    def _add_types(self, data):
        """Adds the types of nodes that have edges but no features in a pair of stores, where PyTorch Geometric does
        not find them."""
        for end in (end for kind in self.edge_types for end in kind[::2]):
            if end not in self.num_nodes:
                self.num_nodes[end] = remote_backend_utils.num_nodes(*data, end)
                self.node_types.append(end)

    def _take_values(self, data, time_attr, weight_attr):
        """Sets the times and weights of nodes and edges."""
        self._time_attr, has_types = time_attr, self.is_hetero
        self.edge_weight = weights_of(data, weight_attr, has_types)
        of_nodes, self.edge_time = times_of(data, time_attr, has_types)
        self._of_stores = not isinstance(data, (Data, HeteroData))  # whose values have not been checked
        if self._of_stores:
            for kind, times in of_nodes.items():
                check_times_of(time_attr, times, self.count(kind), "node")
        of_nodes = {kind: times.cpu() for kind, times in of_nodes.items()}  # as seeds are
        self.node_time = (of_nodes if has_types else of_nodes[None]) if of_nodes else None
        self.edge_time = self.edge_time or None

    def _device_of_edges(self, data):
        """Returns the device on which all edges of the graph are, if it can sample; else the CPU."""
        if isinstance(data, Data):
            given = [data.get("edge_index")]
        elif isinstance(data, HeteroData):
            given = [store.get("edge_index") for store in data.edge_stores]
        else:  # stores, whose tensors are taken as they are
            given = self.row_dict.values() if self.is_hetero else [self.row]
        places = {edges.device for edges in given if isinstance(edges, torch.Tensor)}
        return places.pop() if len(places) == 1 and samples_on(*places) else torch.device("cpu")

    def _of_graph(self, kind):
        """Returns the type of edges that the graph has for one of edge_types."""
        return kind[::-1] if kind is not None and self.sample_direction == "backward" else kind

    def _relation_of(self, kind):
        if kind is None:
            edges, sources, node_times = Edges(self.colptr, self.row, self.perm), self.num_nodes, self.node_time
        else:
            name = self.to_rel_type[kind]
            edges = Edges(self.colptr_dict[name], self.row_dict[name], (self.perm or {}).get(kind))
            sources, node_times = self.num_nodes[kind[0]], (self.node_time or {}).get(kind[0])
        of, count = self._of_graph(kind), edges.row.numel()
        weights, times = self.edge_weight.get(of), (self.edge_time or {}).get(of)
        if self._of_stores:
            check_weights("weight_attr", weights, count)
            check_times_of(self._time_attr, times, count, "edge")
        return Relation(edges, sources, Values(in_order(weights, edges.ids), in_order(times, edges.ids), node_times),
                        self.device)

    def _prepare(self):
        """Makes the C++ samplers, before processes are forked, which then share them."""
        if self.disjoint and self.subgraph_type == SubgraphType.induced:
            raise ValueError("'disjoint' sampling not supported for neighbor sampling with "
                             "`subgraph_type='induced'`")
        if self.is_hetero:
            for kind, fanouts in self.fanouts().items():
                for fanout in fanouts:
                    self.relations[kind].sampler(self.settings([fanout]))
        else:
            self.relation.sampler(self.settings(self.fanouts()))

    @property
    def edge_permutation(self):
        """None, because samples have the ids of edges."""
        return None

    def edge_types_of_graph(self):
        """Returns the types of the graph's edges, as they are named there."""
        return [self._of_graph(kind) for kind in self.edge_types]

    def edges_of(self, kind):
        """Returns (2, E) on the CPU: the sources and targets of the graph's edges of a type, or of all for None."""
        pairs = self.relation.pairs() if kind is None else self.relations[self._of_graph(kind)].pairs()
        return pairs.flip(0) if self.sample_direction == "backward" else pairs

    def sample_from_edges(self, inputs, neg_sampling=None):
        if isinstance(neg_sampling, NonEdgeSampling):
            inputs = copy.copy(inputs)  # with ends where negative ones are drawn
            inputs.row, inputs.col = inputs.row.to(self.device), inputs.col.to(self.device)
            neg_sampling = neg_sampling.drawn(inputs, self.disjoint)
        return super().sample_from_edges(inputs, neg_sampling)

    def count(self, node_type=None):
        """Returns the number of nodes, of a type if there are types."""
        return self.num_nodes if node_type is None else self.num_nodes[node_type]

    def fanouts(self):
        """Returns num_neighbors: a list by hop, or a dictionary of such lists by edge type."""
        found = self.num_neighbors.get_values(self.edge_types if self.is_hetero else None)
        if not self.is_hetero:
            return checked_fanouts("num_neighbors", found)
        return {kind: checked_fanouts(f"num_neighbors of {kind}", by_hop) for kind, by_hop in found.items()}

    def settings(self, fanouts):
        """Returns the Settings of samples with these fan-outs."""
        return Settings(before_zero(fanouts), self.replace, self.disjoint, self.temporal_strategy == "last")

    def times_of(self, seed, seed_time, node_type=None):
        """Returns the times of seeds, if samples are temporal: the given times, or else the nodes' times."""
        if not self.is_temporal or seed_time is not None:
            return seed_time
        own = self.node_time if node_type is None else (self.node_time or {}).get(node_type)
        if own is None:
            raise ValueError(f"{self._time_attr} is no attribute of the seeds, so their times are not known; give "
                             "input_time")
        return own[seed.to(own.device).long()]

    def _sample(self, seed, seed_time=None, **kwargs):
        if isinstance(seed, dict):
            return sample_by_type(self, seed, seed_time)
        fanouts = self.fanouts()
        row, col, node, edge, tree, nodes, edges = self.relation.sample(
            seed, draw_key(), self.settings(fanouts), self.times_of(seed, seed_time))
        nodes, edges = padded(nodes, len(fanouts) + 1), padded(edges, len(fanouts))
        if self.subgraph_type == SubgraphType.induced:
            row, col, edge = self.relation.induced(node, node)
            nodes = edges = None
        if self.sample_direction == "backward":
            row, col = col, row
        return SamplerOutput(node=node, row=row, col=col, edge=edge, batch=tree, num_sampled_nodes=nodes,
                             num_sampled_edges=edges)


def _in_their_order(kinds, data, of_graph):
    """Returns types of edges in the order of the graph, which a set, as PyTorch Geometric makes one of the types of a
    store, has not."""
    if isinstance(data, HeteroData):
        return kinds
    order = [attr.edge_type for attr in data[1].get_all_edge_attrs()]
    return sorted(kinds, key=lambda kind: order.index(of_graph(kind)))


_lock = threading.Lock()
_FLAGS = ("WITH_PYG_LIB", "WITH_EDGE_TIME_NEIGHBOR_SAMPLE", "WITH_WEIGHTED_NEIGHBOR_SAMPLE")


@contextlib.contextmanager
def _drawing_elsewhere():
    """Lets PyTorch Geometric's constructor, which asks these flags, do without the libraries that draw for
    its own class."""
    with _lock:
        before = {name: getattr(torch_geometric.typing, name) for name in _FLAGS}
        try:
            for name in _FLAGS:
                setattr(torch_geometric.typing, name, True)
            yield
        finally:
            for name, value in before.items():
                setattr(torch_geometric.typing, name, value)

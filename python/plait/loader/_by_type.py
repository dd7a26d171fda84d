"""Samples of graphs with several types of nodes and edges, hop by hop: each hop draws, for every edge type,
from the nodes of its target type that the hop before has found, as pyg-lib does."""

import torch
from torch_geometric.sampler import HeteroSamplerOutput
from torch_geometric.sampler.base import SubgraphType


def sample_by_type(sampler, seed, seed_time):
    """Returns the HeteroSamplerOutput of a plait.loader.sampler.NeighborSampler. `seed`, `seed_time`: by node type."""
    fanouts = sampler.fanouts()
    hops = max(map(len, fanouts.values()), default=0)
    found, times = _seeds(sampler, seed, seed_time)
    edges = {kind: _Edges() for kind in sampler.edge_types}
    keys = torch.randint(2**63 - 1, (hops, len(edges))).tolist()
    for hop in range(hops):
        newest = {node_type: nodes.newest() for node_type, nodes in found.items()}
        for key, kind in zip(keys[hop], sampler.edge_types):
            draw = fanouts[kind][hop], newest[kind[2]], key
            edges[kind].append(*_draw(sampler, kind, found, times, draw))
        for nodes in found.values():
            nodes.end_hop()
    return _output(sampler, found, edges)


class _Nodes:
    """The nodes of one type that were found so far, seeds first. `trees`: the number of each node's seed in
    disjoint samples, else None. `by_hop`: how many nodes each hop has found."""

    def __init__(self, ids, trees, count):
        self.ids, self.trees, self._count = ids, trees, count
        self.by_hop = [ids.numel()]

    def newest(self):
        """Returns the places of the nodes that the last hop has found."""
        return slice(self.ids.numel() - self.by_hop[-1], self.ids.numel())

    def end_hop(self):
        self.by_hop.append(self.ids.numel() - sum(self.by_hop))

    def numbers(self, ids, trees):
        """Returns the places of nodes. Those that are new are appended, in their order."""
        known = self.ids.numel()
        value = torch.cat([self._keys(self.ids, self.trees), self._keys(ids, trees)]).unique(return_inverse=True)[1]
        places = torch.arange(value.numel(), device=value.device)
        number = places.new_full(value.shape, value.numel()).scatter_reduce_(0, value, places, "amin")
        fresh = (number[value] == places)[known:].nonzero().view(-1)
        number[value[known + fresh]] = known + places[:fresh.numel()]
        self.ids = torch.cat([self.ids, ids[fresh]])
        if trees is not None:
            self.trees = torch.cat([self.trees, trees[fresh]])
        return number[value[known:]]

    def _keys(self, ids, trees):
        return ids if trees is None else trees * self._count + ids


class _Edges:
    """The edges of one type that were drawn so far, and how many by each hop."""

    def __init__(self):
        self._drawn, self.by_hop = [], []

    def append(self, row, col, edge):
        self._drawn.append((row, col, edge))
        self.by_hop.append(row.numel())

    def joined(self, device):
        """Returns (row, col, edge)."""
        return tuple(map(torch.cat, zip(*self._drawn))) if self._drawn else _none(device)


def _none(device):
    return tuple(torch.empty(0, dtype=torch.long, device=device) for _ in range(3))


def _seeds(sampler, seed, seed_time):
    """Returns the _Nodes of each type, and the time of each seed in temporal samples."""
    found, times, seeds = {}, [], 0
    for node_type, ids in seed.items():
        trees = torch.arange(seeds, seeds + ids.numel(), device=sampler.device) if sampler.disjoint else None
        found[node_type] = _Nodes(ids.to(sampler.device).long(), trees, sampler.count(node_type))
        seeds += ids.numel()
        if sampler.is_temporal:
            times.append(sampler.times_of(ids, (seed_time or {}).get(node_type), node_type))
    for node_type in sampler.node_types:
        if node_type not in found:
            ids = torch.empty(0, dtype=torch.long, device=sampler.device)
            found[node_type] = _Nodes(ids, ids if sampler.disjoint else None, sampler.count(node_type))
    return found, torch.cat(times).to(sampler.device) if times else None


def _draw(sampler, kind, found, times, draw):
    """Returns (row, col, edge) of one hop and edge type, and appends the sources to the nodes found.
    `draw`: the fan-out, the places of the targets, the key."""
    fanout, newest, key = draw
    targets = found[kind[2]]
    if fanout == 0 or newest.start == newest.stop:
        return _none(sampler.device)
    trees = None if targets.trees is None else targets.trees[newest]
    row, col, node, edge = sampler.relations[kind].sample(
        targets.ids[newest], key, sampler.settings([fanout]), None if times is None else times[trees])[:4]
    sources = found[kind[0]].numbers(node[row], None if trees is None else trees[col])
    return sources, col + newest.start, edge


def _output(sampler, found, edges):
    joined = {kind: drawn.joined(sampler.device) for kind, drawn in edges.items()}
    counts = {"num_sampled_nodes": {node_type: nodes.by_hop for node_type, nodes in found.items()},
              "num_sampled_edges": {kind: drawn.by_hop for kind, drawn in edges.items()}}
    if sampler.subgraph_type == SubgraphType.induced:
        joined = {kind: sampler.relations[kind].induced(found[kind[0]].ids, found[kind[2]].ids) for kind in edges}
        counts = {}
    if sampler.sample_direction == "backward":  # whose edge types are turned
        joined = {kind[::-1]: (col, row, edge) for kind, (row, col, edge) in joined.items()}
        if counts:
            counts["num_sampled_edges"] = {kind[::-1]: n for kind, n in counts["num_sampled_edges"].items()}
    row, col, edge = ({kind: parts[i] for kind, parts in joined.items()} for i in range(3))
    nodes = {node_type: each.ids for node_type, each in found.items()}
    trees = {node_type: each.trees for node_type, each in found.items()} if sampler.disjoint else None
    return HeteroSamplerOutput(node=nodes, row=row, col=col, edge=edge, batch=trees, **counts)

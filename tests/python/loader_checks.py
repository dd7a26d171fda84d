"""Small graphs to sample, and the checks of batches: plain loops over edges, without the loader's code."""

import torch
from torch_geometric.data import Data, HeteroData


def graph(nodes=60, edges=400, seed=1, isolated=5):
    """Returns a random graph with loops, parallel edges, a hub and, at the end of the ids, isolated nodes.
    Attributes tell whose they are: x of node v begins with v, edge_attr of edge e is e."""
    random = torch.Generator().manual_seed(seed)
    index = torch.randint(nodes - isolated, (2, edges), generator=random)
    index = torch.cat([index, index[:, :edges // 10], torch.tensor([[3, 3, 4], [3, 3, 4]])], 1)
    index[1, :edges // 5] = 2
    index = index[:, torch.randperm(index.size(1), generator=random)]
    x = torch.cat([torch.arange(nodes)[:, None], torch.randn(nodes, 3, generator=random)], 1)
    return Data(x=x, y=torch.arange(nodes) % 4, edge_index=index, edge_attr=torch.arange(index.size(1)))


def edges_into(data, nodes=None):
    """Returns the edges that lead to each node: a list of numbers of edges by node."""
    found = [[] for _ in range(nodes or data.num_nodes)]
    for edge, target in enumerate(data.edge_index[1].tolist()):
        found[target].append(edge)
    return found


def check_rows(data, batch):
    """Checks that each node and edge of a batch is that of the graph which n_id and e_id name."""
    assert torch.equal(batch.x, data.x[batch.n_id]) and torch.equal(batch.y, data.y[batch.n_id])
    assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
    assert torch.equal(batch.edge_attr, batch.e_id)
    assert batch.num_nodes == batch.n_id.numel()


def check_hops(data, batch, fanouts, seeds, replace=False, allowed=None):
    """Checks that each hop has drawn its fan-out of each node that the hop before had found, and no other
    edge, and that nodes are numbered in the order in which edges reach them.

    Args:
        seeds: ids, which n_id begins with.
        allowed: (tree, edge) -> whether the edge may be drawn; None: all may.
    """
    ids = batch.n_id.tolist()
    trees = [None] * len(ids) if batch.batch is None else batch.batch.tolist()
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    assert len(nodes) == len(fanouts) + 1 and len(edges) == len(fanouts)
    assert nodes[0] == len(seeds) and ids[:len(seeds)] == list(seeds)
    assert sum(nodes) == len(ids) and sum(edges) == batch.e_id.numel()
    check_names(list(zip(trees, ids)), len(seeds))
    into, triples = edges_into(data), list(zip(*batch.edge_index.tolist(), batch.e_id.tolist()))
    reached, last_target = len(seeds), 0
    for hop, fanout in enumerate(fanouts):
        targets = range(sum(nodes[:hop]), sum(nodes[:hop + 1]))
        drawn = {target: [] for target in targets}
        for row, col, edge in triples[sum(edges[:hop]):sum(edges[:hop + 1])]:
            assert row <= reached, "nodes are numbered as edges reach them"
            reached += row == reached
            assert col >= last_target, "edges come by target"
            last_target = col
            drawn[col].append(edge)
            assert batch.batch is None or trees[row] == trees[col]
        for target, found in drawn.items():
            check_draw(found, fanout, replace, [
                edge for edge in into[ids[target]] if allowed is None or allowed(trees[target], edge)])
    assert reached == len(ids)


def check_names(names, seeds):
    """Checks that nodes are different, but that seeds may repeat."""
    assert len(set(names)) == len(set(names[:seeds])) + len(names) - seeds


def check_draw(found, fanout, replace, there):
    """Checks the edges that were drawn of one node, of those that are there."""
    assert set(found) <= set(there)
    if replace and fanout >= 0:
        assert len(found) == (fanout if there else 0)
    else:
        assert len(found) == len(set(found)) == (len(there) if fanout < 0 else min(fanout, len(there)))


def graph_of_types(seed=1):
    """Returns a graph of papers, authors and topics: three edge types, of which one leads to topics, which
    nothing leaves, and one has several edges between two nodes. Attributes tell whose they are."""
    random = torch.Generator().manual_seed(seed)
    counts = {"paper": 40, "author": 15, "topic": 6}
    data = HeteroData()
    for name, count in counts.items():
        data[name].x = torch.arange(count)[:, None] + 0.5
    for kind, edges in ((("paper", "cites", "paper"), 120), (("author", "writes", "paper"), 90),
                        (("paper", "has", "topic"), 50), (("paper", "rev_writes", "author"), 70)):
        ends = [torch.randint(counts[kind[side]] - 1, (edges,), generator=random) for side in (0, 2)]
        data[kind].edge_index = torch.stack(ends)
        data[kind].edge_attr = torch.arange(edges)
    return data


def check_rows_of_types(data, batch):
    """As check_rows."""
    for name in data.node_types:
        assert torch.equal(batch[name].x, data[name].x[batch[name].n_id])
    for kind in data.edge_types:
        index, edges = batch[kind].edge_index, batch[kind].e_id
        assert torch.equal(batch[kind].edge_attr, edges)
        assert torch.equal(torch.stack([batch[kind[0]].n_id[index[0]], batch[kind[2]].n_id[index[1]]]),
                           data[kind].edge_index[:, edges])


def check_hops_of_types(data, batch, fanouts, seeds, allowed=None):
    """As check_hops: of each edge type, each hop has drawn its fan-out of each node of the target type that
    the hop before had found. `fanouts`: by edge type. `seeds`: numbers of seeds by node type."""
    reached = {name: set(range(seeds.get(name, 0))) for name in data.node_types}
    trees = {name: batch[name].get("batch", torch.full_like(batch[name].n_id, -1)).tolist()
             for name in data.node_types}
    for kind, by_hop in fanouts.items():
        index, edges = batch[kind].edge_index.tolist(), batch[kind].e_id.tolist()
        counts, begin = batch[kind].num_sampled_edges, 0
        into = edges_into(data[kind], data[kind[2]].num_nodes)
        reached[kind[0]] |= set(index[0])
        assert len(counts) == len(by_hop) and sum(counts) == len(edges)
        for hop, fanout in enumerate(by_hop):
            nodes = batch[kind[2]].num_sampled_nodes
            drawn = {target: [] for target in range(sum(nodes[:hop]), sum(nodes[:hop + 1]))}
            for place in range(begin, begin + counts[hop]):
                drawn[index[1][place]].append(edges[place])
                assert trees[kind[0]][index[0][place]] == trees[kind[2]][index[1][place]]
            begin += counts[hop]
            for target, found in drawn.items():
                there = into[int(batch[kind[2]].n_id[target])]
                check_draw(found, fanout, False, [edge for edge in there if allowed is None or allowed(
                    kind, trees[kind[2]][target], edge)])
    for name in data.node_types:
        ids = batch[name].n_id.tolist()
        assert batch[name].num_sampled_nodes[0] == seeds.get(name, 0)
        assert reached[name] == set(range(len(ids))) and sum(batch[name].num_sampled_nodes) == len(ids)
        check_names(list(zip(trees[name], ids)), seeds.get(name, 0))

"""torch.classes.plait.NeighbourSampler against a slow walk in Python."""

import concurrent.futures

import pytest
import torch

import plait  # noqa: F401  loads the operations

sample_key = torch.ops.plait.sample_key


def graph(nodes=60, edges=600, seed=0):
    g = torch.Generator().manual_seed(seed)
    degree = torch.bincount(torch.randint(0, nodes, (edges,), generator=g) ** 2 // nodes, minlength=nodes)
    rowptr = torch.cat([torch.zeros(1, dtype=torch.long), degree.cumsum(0)])
    return rowptr, torch.randint(0, nodes, (edges,), generator=g)


def sampler(rowptr, col, fanouts, replace=False, disjoint=False, all_targets=False, last=False, weights=None,
            edge_times=None, vertex_times=None):
    return torch.classes.plait.NeighbourSampler(rowptr, col, fanouts, replace, disjoint, all_targets, last,
                                                weights, edge_times, vertex_times)


def walk(rowptr, col, fanouts, seeds, edges, options):
    """Numbers the vertices that edges reach. All edges of a row are known; drawn ones are taken from `edges`,
    the places that the sampler gives, and checked."""
    disjoint, all_targets = options.get("disjoint"), options.get("all_targets")
    node, tree = list(seeds), list(range(len(seeds))) if disjoint else [0] * len(seeds)
    numbers = {}
    for i, key in enumerate(zip(tree, node)):
        numbers.setdefault(key, i)
    row, target_of, nodes_by_hop, edges_by_hop, drawn = [], [], [len(node)], [], []
    first = 0
    for fanout in fanouts:
        found = len(node)
        before = len(row)
        for target in range(first, found):
            begin, end = rowptr[node[target]], rowptr[node[target] + 1]
            count = end - begin if fanout == -1 else min(fanout, end - begin)
            if options.get("replace") and fanout != -1 and end > begin:
                count = fanout
            whole = fanout == -1 or (not options.get("replace") and count == end - begin)
            here = list(range(begin, end)) if whole else edges[len(drawn):len(drawn) + count]
            assert len(here) == count
            assert all(begin <= e < end for e in here)
            if whole or not options.get("replace"):
                assert len(set(here)) == len(here)
            drawn += here
            for e in here:
                key = (tree[target], col[e])
                if key not in numbers:
                    numbers[key] = len(node)
                    node.append(col[e])
                    tree.append(tree[target])
                row.append(numbers[key])
                target_of.append(target)
        first = 0 if all_targets else found
        nodes_by_hop.append(len(node) - found)
        edges_by_hop.append(len(row) - before)
    return row, target_of, node, drawn, tree if disjoint else None, nodes_by_hop, edges_by_hop


@pytest.mark.parametrize("fanouts", [[], [-1], [3], [5, 4, 3], [2, -1]])
@pytest.mark.parametrize("options", [{}, {"replace": True}, {"disjoint": True}, {"all_targets": True},
                                     {"replace": True, "disjoint": True, "all_targets": True}])
def test_equals_a_slow_walk(fanouts, options):
    rowptr, col = graph()
    seeds = torch.tensor([3, 59, 0, 3, 17])
    found = sampler(rowptr, col, fanouts, **options).sample(seeds, sample_key(1, 2), None)
    found = [t.tolist() if torch.is_tensor(t) else t for t in found]
    expected = walk(rowptr.tolist(), col.tolist(), fanouts, seeds.tolist(), found[3], options)
    assert found == list(expected)


@pytest.mark.parametrize("options", [{}, {"replace": True}, {"disjoint": True}])
def test_ids_of_32_bits(options):
    rowptr, col = graph()
    seeds = torch.arange(0, 60, 7)
    found = [sampler(rowptr, ids, [4, -1, 2], **options).sample(seeds, 5, None) for ids in (col, col.int())]
    for wide, narrow in zip(*found):
        assert torch.equal(wide, narrow) if torch.is_tensor(wide) else wide == narrow


def test_weights_and_times_choose_edges():
    rowptr, col = torch.tensor([0, 6, 6]), torch.tensor([1, 0, 1, 0, 1, 0])
    weights = torch.tensor([0.0, 1, 0, 1, 2, 0])
    seeds = torch.tensor([0, 0])

    def edges(times=None, fanout=3, **options):
        return sampler(rowptr, col, [fanout], **options).sample(seeds, 7, times)[3].tolist()

    assert edges(weights=weights) == [1, 3, 4] * 2
    times = {"edge_times": torch.tensor([5, 3, 5, 1, 5, 4]), "disjoint": True}
    assert edges(torch.tensor([4, 1]), **times) == [1, 3, 5, 3]
    assert edges(torch.tensor([5, 4]), fanout=2, last=True, **times) == [0, 2, 1, 5]
    assert edges(torch.tensor([0, 9]), fanout=-1, disjoint=True,
                 vertex_times=torch.tensor([1, 0])) == [0, 2, 4, 0, 1, 2, 3, 4, 5]


def test_keys_differ_and_threads_do_not():
    rowptr, col = graph(500, 9000)
    s, seeds = sampler(rowptr, col, [5, 5]), torch.arange(100)
    alone = [s.sample(seeds, sample_key(0, i), None)[3] for i in range(16)]
    assert not torch.equal(alone[0], alone[1])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: s.sample(seeds, sample_key(0, i), None)[3], range(16)))
    assert all(torch.equal(a, b) for a, b in zip(alone, together))


def test_tensors_are_kept_alive():
    s = sampler(*graph(500, 9000, 3), [5, 5])
    torch.full((20000,), -1)
    expected = sampler(*graph(500, 9000, 3), [5, 5]).sample(torch.arange(9), 1, None)
    assert torch.equal(s.sample(torch.arange(9), 1, None)[3], expected[3])


ROWPTR, COL = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1])


@pytest.mark.parametrize("arguments, text", [
    ((torch.tensor([1, 2, 3]), COL), "rowptr must begin with 0"),
    ((torch.tensor([0, 3, 2]), COL), r"rowptr\[2\] is 2, outside 3..3"),
    ((torch.tensor([0, 2, 9]), COL), r"rowptr\[2\] is 9, outside 2..3"),
    ((torch.tensor([0, 1, 2]), COL), "rowptr ends with 2, but col has 3 numbers"),
    ((ROWPTR, torch.tensor([0, 2, 1])), r"col\[1\] is 2, which is none of the 2 nodes"),
    ((ROWPTR, torch.tensor([0, 1, -1])), r"col\[2\] is -1, which is none of the 2 nodes"),
    ((ROWPTR, torch.tensor([0, 1, -1]).int()), r"col\[2\] is -1, which is none of the 2 nodes"),
    ((ROWPTR, COL.short()), "col holds Short; use Long or Int"),
    ((ROWPTR.int(), COL), "rowptr holds Int; use Long"),
    ((ROWPTR, COL[None]), "must have one dimension"),
    ((torch.zeros(0, dtype=torch.long), COL[:0]), "rowptr must begin with 0"),
])
def test_wrong_graphs_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        sampler(*arguments, [1])


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="fan-out 0 of hop 0"):
        sampler(ROWPTR, COL, [0])
    with pytest.raises(ValueError, match="weights has 2 numbers, but must have 3"):
        sampler(ROWPTR, COL, [1], weights=torch.ones(2))
    with pytest.raises(ValueError, match="the weight of edge 1 is nan"):
        sampler(ROWPTR, COL, [1], weights=torch.tensor([1, float("nan"), 1]))
    with pytest.raises(ValueError, match="times need disjoint samples"):
        sampler(ROWPTR, COL, [1], edge_times=COL)
    with pytest.raises(ValueError, match="seed 1 is -1, outside 0..1"):
        sampler(ROWPTR, COL, [1]).sample(torch.tensor([0, -1]), 1, None)
    with pytest.raises(ValueError, match="times has 1 numbers, but must have 2"):
        sampler(ROWPTR, COL, [1], disjoint=True, edge_times=COL).sample(torch.tensor([0, 1]), 1, COL[:1])
    with pytest.raises(ValueError, match="there are 0 times of seeds, but 1 seeds"):
        sampler(ROWPTR, COL, [1], disjoint=True, edge_times=COL).sample(torch.tensor([0]), 1, None)

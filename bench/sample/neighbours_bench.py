"""Neighbour sampling on the CPU, against a vectorised version in torch.

    neighbours_bench.py [--vertices 1000000] [--edges 50000000] [--repeat 9] [--json FILE]

The graph is generated: degrees and popularity follow one power law, as in a network of products. One batch
of 512 seeds after the other is sampled without replacement, each with all threads, by both in turn. Both
results are checked first: edges exist, none is drawn twice, rows have as many edges as they must, and
vertices are numbered without repetition. Prints sampled edges per second, median and spread, and the ratio;
FILE (build/bench/sample-cpu.json) receives them as JSON.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench"), str(ROOT / "build/python")]
import plait  # noqa: F401  loads the operations
import results

BATCH = 512
FANOUTS = [[30, 30, 30], [10, 10], [15, 10, 5]]


def products_like(vertices, edges):
    random = np.random.default_rng(0)
    share = random.pareto(2.0, vertices) + 0.3
    share /= share.sum()
    degree = random.multinomial(edges, share)
    rank = np.minimum(np.searchsorted(np.cumsum(share), random.random(edges)), vertices - 1)
    rowptr = np.concatenate([[0], np.cumsum(degree)])
    return torch.from_numpy(rowptr), torch.from_numpy(random.permutation(vertices)[rank])


class TorchSampler:
    """Draws edges of all targets of a hop at once, by Floyd's algorithm: column i of the positions is drawn
    below degree - fanout + i + 1, and replaced by the last possible one where it was drawn before. Rows with
    few edges are taken whole. New vertices are numbered by a table of all vertices. Its order of numbers
    within a hop is by id, which spares it a sort."""

    def __init__(self, rowptr, col, fanouts):
        self.rowptr, self.col, self.fanouts = rowptr, col, fanouts
        self.numbers = torch.full((len(rowptr) - 1,), -1)
        self.seen = torch.zeros(len(rowptr) - 1, dtype=torch.bool)

    def positions(self, degree, fanout):
        drawn = torch.empty(len(degree), fanout, dtype=torch.long)
        uniform = torch.rand(len(degree), fanout, dtype=torch.float64)
        for i in range(fanout):
            last = degree - fanout + i
            chosen = (uniform[:, i] * (last + 1)).long()
            before = (drawn[:, :i] == chosen[:, None]).any(1)
            drawn[:, i] = torch.where(before, last, chosen)
        return drawn

    def hop(self, targets, fanout):
        """Returns the places of edges and, for each, the place of its target in `targets`."""
        begin, degree = self.rowptr[targets], self.rowptr[targets + 1] - self.rowptr[targets]
        few = (degree <= fanout).nonzero()[:, 0]
        many = (degree > fanout).nonzero()[:, 0]
        count = degree[few]
        whole = torch.repeat_interleave(few, count)
        starts = torch.repeat_interleave(begin[few] - (count.cumsum(0) - count), count)
        drawn = self.positions(degree[many], fanout) + begin[many][:, None]
        edge = torch.cat([starts + torch.arange(len(starts)), drawn.flatten()])
        return edge, torch.cat([whole, many.repeat_interleave(fanout)])

    def sample(self, seeds):
        node, rows, cols, edges, first = [seeds], [], [], [], 0
        found = len(seeds)
        self.numbers[seeds] = torch.arange(found)
        for fanout in self.fanouts:
            targets = node[-1]
            edge, place = self.hop(targets, fanout)
            source = self.col[edge]
            fresh = source[self.numbers[source] < 0]
            self.seen[fresh] = True
            new = self.seen.nonzero()[:, 0] if len(fresh) > len(self.seen) // 16 else fresh.unique()
            self.seen[new] = False
            self.numbers[new] = torch.arange(found, found + len(new))
            rows.append(self.numbers[source])
            cols.append(place + first)
            edges.append(edge)
            node.append(new)
            first, found = found, found + len(new)
        node = torch.cat(node)
        self.numbers[node] = -1
        return torch.cat(rows), torch.cat(cols), node, torch.cat(edges)


class PlaitSampler:
    def __init__(self, rowptr, col, fanouts):
        self.sampler = torch.classes.plait.NeighbourSampler(rowptr, col, fanouts, False, False, False, False,
                                                            None, None, None)
        self.batch = 0

    def sample(self, seeds):
        self.batch += 1
        return self.sampler.sample(seeds, torch.ops.plait.sample_key(0, self.batch), None)[:4]


def check(rowptr, col, fanouts, seeds, sample):
    row, target, node, edge = sample
    assert torch.equal(node[:len(seeds)], seeds)
    assert len(node.unique()) == len(node), "a vertex has two numbers"
    assert torch.equal(node[row], col[edge]), "a source is not that of the edge"
    owner = node[target]
    assert bool(((edge >= rowptr[owner]) & (edge < rowptr[owner + 1])).all()), "an edge is of another row"
    assert len((target * len(col) + edge).unique()) == len(edge), "an edge was drawn twice"
    first, found, begin = 0, len(seeds), 0
    for fanout in fanouts:
        degree = (rowptr[1:] - rowptr[:-1])[node[first:found]]
        wanted = degree.clamp(max=fanout)
        end = begin + int(wanted.sum())
        count = torch.bincount(target[begin:end] - first, minlength=found - first)
        assert torch.equal(count, wanted), "a row has too many or too few edges"
        first, found, begin = found, max(found, int(row[begin:end].max()) + 1), end
    assert begin == len(edge) and found == len(node)


def rates(samplers, batches):
    """Returns edges per second and milliseconds of each sampler, which take turns."""
    measured = [([], []) for _ in samplers]
    for seeds in batches:
        for sampler, (rate, ms) in zip(samplers, measured):
            begin = time.perf_counter()
            sample = sampler.sample(seeds)
            seconds = time.perf_counter() - begin
            rate.append(len(sample[3]) / seconds / 1e6)
            ms.append(seconds * 1e3)
            del sample
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vertices", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--json", default=results.FOLDER / "sample-cpu.json")
    options = parser.parse_args()
    rowptr, col = products_like(options.vertices, options.edges)
    out = results.Results(options.json)
    torch.manual_seed(1)
    for fanouts in FANOUTS:
        samplers = {"plait": PlaitSampler(rowptr, col, fanouts), "torch": TorchSampler(rowptr, col, fanouts)}
        seeds = torch.randperm(options.vertices)[:BATCH]
        for sampler in samplers.values():
            check(rowptr, col, fanouts, seeds, sampler.sample(seeds))
        repeat = options.repeat * (1 if len(fanouts) == 3 and fanouts[2] == 30 else 5)
        batches = [torch.randperm(options.vertices)[:BATCH] for _ in range(repeat)]
        medians = {}
        for name, (rate, ms) in zip(samplers, rates(list(samplers.values()), batches)):
            medians[name] = statistics.median(rate)
            print(f"fan-outs {fanouts}, {name}: {medians[name]:.2f} M edges per second "
                  f"({min(rate):.2f} to {max(rate):.2f}), {statistics.median(ms):.2f} ms per batch")
            out.add("sample-cpu", {"fanouts": fanouts, "batch": BATCH, "sampler": name},
                    million_edges_per_second=medians[name], threads=torch.get_num_threads(),
                    **results.spread(ms))
        print(f"  ratio {medians['plait'] / medians['torch']:.2f}")


if __name__ == "__main__":
    main()

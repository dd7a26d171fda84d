"""Times batches of plait.loader.NeighborLoader on the CPU and on a GPU.

    loader_bench.py [--nodes 2449029] [--edges 123718280] [--width 100] [--fanouts 15,10,5] [--batch 1024]
                    [--batches 30] [--repeat 5] [--json FILE]

Makes a random graph with skewed degrees; by default as large as ogbn-products. A batch ends on the GPU, if there is
one, whichever device drew it. Cases: neighbours drawn on the CPU; on the GPU, with x on the CPU; on the GPU, with the
whole graph there. The edges of the first batches of all cases are compared. Prints the median time of a batch in
milliseconds, and edges per second; FILE (build/bench/loader.json) receives them as JSON. PYTHONPATH names the folder
of the package plait.
"""
import argparse
import itertools
import pathlib
import sys
import time

import torch
from torch_geometric.data import Data

from plait.loader import NeighborLoader

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=2449029)
    parser.add_argument("--edges", type=int, default=123718280)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--fanouts", default="15,10,5")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", default=results.FOLDER / "loader.json")
    return parser.parse_args()


def make_graph(options):
    """Returns a graph whose edges are sorted by target, so that all cases have them in one order."""
    torch.manual_seed(1)
    target = (torch.rand(options.edges, dtype=torch.double).pow_(2) * options.nodes).long().sort().values
    source = torch.randint(options.nodes, (options.edges,))
    return Data(x=torch.rand(options.nodes, options.width), edge_index=torch.stack([source, target]))


def seconds_and_edges(loader, options, device):
    """Returns the time of the first batches and their edges; and the edges of the first one."""
    torch.manual_seed(2)
    begin, edges, first = time.perf_counter(), 0, None
    for batch in itertools.islice(loader, options.batches):
        batch = batch.to(device)
        edges += batch.edge_index.size(1)
        first = batch.e_id if first is None else first
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, edges, first.cpu()


def main():
    options = arguments()
    gpu = torch.cuda.is_available()
    graph = make_graph(options)
    cases = {"cpu": (lambda: graph, "cpu")}
    if gpu:
        cases |= {"gpu, x on the cpu": (lambda: graph, "cuda"), "gpu": (lambda: graph.clone().to("cuda"), "cuda")}
    file, wanted = results.Results(options.json), None
    for name, (make, device) in cases.items():
        loader = NeighborLoader(make(), [int(n) for n in options.fanouts.split(",")], batch_size=options.batch,
                                shuffle=True, is_sorted=True, device=device)
        runs = [seconds_and_edges(loader, options, "cuda" if gpu else "cpu") for _ in range(options.repeat + 1)][1:]
        wanted = runs[0][2] if wanted is None else wanted
        if not torch.equal(runs[0][2], wanted):
            sys.exit(f"{name}: the first batch has other edges than on the CPU")
        ms = [1000 * seconds / options.batches for seconds, *_ in runs]
        fields = results.spread(ms)
        rate = runs[0][1] / options.batches / fields["median_ms"] / 1000
        file.add("loader", name, **fields, million_edges_per_s=rate)
        print(f"{name:20} {fields['median_ms']:9.2f} ms a batch {rate:9.1f} M edges/s", flush=True)


if __name__ == "__main__":
    main()

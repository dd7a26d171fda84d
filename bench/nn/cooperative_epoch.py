"""Epochs of `plait train --sampled` with and without --cooperative.

    cooperative_epoch.py [GRAPH.plait] [--ranks 2] [--batch 512] [--fanout 10,10,10] [--hidden 128] [--model sage]
                         [--epochs 2] [--repeats 3] [--partitions edges metis hash] [--json FILE]

Without GRAPH, a generated graph of 60,000 vertices with communities and 3 M edges. A third of the vertices are
examples. Ways take turns; their losses of the first epoch must agree to 1e-3: the order of sums differs, and Adam's
first steps are as long for a gradient that is rounding alone as for any other. Prints the median time of an epoch's
steps and its spread, the share of communication, and the ratio; FILE (build/bench/cooperative-epoch.json) receives
the times as JSON.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results
from running import result_of


def generated(folder, vertices, edges):
    path = pathlib.Path(folder) / "communities.plait"
    result_of("generate", "dcsbm", "--vertices", vertices, "--edges", edges, "--communities", 64, "--classes", 16,
              "--width", 64, "--seed", 1, "-o", path)
    return path


def train(graph, partition, o, *options):
    return result_of("train", graph, "--model", o.model, "--hidden", o.hidden, "--layers", len(o.fanout.split(",")),
                     "--sampled", "--fanout", o.fanout, "--batch", o.batch, "--ranks", o.ranks,
                     "--partition", partition, "--folds", 3, "--epochs", o.epochs, "--seed", 1, *options)


def compare(graph, partition, o, kept):
    runs = {"alone": [], "cooperative": []}
    for _ in range(o.repeats):
        for way, options in (("alone", ()), ("cooperative", ("--cooperative",))):
            runs[way].append(train(graph, partition, o, *options))
    a, b = (runs[way][0]["loss"][0] for way in runs)
    if not abs(a - b) <= 1e-3 * abs(a):
        raise SystemExit(f"cooperative_epoch: the losses are {a} and {b}")
    times = {way: [run["epoch_ms"] for run in some] for way, some in runs.items()}
    for way, some in runs.items():
        print(f"{partition:9} {way:11} {statistics.median(times[way]):9.0f} ms ({min(times[way]):.0f} to "
              f"{max(times[way]):.0f}), {100 * some[-1]['comm_share']:.0f}% communication", flush=True)
        kept.add("cooperative-epoch", {"way": way, "partition": partition}, model=o.model, ranks=o.ranks, batch=o.batch,
                 fanout=o.fanout, hidden=o.hidden, comm_share=some[-1]["comm_share"], **results.spread(times[way]))
    print(f"{partition:9} together {statistics.median(times['alone']) / statistics.median(times['cooperative']):.2f} "
          "times as fast", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph", nargs="?")
    for name, default in (("ranks", 2), ("batch", 512), ("hidden", 128), ("epochs", 2), ("repeats", 3),
                          ("vertices", 60_000), ("edges", 3_000_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--model", default="sage")
    parser.add_argument("--partitions", nargs="+", default=["edges", "metis", "hash"])
    parser.add_argument("--json", help="file for the times; build/bench/cooperative-epoch.json if not given")
    o = parser.parse_args()
    kept = results.Results(o.json or results.FOLDER / "cooperative-epoch.json")
    with tempfile.TemporaryDirectory() as folder:
        graph = o.graph or generated(folder, o.vertices, o.edges)
        for partition in o.partitions:
            compare(graph, partition, o, kept)


if __name__ == "__main__":
    main()

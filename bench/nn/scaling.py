"""Epochs of `plait train --sampled` on several numbers of ranks or GPUs (WholeGraph, figure 13).

    scaling.py [GRAPH.plait] [--ranks 1 2 | --gpus 1 2 4] [--models gcn sage gat] [--fanout 30,30,30] [--batch 512]
               [--hidden 256] [--epochs 3] [--repeats 3] [--plait FILE] [--json FILE]

Without GRAPH, a generated graph of the counts of ogbn-products times --scale. Each rank takes --batch examples per
step, so that an epoch has fewer steps on more ranks; on the CPU each rank has one thread. Before a number of ranks is
timed, the mean loss of its first three steps on a graph a 500th the size of ogbn-products must agree to 1e-4 with that
of the least number, whose batches are then as large together. Later steps are not compared: Adam carries a difference of
rounding on, and after some 200 steps of gat two runs on one rank whose learning rates differ by 1e-7 are 1e-3 apart.
Runs take turns. Prints the median ms of an epoch, its spread, and how many times as fast it is as on the
least number of ranks; FILE (build/bench/sampled-scaling.json) receives the times as JSON.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import arguments
import results
from running import PLAIT, result_of


def plait(o, *arguments):
    return result_of(*arguments, program=o.plait, threads=None if o.gpus else 1)


def generated(folder, name, scale, o):
    path = pathlib.Path(folder) / f"{name}.plait"
    plait(o, "generate", "dcsbm", "--like", "products", "--scale", scale, "--width", 100, "--classes", 47, "--seed", 1,
          "-o", path)
    return path


def train(graph, model, count, o, batch=None, epochs=None):
    heads = ("--heads", 4) if model == "gat" else ()
    return plait(o, "train", graph, "--model", model, *heads, "--hidden", o.hidden,
                 "--layers", len(o.fanout.split(",")), "--sampled", "--fanout", o.fanout, "--batch", batch or o.batch,
                 "--gpus" if o.gpus else "--ranks", count, "--folds", 3, "--epochs", epochs or o.epochs, "--seed", 1)


def check(graph, model, count, least, o):
    """Ends the script unless few steps give the same loss. `graph`: of about 1630 training examples."""
    together = -(-600 // (least * count)) * least * count  # examples of a step: three steps
    found, wanted = (train(graph, model, ranks, o, batch=together // ranks, epochs=1)["loss"][0]
                     for ranks in (count, least))
    if not abs(found - wanted) <= 1e-4 * abs(wanted):
        sys.exit(f"scaling: {model}: the losses on {count} and {least} are {found} and {wanted}")


def compare(graph, small, model, o, kept):
    counts = sorted(set(o.gpus or o.ranks))
    for count in counts[1:]:
        check(small, model, count, counts[0], o)
    times = {count: [] for count in counts}
    for _ in range(o.repeats):
        for count in counts:
            times[count].append(train(graph, model, count, o)["epoch_ms"])
    for count, ms in times.items():
        faster = statistics.median(times[counts[0]]) / statistics.median(ms)
        print(f"{model:5} {count:3} {'GPUs' if o.gpus else 'ranks'}: epoch {statistics.median(ms):.1f} ms ({min(ms):.1f} "
              f"to {max(ms):.1f}), {faster:.2f} times as fast", flush=True)
        kept.add("sampled-scaling", {"graph": pathlib.Path(graph).stem, "model": model, "device": "cuda" if o.gpus else "cpu",
                             "ranks": count}, **results.spread(ms), speedup=faster)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("graph", nargs="?")
    for name, default in (("batch", 512), ("hidden", 256), ("epochs", 3), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=arguments.count, default=default)
    numbers = parser.add_mutually_exclusive_group()
    numbers.add_argument("--ranks", type=arguments.count, nargs="+", default=[1, 2])
    numbers.add_argument("--gpus", type=arguments.count, nargs="+")
    parser.add_argument("--fanout", default="30,30,30")
    parser.add_argument("--models", nargs="+", choices=["gcn", "sage", "gat"], default=["gcn", "sage", "gat"])
    parser.add_argument("--scale", type=arguments.positive, default=0.05)
    parser.add_argument("--plait", default=PLAIT, help="the program; build/bin/plait if not given")
    parser.add_argument("--json", help="file for the times; build/bench/sampled-scaling.json if not given")
    o = parser.parse_args()
    kept = results.Results(o.json or results.FOLDER / "sampled-scaling.json")
    with tempfile.TemporaryDirectory() as folder:
        small = generated(folder, "small", 0.002, o)
        graph = o.graph or generated(folder, "products", o.scale, o)
        for model in o.models:
            compare(graph, small, model, o, kept)


if __name__ == "__main__":
    main()

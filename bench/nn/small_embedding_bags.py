"""Single small tables on one process on the CPU: plait.nn.EmbeddingBag and torch.nn.EmbeddingBag.

    OMP_NUM_THREADS=2 small_embedding_bags.py [--seconds 0.5] [--json FILE]

For each table, a step forward, one forward and backward with sparse gradients, and one that Adagrad ends
(plait.optim.RowAdagrad, torch.optim.Adagrad), of bags of equally many ids that are drawn evenly. Results of both ways must agree before anything is timed. The ways take turns, in runs of steps of
about --seconds / 9. Prints the median time of a step over nine runs; FILE (build/bench/small-embedding-bags.json)
receives the times as JSON.
"""

import argparse
import pathlib
import statistics
import sys
import time
import warnings

import torch

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results

warnings.simplefilter("ignore")

RUNS = 9
KINDS = ("forward", "both", "adagrad")
# Rows, columns, samples and ids per sample.
TABLES = ((100, 16, 64, 2), (1000, 16, 256, 4), (1000, 64, 2048, 1), (10000, 64, 2048, 4), (10000, 128, 2048, 10),
          (100000, 64, 2048, 20))


def steps_of(layer, optimizer, ids, gradient):
    def forward():
        with torch.no_grad():
            layer(ids)

    def both():
        layer.weight.grad = None
        layer(ids).backward(gradient)

    def adagrad():
        both()
        optimizer.step()

    return {"forward": forward, "both": both, "adagrad": adagrad}


def milliseconds(step, count):
    begin = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - begin) * 1e3 / count


def compare(shape, seconds):
    """Returns by step and way the times of a step in each run."""
    rows, width, samples, per_sample = shape
    torch.manual_seed(1)
    ours = plait.nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
    theirs = torch.nn.EmbeddingBag(rows, width, mode="sum", sparse=True, _weight=ours.full_weight().detach().clone())
    ids, gradient = torch.randint(rows, (samples, per_sample)), torch.rand(samples, width)
    optimizers = plait.optim.RowAdagrad(ours.parameters(), 1e-3), torch.optim.Adagrad(theirs.parameters(), 1e-3)
    ways = {"plait": steps_of(ours, optimizers[0], ids, gradient),
            "torch": steps_of(theirs, optimizers[1], ids, gradient)}
    torch.testing.assert_close(ours(ids), theirs(ids), rtol=1e-4, atol=1e-5)
    for steps in ways.values():
        steps["both"]()
    torch.testing.assert_close(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense(), rtol=1e-4, atol=1e-4)
    for steps in ways.values():
        steps["adagrad"]()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-4, atol=1e-5)
    times = {(kind, way): [] for kind in KINDS for way in ways}
    for kind in KINDS:
        once = max(milliseconds(steps[kind], 5) for steps in ways.values())
        count = max(1, round(seconds * 1e3 / RUNS / once))
        for _ in range(RUNS):
            for way, steps in ways.items():
                times[kind, way].append(milliseconds(steps[kind], count))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", help="file for the times; build/bench/small-embedding-bags.json if not given")
    o = parser.parse_args()
    file = results.Results(o.json or results.FOLDER / "small-embedding-bags.json")
    for shape in TABLES:
        rows, width, samples, per_sample = shape
        times = compare(shape, o.seconds)
        for kind in KINDS:
            ours, theirs = (statistics.median(times[kind, way]) for way in ("plait", "torch"))
            print(f"{rows:7} rows of {width:3}, {samples:4} bags of {per_sample:2}, {kind:7}: plait {ours * 1e3:8.1f} us, "
                  f"torch {theirs * 1e3:8.1f} us, {theirs / ours:.2f} times as fast", flush=True)
            for way in ("plait", "torch"):
                file.add("small-embedding-bags",
                         {"rows": rows, "width": width, "samples": samples, "ids": per_sample, "step": kind,
                          "threads": torch.get_num_threads(), "way": way}, **results.spread(times[kind, way]))


if __name__ == "__main__":
    main()

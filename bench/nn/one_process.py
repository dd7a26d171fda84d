"""Training steps of every layer that plait.parallelize spreads, on one process: as PyTorch Geometric computes
them, and after plait.parallelize.

    one_process.py [--nodes 20000] [--edges 300000] [--steps 7] [--layers NAME ...] [--json FILE]

The layers are those of tests/python/spread_layers.py. The two ways take turns, step by step; losses of the
first step must agree to 1e-4. Prints the median time of a step after the first two, and the ratio; FILE
(build/bench/one-process.json) receives the times as JSON.
"""

import argparse
import pathlib
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/python")]
import results
import spread_layers

warnings.simplefilter("ignore")


def step(model, data, optimizer):
    """Returns the milliseconds of a step, and its loss."""
    begin = time.perf_counter()
    optimizer.zero_grad()
    out = model(data)[data.train_mask]
    loss = F.cross_entropy(out, data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return (time.perf_counter() - begin) * 1e3, loss.item()


def compare(make, given, steps):
    """Returns the times of the layer's own steps, and of spread ones."""
    runs = []
    for spread in (False, True):
        torch.manual_seed(1)
        model, data = make(), given
        if spread:
            model, data = plait.parallelize(model, data)
        runs.append((model, data, torch.optim.Adam(model.parameters(), lr=0.01)))
    times = [[], []]
    for number in range(steps + 2):
        losses = []
        for way, run in enumerate(runs):
            milliseconds, loss = step(*run)
            times[way].append(milliseconds)
            losses.append(loss)
        if number == 0 and not abs(losses[0] - losses[1]) <= 1e-4 * abs(losses[0]):
            raise SystemExit(f"one_process: the losses are {losses[0]} and {losses[1]}")
    return [way[2:] for way in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=20000)
    parser.add_argument("--edges", type=int, default=300000)
    parser.add_argument("--steps", type=int, default=7)
    names = [name for name in spread_layers.LAYERS if "used before" not in name]  # on another graph
    parser.add_argument("--layers", nargs="+", default=names)
    parser.add_argument("--json", help="file for the times; build/bench/one-process.json if not given")
    options = parser.parse_args()
    kept = results.Results(options.json or results.FOLDER / "one-process.json")
    data = spread_layers.make_data(options.nodes, options.edges)
    for name in options.layers:
        theirs, ours = compare(spread_layers.LAYERS[name], data, options.steps)
        ratio = statistics.median(theirs) / statistics.median(ours)
        print(f"{name:34} {statistics.median(theirs):9.1f} ms, spread {statistics.median(ours):9.1f} ms "
              f"({min(ours):.1f} to {max(ours):.1f}), {ratio:.2f} times as fast", flush=True)
        for way, times in (("own", theirs), ("spread", ours)):
            kept.add("one-process", {"layer": name, "way": way}, **results.spread(times))


if __name__ == "__main__":
    main()

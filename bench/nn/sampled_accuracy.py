"""Test accuracy of training on the whole graph and on samples, by `plait train` and by PyTorch Geometric, in percent.

    sampled_accuracy.py GRAPH... [--models sage gcn gat] [--fanout 10 10] [--batch 512] [--hidden 64] [--epochs 20]
                        [--whole-epochs 200] [--seeds 5] [--share X] [--json FILE]

Ways: "whole" is `plait train`, "sampled" is `plait train --sampled`, "pyg" is training on samples by the layers of
PyTorch Geometric and a sampler of its own (pyg_sampled.py), with the same settings; "alike" is the
same with samples as `plait train` takes them (docs/models.md). Each way chooses the epoch with
the best validation accuracy of the whole graph. A graph is any file that Plait reads; --share X splits it anew: X of
the labelled nodes train, half of the others validate, the rest test. Features of which most are 0 are scaled to unit
length.

Prints the mean and the standard deviation of the test accuracy, validation accuracies by epoch, and the differences
of "sampled" to the other ways with the half widths of their 95% confidence intervals (Welch). FILE (build/bench/sampled-accuracy.json) receives the results.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import scipy.sparse
import scipy.stats
import torch

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/nn")]
import pyg_sampled
import results
from running import result_of

WAYS = ("whole", "sampled", "pyg", "alike")
PARTS = ("train", "val", "test")
SHOWN = (1, 5, 10, 10**9)  # epochs whose validation accuracy is printed


def read(path, share):
    """Returns the graph of a file, with unit rows if most features are 0."""
    graph = plait.Graph.load(path)
    masks = {part: getattr(graph, f"{part}_mask") for part in PARTS}
    if share is not None:
        masks = split(graph.y, share)
    if masks["train"].dim() == 2:
        masks = {part: mask[0] for part, mask in masks.items()}
    x = torch.nn.functional.normalize(graph.x) if is_sparse(graph.x) else graph.x
    return pyg_sampled.Graph(x, graph.y, graph.edge_index, masks)


def is_sparse(x):
    return bool((x == 0).float().mean() > 0.5)


def split(y, share):
    labelled = (y >= 0).nonzero().view(-1)
    drawn = labelled[torch.randperm(labelled.numel(), generator=torch.Generator().manual_seed(0))]
    train = round(share * drawn.numel())
    sizes = [train, (drawn.numel() - train) // 2]
    masks = {}
    for part, ids in zip(PARTS, drawn.split([*sizes, drawn.numel() - sum(sizes)])):
        masks[part] = torch.zeros(y.numel(), dtype=torch.bool)
        masks[part][ids] = True
    return masks


def write(graph, folder):
    """Returns the path of a .plait file of the graph."""
    x = {"x": graph.x.numpy()}
    if is_sparse(graph.x):
        rows = scipy.sparse.csr_matrix(x["x"])
        x = {"x_data": rows.data, "x_indices": rows.indices, "x_indptr": rows.indptr, "x_shape": np.array(rows.shape)}
    np.savez(folder / "graph.npz", edge_index=graph.edge_index.numpy(), y=graph.y.numpy(), **x,
             **{part: mask.nonzero().view(-1).numpy() for part, mask in graph.masks.items()})
    result_of("convert", folder / "graph.npz", folder / "graph.plait")
    return folder / "graph.plait"


def by_plait(path, o, kind, seed, sampled):
    """As pyg_sampled.train."""
    steps = ["--epochs", o.whole_epochs]
    if sampled:
        steps = ["--sampled", "--fanout", ",".join(map(str, o.fanout)), "--batch", o.batch, "--epochs", o.epochs]
    found = result_of("train", path, "--model", kind, "--hidden", o.hidden, "--layers", len(o.fanout), "--normalize",
                      "none", "--seed", seed, *steps)
    return found["val_metric_by_epoch"], found["test_accuracy"]


def differ(a, b):
    """Returns the difference of two means, and the half width of its 95% confidence interval by Welch."""
    interval = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return statistics.mean(a) - statistics.mean(b), (interval.high - interval.low) / 2


def trained(way, graph, path, o, run):
    """Returns what pyg_sampled.train returns. `run`: the kind of model, and the seed."""
    if way in ("pyg", "alike"):
        return pyg_sampled.train(graph, o, *run, alike=way == "alike")
    return by_plait(path, o, *run, sampled=way == "sampled")


def compare(name, graph, path, kind, o, kept):
    found = {}
    for way in o.ways:
        runs = [trained(way, graph, path, o, (kind, seed)) for seed in range(o.seeds)]
        found[way] = [100 * test for _, test in runs]
        curve = [100 * statistics.mean(epoch) for epoch in zip(*(validation for validation, _ in runs))]
        fields = {"mean": statistics.mean(found[way]), "deviation": statistics.stdev(found[way]),
                  "validation": [round(curve[min(epoch, len(curve)) - 1], 2) for epoch in SHOWN]}
        print(f"{name:14} {kind:5} {way:8} test {fields['mean']:.2f}, deviation {fields['deviation']:.2f}; validation "
              f"at epochs {', '.join(map(str, SHOWN[:-1]))} and the last: {fields['validation']}", flush=True)
        kept.add("sampled-accuracy", {"graph": name, "model": kind, "way": way}, **fields, seeds=o.seeds)
    for other, accuracies in found.items():
        if other != "sampled" and "sampled" in found:
            difference, interval = differ(found["sampled"], accuracies)
            print(f"{name:14} {kind:5} sampled - {other}: {difference:+.2f} +- {interval:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", nargs="+", type=pathlib.Path, metavar="GRAPH")
    parser.add_argument("--models", nargs="+", choices=list(pyg_sampled.SETTINGS), default=["sage"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--fanout", type=int, nargs="+", default=[10, 10])
    for option, default in (("batch", 512), ("hidden", 64), ("epochs", 20), ("whole-epochs", 200), ("seeds", 5)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--share", type=float, help="of labelled nodes that train, instead of the file's split")
    parser.add_argument("--json", help="file for the results; build/bench/sampled-accuracy.json if not given")
    o = parser.parse_args()
    if o.seeds < 2:
        parser.error(f"--seeds {o.seeds}: a spread needs 2 or more")
    kept = results.Results(o.json or results.FOLDER / "sampled-accuracy.json")
    for path in o.graphs:
        graph = read(path, o.share)
        with tempfile.TemporaryDirectory() as folder:
            written = write(graph, pathlib.Path(folder))
            for kind in o.models:
                compare(path.stem, graph, written, kind, o, kept)


if __name__ == "__main__":
    main()

"""Test accuracy of training on the whole graph and on samples, by `plait train` and by PyTorch Geometric, in percent.

    sampled_accuracy.py GRAPH... [--models sage gcn gat] [--fanout 10 10] [--batch 512] [--hidden 64] [--epochs 20]
                        [--whole-epochs 200] [--seeds 5] [--share X] [--json FILE]

Ways: "whole" is `plait train`, "sampled" is `plait train --sampled`, "pyg" is training on samples by the layers of
PyTorch Geometric and a sampler of its own (pyg_sampled.py), with the same settings. Each way chooses the epoch with
the best validation accuracy of the whole graph. A graph is any file that Plait reads; --share X splits it anew: X of
the labelled nodes train, half of the others validate, the rest test. Features of which most are 0 are scaled to unit
length.

Prints mean, standard deviation and greatest difference between ways; the difference "sampled - pyg" comes with the
half width of its 95% confidence interval (Welch). FILE (build/bench/sampled-accuracy.json) receives the results.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse
import torch

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/nn")]
import pyg_sampled
import results

PLAIT = ROOT / "build/bin/plait"
WAYS = ("whole", "sampled", "pyg")
PARTS = ("train", "val", "test")


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
    subprocess.run([PLAIT, "convert", "--quiet", folder / "graph.npz", folder / "graph.plait"], check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "graph.plait"


def by_plait(path, o, kind, seed, sampled):
    """As pyg_sampled.train."""
    run = [PLAIT, "train", path, "--model", kind, "--hidden", o.hidden, "--layers", len(o.fanout), "--normalize",
           "none", "--seed", seed, "--quiet", "--json"]
    if sampled:
        run += ["--sampled", "--fanout", ",".join(map(str, o.fanout)), "--batch", o.batch]
    run += ["--epochs", o.epochs if sampled else o.whole_epochs]
    done = subprocess.run([*map(str, run)], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    return found["val_metric_by_epoch"], found["test_accuracy"]


def differ(a, b):
    """Returns the difference of two means, and the half width of its 95% interval."""
    parts = [statistics.variance(each) / len(each) for each in (a, b)]
    if sum(parts) == 0:
        return statistics.mean(a) - statistics.mean(b), 0.0
    free = sum(parts) ** 2 / sum(p * p / (len(each) - 1) for p, each in zip(parts, (a, b)))
    return statistics.mean(a) - statistics.mean(b), student_quantile(free) * math.sqrt(sum(parts))


def student_quantile(free):
    """Returns the 0.975 quantile of Student's t, by Hill's expansion (Communications of the ACM 13, 1970)."""
    z = 1.959964
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2) + (
        3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)


def compare(name, graph, path, kind, o, kept):
    found = {}
    for way in o.ways:
        runs = [pyg_sampled.train(graph, o, kind, seed) if way == "pyg" else
                by_plait(path, o, kind, seed, way == "sampled") for seed in range(o.seeds)]
        found[way] = [100 * test for _, test in runs]
        curve = [100 * statistics.mean(epoch) for epoch in zip(*(validation for validation, _ in runs))]
        fields = {"mean": statistics.mean(found[way]), "deviation": statistics.stdev(found[way])}
        print(f"{name:14} {kind:5} {way:8} test {fields['mean']:.2f}, deviation {fields['deviation']:.2f}; validation "
              f"at epochs 1, 5, 10, last: {', '.join(f'{curve[min(e, len(curve)) - 1]:.2f}' for e in (1, 5, 10, 9999))}",
              flush=True)
        kept.add("sampled-accuracy", {"graph": name, "model": kind, "way": way}, **fields, seeds=o.seeds,
                 validation=[round(each, 2) for each in curve] if way != "whole" else round(curve[-1], 2))
    for other in ("pyg", "whole"):
        if {"sampled", other} <= found.keys():
            difference, interval = differ(found["sampled"], found[other])
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

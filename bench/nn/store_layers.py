"""Epochs on samples by PyTorch Geometric's layers and by Plait's, both on Plait's store and sampler (WholeGraph,
figure 11).

    store_layers.py GRAPH.plait [--models SAGE GCN GAT] [--fanout 30 30 30] [--hidden 64] [--batch 512]
                    [--epochs 3] [--steps N] [--untrimmed] [--device cpu|cuda] [--threads N] [--json FILE]

GRAPH has features and labels; without a split a quarter of its vertices train. plait.store maps the file, or keeps
features on the GPU, and plait.loader draws neighbours and gathers features, on one process. A layer gets the part of a
batch that it needs, or with --untrimmed all of it. Each batch is sampled and gathered once; then both
kinds of layers take a step on it, in turns. The losses of the first steps must agree to 1e-3. The first epoch warms up;
--steps ends an epoch early. Prints the median ms of the parts of an epoch, its spread, and the ratio of epochs; FILE
(build/bench/store-layers.json) receives the times as JSON.
"""

import argparse
import copy
import itertools
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric.nn

import plait
import plait.nn
from plait.loader import NeighborLoader
from sampled_epoch import Model

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results

WAYS = {"torch_geometric.nn": torch_geometric.nn, "plait.nn": plait.nn}
PARTS = ("sampling", "gathering", *WAYS)


class Clock:
    """Adds up the ms of parts of an epoch."""

    def __init__(self, device):
        self.ms, self._device = dict.fromkeys(PARTS, 0.0), device

    def time(self, part, work, *arguments):
        """Returns the result of `work`, for whose end on a GPU it waits."""
        begin = time.perf_counter()
        result = work(*arguments)
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        self.ms[part] += (time.perf_counter() - begin) * 1e3
        return result


def step(model, optimizer, batch):
    """Returns the loss of a step."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch, batch.edge_index.clone()), batch.y[:batch.batch_size])
    loss.backward()
    optimizer.step()
    return loss.item()


def epoch(loader, runs, device, most):
    """Returns the ms by part of an epoch, and the losses of its steps by way."""
    clock, losses = Clock(device), {way: [] for way in WAYS}
    order = torch.randperm(len(loader.dataset), generator=torch.Generator().manual_seed(1))
    for indices in order.split(loader.batch_size)[:most]:
        drawn = clock.time("sampling", loader.collate_fn, indices)
        batch = clock.time("gathering", loader.filter_fn, drawn)
        for way, run in runs.items():
            losses[way].append(clock.time(way, step, *run, batch))
    return clock.ms, losses


def check(name, losses):
    """Ends the script unless the first steps have the same losses; later ones drift apart, as sums are rounded in
    another order."""
    for a, b in itertools.islice(zip(*losses.values()), 10):
        if not abs(a - b) <= 1e-3 * abs(a):
            sys.exit(f"store_layers: {name}: the losses are {a} and {b}")


def make_runs(name, widths, device):
    """Returns (model, optimizer) by way; weights are the same at first."""
    torch.manual_seed(1)
    first, runs = None, {}
    for way, layers in WAYS.items():
        model = Model(layers, name, widths)
        first = first or copy.deepcopy(model.state_dict())
        model.load_state_dict(first)
        model.to(device)
        runs[way] = model, torch.optim.Adam(model.parameters(), lr=0.01)
    return runs


def examples_of(features):
    """Returns the ids of the training examples."""
    y = features[None, "y", None]
    names = {attr.attr_name for attr in features.get_all_tensor_attrs()}
    chosen = features[None, "train_mask", None] if "train_mask" in names else torch.arange(y.numel()) % 4 == 0
    chosen = chosen if chosen.dim() == 1 else chosen[:, 0]
    return (chosen.to(y.device) & (y >= 0)).nonzero().view(-1).cpu()


def compare(name, stores, o, device):
    """Returns the ms of each part by epoch."""
    features = stores[0]
    classes = int(features[None, "y", None].max()) + 1
    # Without filter_per_worker, collate_fn() draws neighbours and filter_fn() gathers.
    loader = NeighborLoader(stores, o.fanout, input_nodes=examples_of(features), batch_size=o.batch,
                            filter_per_worker=False, **({"device": device} if device.type == "cuda" else {}))
    width = features[None, "x", torch.tensor([0])].size(1)
    runs = make_runs(name if o.untrimmed else f"{name}, trimmed", [width, *[o.hidden] * (len(o.fanout) - 1), classes], device)
    _, losses = epoch(loader, runs, device, o.steps)
    check(name, losses)
    times = [epoch(loader, runs, device, o.steps)[0] for _ in range(o.epochs)]
    return {part: [each[part] for each in times] for part in PARTS}


def report(name, times, o, kept):
    def text(ms):
        return f"{statistics.median(ms):.1f} ms ({min(ms):.1f} to {max(ms):.1f})"

    whole = {way: [sum(each) for each in zip(times["sampling"], times["gathering"], times[way])] for way in WAYS}
    theirs, ours = (statistics.median(ms) for ms in whole.values())
    case = {"graph": pathlib.Path(o.graph).stem, "model": name, "device": o.device, "trimmed": not o.untrimmed}
    for part in PARTS:
        print(f"{name:5} {part + (' layers' if part in WAYS else ''):26} {text(times[part])}")
        kept.add("store-layers", case | {"part": part}, **results.spread(times[part]))
    for way, ms in whole.items():
        print(f"{name:5} {'epoch by ' + way:26} {text(ms)}")
        kept.add("store-layers", case | {"part": f"epoch by {way}"}, **results.spread(ms))
    print(f"{name:5} Plait's layers make an epoch {theirs / ours:.2f} times as fast (paper: up to 2.43)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("graph")
    for name, default in (("hidden", 64), ("batch", 512), ("epochs", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--steps", type=int, help="steps of an epoch at the most")
    parser.add_argument("--untrimmed", action="store_true", help="layers get whole batches")
    parser.add_argument("--fanout", type=int, nargs="+", default=[30, 30, 30])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--models", nargs="+", choices=["SAGE", "GCN", "GAT"], default=["SAGE", "GCN", "GAT"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", help="file for the times; build/bench/store-layers.json if not given")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    device = plait.device() if o.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    stores = plait.store.load(o.graph, device if device.type == "cuda" else None)
    kept = results.Results(o.json or results.FOLDER / "store-layers.json")
    for name in o.models:
        report(name, compare(name, stores, o, device), o, kept)


if __name__ == "__main__":
    main()

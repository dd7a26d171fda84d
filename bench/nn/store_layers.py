"""Epochs on samples by PyTorch Geometric's layers and by Plait's, both on Plait's store and sampler (WholeGraph,
figure 11).

    store_layers.py GRAPH.plait [--models SAGE GCN GAT] [--fanout 30 30 30] [--hidden 64] [--batch 512]
                    [--epochs 3] [--steps N] [--untrimmed] [--device cpu|cuda] [--threads N] [--json FILE]

GRAPH has features and labels; without a split a quarter of its vertices train. plait.store maps the file, or keeps
features on the GPU, and plait.loader draws neighbours and gathers features, on one process. A layer gets the part of a
batch that it needs, or with --untrimmed all of it. Each batch is sampled and gathered once; then both
kinds of layers take a step on it, in turns. The losses of the first steps must agree to 1e-3. The first epoch warms up;
--steps ends an epoch early. Prints the median ms of the parts of an epoch, its spread, and the ratio of epochs; FILE
(build/bench/store-layers.json) receives the times as JSON. Layers that run out of a GPU's memory are reported so, their
memory is freed, and the others go on alone.
"""

import argparse
import copy
import gc
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
from pyg_layers import failure
from sampled_epoch import Model

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import arguments
import results

WAYS = {"torch_geometric.nn": torch_geometric.nn, "plait.nn": plait.nn}
PARTS = ("sampling", "gathering", *WAYS)


class Clock:
    """Adds up the ms of parts of an epoch."""

    def __init__(self, device):
        self.ms, self.device = dict.fromkeys(PARTS, 0.0), device

    def time(self, part, work, *arguments):
        """Returns the result of `work`, for whose end on a GPU it waits."""
        begin = time.perf_counter()
        result = work(*arguments)
        if self.device.type == "cuda":
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


class Runs:
    """The ways' models and optimizers. A way that lacks memory for a step takes no further ones."""

    def __init__(self, name, widths, device):
        torch.manual_seed(1)
        first, self._of, self.failed = None, {}, {}
        for way, layers in WAYS.items():
            model = Model(layers, name, widths)
            first = first or copy.deepcopy(model.state_dict())  # weights are the same at first
            model.load_state_dict(first)
            model.to(device)
            self._of[way] = model, torch.optim.Adam(model.parameters(), lr=0.01)

    def steps(self, clock, batch):
        """Takes a step of each way on the batch. Returns the losses by way."""
        losses = {}
        for way in list(self._of):
            try:
                losses[way] = clock.time(way, step, *self._of[way], batch)
            except torch.OutOfMemoryError as error:
                self.failed[way] = failure(error)
            if way in self.failed:  # `error`, which holds the step's tensors, is gone
                del self._of[way]
                free(clock.device)
        return losses


def free(device):
    """Gives memory back that no tensor has, for Plait and for other sizes. Not after each step: the next one would
    wait for memory anew."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def epoch(loader, runs, device, most):
    """Returns the ms by part of an epoch, and the losses of its steps by way."""
    clock, losses = Clock(device), {way: [] for way in WAYS}
    order = torch.randperm(len(loader.dataset), generator=torch.Generator().manual_seed(1))
    for indices in order.split(loader.batch_size)[:most]:
        drawn = clock.time("sampling", loader.collate_fn, indices)
        batch = clock.time("gathering", loader.filter_fn, drawn)
        for way, loss in runs.steps(clock, batch).items():
            losses[way].append(loss)
    return clock.ms, losses


def check(name, losses):
    """Ends the script unless the first steps have the same losses; later ones drift apart, as sums are rounded in
    another order."""
    for a, b in itertools.islice(zip(*losses.values()), 10):
        if not abs(a - b) <= 1e-3 * abs(a):
            sys.exit(f"store_layers: {name}: the losses are {a} and {b}")


def examples_of(features):
    """Returns the ids of the training examples."""
    y = features[None, "y", None]
    names = {attr.attr_name for attr in features.get_all_tensor_attrs()}
    chosen = features[None, "train_mask", None] if "train_mask" in names else torch.arange(y.numel()) % 4 == 0
    chosen = chosen if chosen.dim() == 1 else chosen[:, 0]
    return (chosen.to(y.device) & (y >= 0)).nonzero().view(-1).cpu()


def compare(name, stores, o, device):
    """Returns the ms of each part by epoch, and by way why it failed, if it did."""
    features = stores[0]
    classes = int(features[None, "y", None].max()) + 1
    # Without filter_per_worker, collate_fn() draws neighbours and filter_fn() gathers.
    loader = NeighborLoader(stores, o.fanout, input_nodes=examples_of(features), batch_size=o.batch,
                            filter_per_worker=False, **({"device": device} if device.type == "cuda" else {}))
    width = features[None, "x", torch.tensor([0])].size(1)
    free(device)  # of the model before
    layers = name if o.untrimmed else f"{name}, trimmed"
    runs = Runs(layers, [width, *[o.hidden] * (len(o.fanout) - 1), classes], device)
    _, losses = epoch(loader, runs, device, o.steps)
    check(name, losses)
    times = [epoch(loader, runs, device, o.steps)[0] for _ in range(o.epochs)]
    return {part: [each[part] for each in times] for part in PARTS}, runs.failed


def report(name, times, failed, o, kept):
    case = {"graph": pathlib.Path(o.graph).stem, "model": name, "device": o.device, "trimmed": not o.untrimmed}

    def tell(part, label, ms, why):
        text = why or f"{statistics.median(ms):.1f} ms ({min(ms):.1f} to {max(ms):.1f})"
        print(f"{name:5} {label:26} {text}", flush=True)
        kept.add("store-layers", case | {"part": part}, **({"failed": why} if why else results.spread(ms)))

    whole = {way: [sum(each) for each in zip(times["sampling"], times["gathering"], times[way])] for way in WAYS}
    for part in PARTS:
        tell(part, part + (" layers" if part in WAYS else ""), times[part], failed.get(part))
    for way, ms in whole.items():
        tell(f"epoch by {way}", f"epoch by {way}", ms, failed.get(way))
    if not failed:
        theirs, ours = (statistics.median(ms) for ms in whole.values())
        print(f"{name:5} Plait's layers make an epoch {theirs / ours:.2f} times as fast (paper: up to 2.43)",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("graph")
    for name, default in (("hidden", 64), ("batch", 512), ("epochs", 3)):
        parser.add_argument(f"--{name}", type=arguments.count, default=default)
    parser.add_argument("--steps", type=arguments.count, help="steps of an epoch at the most")
    parser.add_argument("--untrimmed", action="store_true", help="layers get whole batches")
    parser.add_argument("--fanout", type=arguments.count, nargs="+", default=[30, 30, 30])
    parser.add_argument("--threads", type=arguments.count, default=torch.get_num_threads())
    parser.add_argument("--models", nargs="+", choices=["SAGE", "GCN", "GAT"], default=["SAGE", "GCN", "GAT"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", help="file for the times; build/bench/store-layers.json if not given")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    device = plait.device() if o.device == "cuda" else torch.device("cpu")
    if device.type != o.device:
        sys.exit("store_layers: there is no GPU; leave --device out")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        stores = plait.store.load(o.graph, device if device.type == "cuda" else None)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"store_layers: {error}")
    kept = results.Results(o.json or results.FOLDER / "store-layers.json")
    for name in o.models:
        report(name, *compare(name, stores, o, device), o, kept)


if __name__ == "__main__":
    main()

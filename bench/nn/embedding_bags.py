"""Sums of embedding rows, forward and backward, on keys of the shape of Criteo's: plait.nn.EmbeddingBags, and
torch.nn.EmbeddingBag with whole tables on ranks and an all-to-all of keys, sums and gradients.

    embedding_bags.py [--samples 2048] [--width 128] [--scale 0.01] [--power 1.05] [--steps 9] [--dtype fp32]
                      [--json FILE]
    torchrun --standalone --nproc-per-node 2 embedding_bags.py [--gpu] ...

Each rank, on the CPU or with --gpu on its GPU, has --samples samples of 26 tables with 214 keys (MLPerf's
DLRM-DCNv2), drawn by a power law; tables have --scale times the rows of Criteo's. Sums of both ways must agree
before anything is timed. The ways take turns. Prints the medians of a forward step, and of a forward and a
backward step with sparse gradients, over all ranks; FILE (build/bench/embedding-bags.json) receives them as JSON.
"""

import argparse
import functools
import os
import pathlib
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist

import plait
from plait.nn import EmbeddingBags

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results

warnings.simplefilter("ignore")

# MLPerf's DLRM-DCNv2 benchmark: rows of the tables of Criteo's click logs, of at most 40 M, and keys per sample.
ROWS = (40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4,
        976, 14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36)
KEYS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)


TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def power_law(rows, shape, power, random):
    """Returns keys of which number k is drawn about as often as 1 / (k + 1) ^ power."""
    u = torch.rand(shape, generator=random, dtype=torch.float64)
    if abs(power - 1) < 1e-6:
        keys = torch.exp(u * torch.log(torch.tensor(rows + 1.0)))
    else:
        keys = (1 + u * ((rows + 1.0) ** (1 - power) - 1)) ** (1 / (1 - power))
    return (keys.long() - 1).clamp_(0, rows - 1)


def fill(weights, t, ids, first):
    """Fills rows `ids` of table t, from column `first` on, by a formula. Some rows at a time."""
    column = torch.arange(first, first + weights.size(1), device=weights.device)
    for begin in range(0, len(weights), 1 << 18):
        some = ids[begin:begin + (1 << 18)].to(weights.device)
        weights[begin:begin + (1 << 18)] = ((some[:, None] * 40503 + column * 9973 + t * 331) % 65521) / 65521 - 0.5
    return weights


class AllToAll(torch.autograd.Function):
    """Sends `sizes[r]` rows to rank r, and their gradients back."""

    @staticmethod
    def forward(context, rows, sizes, received):
        context.sizes = sizes, received
        return exchanged(rows, sizes, received)

    @staticmethod
    def backward(context, gradient):
        sizes, received = context.sizes
        return exchanged(gradient.contiguous(), received, sizes), None, None


def exchanged(rows, sizes, received):
    out = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(out, rows, received, sizes)
    return out


class WholeTables(torch.nn.Module):
    """torch.nn.EmbeddingBag with whole tables, dealt out to ranks by their keys."""

    def __init__(self, rows, width, device, dtype):
        super().__init__()
        self.width, ranks = width, plait.world_size()
        self.of_rank, load = [[] for _ in range(ranks)], [0] * ranks
        for t in sorted(range(len(rows)), key=lambda t: -KEYS[t]):
            least = load.index(min(load))
            self.of_rank[least].append(t)
            load[least] += KEYS[t]
        self.own = self.of_rank[plait.rank()]
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(rows[t], width, mode="sum", sparse=True,
                                  _weight=fill(torch.empty(rows[t], width, device=device, dtype=dtype), t,
                                               torch.arange(rows[t], device=device), 0)) for t in self.own)

    def forward(self, keys):
        """keys: by table (samples, keys); equally many samples on all ranks."""
        samples, ranks = len(keys[0]), plait.world_size()
        if ranks == 1:
            sums = {t: table(keys[t]) for t, table in zip(self.own, self.tables)}
            return torch.stack([sums[t] for t in range(len(keys))], 1)
        sent = [samples * sum(KEYS[t] for t in tables) for tables in self.of_rank]
        got = exchanged(torch.cat([keys[t].flatten() for tables in self.of_rank for t in tables]), sent,
                        [sent[plait.rank()]] * ranks).view(ranks, -1)
        sums, at = [], 0
        for t, table in zip(self.own, self.tables):
            count = samples * KEYS[t]
            sums.append(table(got[:, at:at + count].reshape(-1, KEYS[t])).view(ranks, samples, self.width))
            at += count
        rows = torch.stack(sums, 1).view(-1, self.width)
        back = AllToAll.apply(rows, [len(self.own) * samples] * ranks, [len(t) * samples for t in self.of_rank])
        order = torch.argsort(torch.tensor([t for tables in self.of_rank for t in tables], device=back.device))
        return back.view(len(keys), samples, self.width)[order].transpose(0, 1)


def plaits_tables(rows, width, samples, device, dtype):
    tables = EmbeddingBags(rows, width, mode="sum", sparse=True, ids_per_sample=KEYS, samples=samples, device=device,
                           dtype=dtype)
    for t, piece in enumerate(tables.weights):
        fill(piece.data, t, tables._tables._handle.ids(t), tables._tables._pieces[t][1])
    return tables


def meet(device):
    """Waits for this rank's GPU, and for all ranks."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    if dist.is_initialized():
        dist.barrier()


def milliseconds(work, device):
    meet(device)
    begin = time.perf_counter()
    work()
    meet(device)
    return (time.perf_counter() - begin) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--power", type=float, default=1.05)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--dtype", choices=TYPES, default="fp32", help="type of the tables' numbers")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--json", default=results.FOLDER / "embedding-bags.json")
    o = parser.parse_args()
    device = plait.device() if o.gpu else torch.device("cpu")
    if o.gpu:
        torch.cuda.set_device(device)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("nccl" if o.gpu else "gloo")
    rows = [max(3, int(n * o.scale)) for n in ROWS]
    random = torch.Generator().manual_seed(plait.rank())
    keys = [power_law(n, (o.samples, k), o.power, random).to(device) for n, k in zip(rows, KEYS)]
    ids = torch.cat([k.flatten() for k in keys])
    sizes = torch.tensor(KEYS, device=device).repeat_interleave(o.samples)
    offsets = sizes.cumsum(0) - sizes
    dtype = TYPES[o.dtype]
    ours, theirs = plaits_tables(rows, o.width, o.samples, device, dtype), WholeTables(rows, o.width, device, dtype)
    ways = {"plait": lambda: ours(ids, offsets), "torch": lambda: theirs(keys)}
    wanted = theirs(keys)
    near = 1e-4 if o.dtype == "fp32" else 0.02  # PyTorch may round each addition
    torch.testing.assert_close(ours(ids, offsets), wanted, rtol=near, atol=near)
    gradient = torch.rand(wanted.shape, generator=random).to(device, dtype)
    del wanted

    def forward(way):
        with torch.no_grad():
            way()

    def both(way):
        ours.zero_grad()
        theirs.zero_grad()
        way().backward(gradient)

    times = {(kind.__name__, name): [] for kind in (forward, both) for name in ways}
    for step in range(o.steps + 2):
        for kind in (forward, both):
            for name, way in ways.items():
                spent = milliseconds(functools.partial(kind, way), device)
                if step >= 2:
                    times[kind.__name__, name].append(spent)
    if plait.rank() == 0:
        report(o, times)
    if dist.is_initialized():  # its threads do not outlive the interpreter
        dist.barrier()
        dist.destroy_process_group()


def report(o, times):
    ranks = plait.world_size()
    file = results.Results(o.json)
    for kind in ("forward", "both"):
        print(f"{kind}: " + ", ".join(
            f"{name} {statistics.median(times[kind, name]):.2f} ms ({min(times[kind, name]):.2f} to "
            f"{max(times[kind, name]):.2f}), {o.samples * ranks / statistics.median(times[kind, name]) / 1e3:.3f} M "
            "samples/s" for name in ("plait", "torch")))
        for name in ("plait", "torch"):
            case = {"step": kind, "by": name, "device": "cuda" if o.gpu else "cpu", "ranks": ranks,
                    "samples": o.samples, "width": o.width, "scale": o.scale, "power": o.power, "dtype": o.dtype}
            file.add("embedding-bags", case, **results.spread(times[kind, name]))


if __name__ == "__main__":
    main()

"""Training steps on sampled mini-batches, by the layers of torch_geometric.nn and of plait.nn.

    sampled_epoch.py [--nodes 200000] [--edges 5000000] [--features 64] [--hidden 64] [--classes 16]
                     [--fanout 15 10] [--batch 1024] [--batches 12] [--threads N] [--models NAME ...]
                     [--json FILE]

Two layers, on a generated graph. plait.loader draws the batches beforehand, so that times have no sampling
in them; every step gets the edges in a new tensor, as an epoch brings them. The two ways take turns, batch
by batch; losses must agree to 1e-4. The first two batches warm up. Prints the median time of a step, its
spread, and the ratio; FILE (build/bench/sampled-epoch.json) receives the times as JSON.
"""

import argparse
import copy
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric.nn
from torch_geometric.data import Data
from torch_geometric.utils import trim_to_layer

import plait.nn
from plait.loader import NeighborLoader

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import results

# name -> layer, its further arguments, and whether each layer gets only what it needs of a batch
MODELS = {
    "SAGE": ("SAGEConv", {}, False),
    "GCN": ("GCNConv", {}, False),
    "GAT": ("GATConv", {"heads": 4, "concat": False}, False),
}
MODELS |= {f"{name}, trimmed": (layer, more, True) for name, (layer, more, _) in MODELS.items()}


class Model(torch.nn.Module):
    def __init__(self, layers, name, widths):
        super().__init__()
        kind, more, self.trims = MODELS[name]
        make = getattr(layers, kind)
        self.convs = torch.nn.ModuleList(make(*ends, **more) for ends in zip(widths, widths[1:]))

    def forward(self, batch, edge_index):
        x = batch.x
        for number, conv in enumerate(self.convs):
            if self.trims:
                x, edge_index, _ = trim_to_layer(number, batch.num_sampled_nodes, batch.num_sampled_edges, x,
                                                 edge_index)
            x = conv(x if number == 0 else x.relu(), edge_index)
        return x[:batch.batch_size]


def make_batches(options):
    """Returns sampled batches of a graph whose nodes' in-degrees vary as a power law's."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(options.nodes, (options.edges,), generator=generator)
    skewed = torch.rand(options.edges, generator=generator).pow(2) * options.nodes
    data = Data(x=torch.randn(options.nodes, options.features, generator=generator),
                edge_index=torch.stack([source, skewed.long().clamp(max=options.nodes - 1)]),
                y=torch.randint(options.classes, (options.nodes,), generator=generator))
    torch.manual_seed(1)
    seeds = torch.randperm(options.nodes)[:options.batches * options.batch]
    return list(NeighborLoader(data, options.fanout, input_nodes=seeds, batch_size=options.batch))


def step(model, optimizer, batch):
    """Returns the milliseconds of a step, and its loss."""
    edge_index = batch.edge_index.clone()
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch, edge_index), batch.y[:batch.batch_size])
    loss.backward()
    optimizer.step()
    return (time.perf_counter() - begin) * 1e3, loss.item()


def compare(name, batches, options):
    """Returns the times of steps by PyTorch Geometric's layers, and by Plait's."""
    torch.manual_seed(1)
    widths = [options.features, options.hidden, options.classes]
    theirs = Model(torch_geometric.nn, name, widths)
    ours = Model(plait.nn, name, widths)
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    runs = [(model, torch.optim.Adam(model.parameters(), lr=0.01)) for model in (theirs, ours)]
    times = [[], []]
    for batch in batches:
        losses = []
        for way, run in enumerate(runs):
            milliseconds, loss = step(*run, batch)
            times[way].append(milliseconds)
            losses.append(loss)
        if not abs(losses[0] - losses[1]) <= 1e-4 * abs(losses[0]):
            raise SystemExit(f"sampled_epoch: {name}: the losses are {losses[0]} and {losses[1]}")
    return [way[2:] for way in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("nodes", 200_000), ("edges", 5_000_000), ("features", 64), ("hidden", 64),
                          ("classes", 16), ("batch", 1024), ("batches", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--fanout", type=int, nargs=2, default=[15, 10])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--json", help="file for the times; build/bench/sampled-epoch.json if not given")
    options = parser.parse_args()
    if options.batches < 3:
        parser.error(f"--batches {options.batches}: give 3 or more, of which two warm up")
    torch.set_num_threads(options.threads)
    kept = results.Results(options.json or results.FOLDER / "sampled-epoch.json")
    batches = make_batches(options)
    print(f"batches have {statistics.mean(b.num_nodes for b in batches):.0f} nodes and "
          f"{statistics.mean(b.num_edges for b in batches):.0f} edges", flush=True)
    for name in options.models:
        theirs, ours = compare(name, batches, options)
        ratio = statistics.median(theirs) / statistics.median(ours)
        print(f"{name:14} PyG {statistics.median(theirs):8.1f} ms ({min(theirs):.1f} to {max(theirs):.1f}), "
              f"plait.nn {statistics.median(ours):8.1f} ms ({min(ours):.1f} to {max(ours):.1f}), "
              f"{ratio:.2f} times as fast", flush=True)
        case = {"model": name, "threads": options.threads}
        for way, times in (("torch_geometric.nn", theirs), ("plait.nn", ours)):
            kept.add("sampled-epoch", case | {"way": way}, **results.spread(times))


if __name__ == "__main__":
    main()

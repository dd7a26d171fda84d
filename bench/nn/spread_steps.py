"""Training steps of PyTorch Geometric's models, spread over ranks by plait.parallelize.

    torchrun --standalone --nproc-per-node N bench/nn/spread_steps.py GRAPH [--models gcn sage gat gin transformer pna]
        [--hidden 256] [--layers 3] [--steps 10] [--plain] [--json FILE]

GRAPH: a file that plait.Graph.load reads, with features, labels and a split, as `plait generate dcsbm`
makes it. Models train on the full graph with Adam, on each rank's plait.device(). The last two models have
layers that Plait has no kernels for. With --plain, one process trains them as they are, without
plait.parallelize, for comparison; losses show that both train the same model. Prints, for each model, the
time from the call of plait.parallelize to the end of the first step, the time of the second step, and
the median of later ones; FILE (build/bench/spread-N.json) receives the times as JSON.
"""

import argparse
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results

class Transformers(torch.nn.Module):
    """TransformerConv of one head, with ReLU between layers."""

    def __init__(self, widths):
        super().__init__()
        self.convs = torch.nn.ModuleList(map(pyg.TransformerConv, widths, widths[1:]))

    def forward(self, x, edge_index):
        for conv in self.convs[:-1]:
            x = conv(x, edge_index).relu()
        return self.convs[-1](x, edge_index)


def pna(a, hidden, layers, b, graph):
    degrees = torch.bincount(torch.bincount(graph.edge_index[1], minlength=graph.num_nodes))
    return pyg.PNA(a, hidden, layers, b, aggregators=["mean", "min", "max", "std"],
                   scalers=["identity", "amplification", "attenuation"], deg=degrees.cpu())


# Name -> function of the input width, hidden width, number of layers, output width and the graph.
MODELS = {
    "gcn": lambda a, hidden, layers, b, _: pyg.GCN(a, hidden, layers, b),
    "sage": lambda a, hidden, layers, b, _: pyg.GraphSAGE(a, hidden, layers, b),
    "gat": lambda a, hidden, layers, b, _: pyg.GAT(a, hidden, layers, b, heads=4),
    "gin": lambda a, hidden, layers, b, _: pyg.GIN(a, hidden, layers, b),
    "transformer": lambda a, hidden, layers, b, _: Transformers([a, *[hidden] * (layers - 1), b]),
    "pna": pna,
}


def train(kind, graph, options, device):
    """Returns milliseconds: of placing the graph and a step, of the second step, the median of later."""
    torch.manual_seed(0)
    classes = int(graph.y.max()) + 1
    widths = graph.x.size(1), options.hidden, options.layers, classes
    model, data = MODELS[kind](*widths, graph).to(device), graph
    times = []
    begin = time.perf_counter()
    if not options.plain:
        model, data = plait.parallelize(model, graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=device.type == "cuda")
    for _ in range(options.steps + 2):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        mask = data.train_mask
        loss = plait.mean(F.cross_entropy(out[mask], data.y[mask], reduction="none"))
        loss.backward()
        optimizer.step()
        value = loss.item()
        now = time.perf_counter()
        times.append((now - begin) * 1e3)
        begin = now
    return times[0], times[1], statistics.median(times[2:]), value


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--plain", action="store_true", help="PyTorch Geometric alone, on one rank")
    parser.add_argument("--json", help="file for the times; build/bench/spread-N.json if not given")
    options = parser.parse_args()
    device = plait.device()
    if options.plain and plait.world_size() > 1:
        parser.error("--plain is for one rank")
    by = "PyTorch Geometric" if options.plain else "Plait"
    if plait.rank() == 0:
        kept = results.Results(options.json or results.FOLDER / f"spread-{plait.world_size()}.json")
    for kind in options.models:
        # Each model gets a copy, because objects made of a graph are kept as long as its tensors live.
        graph = plait.Graph.load(options.graph).to(device)
        first, second, later, loss = train(kind, graph, options, device)
        del graph
        if plait.rank() == 0:
            print(f"{kind:5} by {by}, {plait.world_size()} ranks: first step {first:.0f} ms, second "
                  f"{second:.1f}, then {later:.2f}; last loss {loss:.6f}", flush=True)
            case = {"graph": pathlib.Path(options.graph).stem, "model": kind, "layers": options.layers,
                    "hidden": options.hidden, "device": device.type, "ranks": plait.world_size(),
                    **({"by": by} if options.plain else {})}
            kept.add("spread", case, first_ms=first, second_ms=second, median_ms=later, last_loss=loss)


if __name__ == "__main__":
    main()

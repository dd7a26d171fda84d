"""Training steps of models of PyTorch Geometric as they are, and with Plait's layers instead.

    pyg_layers.py GRAPH [--models gcn sage ...] [--hidden 64] [--steps 20] [--device cpu|cuda]
                  [--json FILE]

GRAPH: a file that plait.Graph.load reads, with features, labels and a split, as `plait generate dcsbm`
makes it. Models have two layers and train on the full graph with Adam. PyTorch Geometric is given the edges
in each form that its layer takes: as edge_index, and as a sparse CSR tensor; the normalised edges of GCN and
APPNP are cached. A form that fails, for lack of memory say, prints why. The loss of the first step has to be
Plait's before the form is timed. Prints the median time of a step after the first three; FILE (build/bench/layers-DEVICE.json)
receives the times as JSON.
"""

import argparse
import itertools
import pathlib
import re
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results

LAYERS = {
    "gcn": lambda package, a, b: package.GCNConv(a, b, cached=True),
    "sage": lambda package, a, b: package.SAGEConv(a, b),
    "gat": lambda package, a, b: package.GATConv(a, b, heads=1),
    "gin": lambda package, a, b: package.GINConv(torch.nn.Linear(a, b)),
    "graph": lambda package, a, b: package.GraphConv(a, b),
    "sage-max": lambda package, a, b: package.SAGEConv(a, b, aggr="max"),
    "sage-4": lambda package, a, b: package.SAGEConv(a, b, aggr=["mean", "min", "max", "std"]),
    "sg": lambda package, a, b: package.SGConv(a, b, K=2),
    "tag": lambda package, a, b: package.TAGConv(a, b, K=2),
    "appnp": lambda package, a, b: Propagated(package, a, b),
    "softmax": lambda package, a, b: package.SAGEConv(a, b, aggr="softmax"),
    "gatv2": lambda package, a, b: package.GATv2Conv(a, b),
    "transformer": lambda package, a, b: package.TransformerConv(a, b),
    "gat-edges": lambda package, a, b: package.GATConv(a, b, edge_dim=OF_EDGES),
    "gatv2-edges": lambda package, a, b: package.GATv2Conv(a, b, edge_dim=OF_EDGES),
    "transformer-edges": lambda package, a, b: package.TransformerConv(a, b, edge_dim=OF_EDGES),
    "gine": lambda package, a, b: package.GINEConv(torch.nn.Linear(a, b), edge_dim=OF_EDGES),
}
OF_EDGES = 8  # features of each edge
WITH_FEATURES = ("gat-edges", "gatv2-edges", "transformer-edges", "gine")


class Propagated(torch.nn.Module):
    """A linear map, and APPNP of its results."""

    def __init__(self, package, a, b):
        super().__init__()
        self.lin, self.propagate = torch.nn.Linear(a, b), package.APPNP(5, 0.1, cached=True)

    def forward(self, x, edges):
        return self.propagate(self.lin(x), edges)


class TwoLayers(torch.nn.Module):
    def __init__(self, package, kind, inputs, hidden, classes):
        super().__init__()
        torch.manual_seed(0)
        self.first = LAYERS[kind](package, inputs, hidden)
        self.second = LAYERS[kind](package, hidden, classes)

    def forward(self, x, edges, *of_edges):
        return self.second(self.first(x, edges, *of_edges).relu(), edges, *of_edges)


def steps(model, edges, data, of_edges):
    """Does steps without end; yields the seconds and the loss of each."""
    on_gpu = data.x.is_cuda
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=on_gpu)
    while True:
        begin = time.perf_counter()
        optimizer.zero_grad()
        out = model(data.x, edges, *of_edges)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        yield time.perf_counter() - begin, loss.item()


def csr_of(graph, device):
    """Returns a sparse CSR tensor whose rows are targets, as PyTorch Geometric's adj_t."""
    source, target = graph.edge_index.to(device)
    size = (graph.num_nodes, graph.num_nodes)
    ones = torch.ones(graph.num_edges, device=device)
    return torch.sparse_coo_tensor(torch.stack([target, source]), ones, size).coalesce().to_sparse_csr()


def features_of_edges(graph, device):
    torch.manual_seed(1)
    return (torch.randn(graph.num_edges, OF_EDGES, device=device),)


def failure(error):
    """The first line, or for lack of a GPU's memory, which is told at length, how much was wanted."""
    line = str(error).splitlines()[0]
    wanted = re.search(r"out of memory\. Tried to allocate ([\d.]+ \w+)", line)
    return f"out of memory ({wanted[1]})" if wanted else line[:90]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--models", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", help="file for the times; build/bench/layers-DEVICE.json if not given")
    options = parser.parse_args()
    kept = results.Results(options.json or results.FOLDER / f"layers-{options.device}.json")
    warnings.simplefilter("ignore")  # torch warns that sparse CSR tensors are young
    device = options.device
    graph = plait.Graph.load(options.graph)
    for name in ("x", "y", "train_mask"):
        setattr(graph, name, getattr(graph, name).to(device))
    classes = int(graph.y.max()) + 1
    forms = {"plait": lambda: graph, "edge_index": lambda: graph.edge_index.to(device),
             "sparse CSR": lambda: csr_of(graph, device)}
    for kind in options.models:
        expected = ours = None
        of_edges = features_of_edges(graph, device) if kind in WITH_FEATURES else ()
        for form, edges_of in forms.items():
            if of_edges and form == "sparse CSR":
                continue  # PyTorch Geometric takes no edge_attr beside it
            case = {"graph": pathlib.Path(options.graph).stem, "device": device, "model": kind, "form": form}
            package = plait.nn if form == "plait" else pyg
            try:
                model = TwoLayers(package, kind, graph.x.size(1), options.hidden, classes).to(device)
                running = steps(model, edges_of(), graph, of_edges)
                _, loss = next(running)
                expected = expected or loss
                apart = abs(loss - expected) / expected
                if apart > 1e-3:
                    sys.exit(f"pyg_layers: {kind} by {form} is another model than plait's: the first "
                             f"loss is {loss}, not {expected}")
                timed = itertools.islice(running, 2, 2 + options.steps)
                times = [seconds * 1e3 for seconds, _ in timed]
            except (RuntimeError, NotImplementedError, ValueError) as error:
                print(f"{kind:17} {form:11} {failure(error)}", flush=True)
                kept.add("layers", case, failed=failure(error))
                continue
            finally:
                model = running = None
                if device == "cuda":
                    torch.cuda.empty_cache()
            median = statistics.median(times)
            ours = ours or median
            print(f"{kind:17} {form:11} {median:9.2f} ms ({min(times):.2f} to {max(times):.2f}), "
                  f"{median / ours:.2f} times plait's; first loss {apart:.1e} from plait's", flush=True)
            kept.add("layers", case, **results.spread(times), first_loss_apart=apart)


if __name__ == "__main__":
    main()

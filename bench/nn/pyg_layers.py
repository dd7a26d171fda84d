"""Training steps of models of PyTorch Geometric as they are, and with Plait's layers instead.

    pyg_layers.py GRAPH [--models gcn sage gat gin] [--hidden 64] [--steps 20] [--device cpu]

GRAPH: a file that plait.Graph.load reads, with features, labels and a split; made for it:
`plait generate dcsbm --like products --classes 47 --width 100 -o products.plait`. Models of two
layers, full graph, Adam. PyTorch Geometric is given the edges in each form that its layer takes: as
edge_index, and as a sparse CSR tensor; GCN's normalisation is cached. A form that fails, for lack of
memory say, prints why. Prints the median time of a step, and of the first step how far the loss is
from that of Plait.
"""

import argparse
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait

LAYERS = {
    "gcn": lambda package, a, b: package.GCNConv(a, b, cached=True),
    "sage": lambda package, a, b: package.SAGEConv(a, b),
    "gat": lambda package, a, b: package.GATConv(a, b, heads=1),
    "gin": lambda package, a, b: package.GINConv(torch.nn.Linear(a, b)),
}


class TwoLayers(torch.nn.Module):
    def __init__(self, package, kind, inputs, hidden, classes):
        super().__init__()
        torch.manual_seed(0)
        self.first = LAYERS[kind](package, inputs, hidden)
        self.second = LAYERS[kind](package, hidden, classes)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)


def steps(model, edges, data, count, device):
    """Seconds of each, and the first loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=device == "cuda")
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    seconds, losses = [], []
    for _ in range(count + 3):
        wait()
        begin = time.perf_counter()
        optimizer.zero_grad()
        out = model(data.x, edges)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        wait()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.detach())
    return seconds[3:], losses[0].item()


def csr_of(graph, device):
    """A sparse CSR tensor, rows targets, as PyTorch Geometric's adj_t."""
    source, target = graph.edge_index.to(device)
    size = (graph.num_nodes, graph.num_nodes)
    ones = torch.ones(graph.num_edges, device=device)
    return torch.sparse_coo_tensor(torch.stack([target, source]), ones, size).coalesce().to_sparse_csr()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--models", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device = options.device
    warnings.simplefilter("ignore")  # of torch, that sparse CSR tensors are young
    graph = plait.Graph.load(options.graph)
    for name in ("x", "y", "train_mask"):
        setattr(graph, name, getattr(graph, name).to(device))
    classes = int(graph.y.max()) + 1
    forms = {"plait": lambda: graph, "edge_index": lambda: graph.edge_index.to(device),
             "sparse CSR": lambda: csr_of(graph, device)}
    for kind in options.models:
        ours = None
        for form, make in forms.items():
            package = plait.nn if form == "plait" else pyg
            try:
                model = TwoLayers(package, kind, graph.x.size(1), options.hidden, classes).to(device)
                seconds, loss = steps(model, make(), graph, options.steps, device)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                print(f"{kind:5} {form:11} {str(error).splitlines()[0][:90]}", flush=True)
                continue
            finally:
                model = None
                if device == "cuda":
                    torch.cuda.empty_cache()
            median = statistics.median(seconds) * 1e3
            ours = ours or (median, loss)
            print(f"{kind:5} {form:11} {median:9.2f} ms ({min(seconds) * 1e3:.2f} to "
                  f"{max(seconds) * 1e3:.2f}), {median / ours[0]:.2f} times plait's; first loss "
                  f"{loss:.5f}, {abs(loss - ours[1]) / ours[1]:.1e} from plait's", flush=True)
            if abs(loss - ours[1]) > 1e-3 * ours[1]:
                sys.exit(f"pyg_layers: {kind} by {form} is another model than plait's")


if __name__ == "__main__":
    main()

"""Training steps of models of PyTorch Geometric as they are, and with Plait's layers instead.

    pyg_layers.py GRAPH [--models gcn sage gat gin] [--hidden 64] [--steps 20]

GRAPH: a file that plait.Graph.load reads, with features, labels and a split, as `plait generate dcsbm`
makes it. Models of two layers, full graph, Adam, on the CPU. PyTorch Geometric is given the edges in
each form that its layer takes: as edge_index, and as a sparse CSR tensor; GCN's normalisation is
cached. A form that fails, for lack of memory say, prints why. Prints the median time of a step, and of
the first step how far the loss is from that of Plait.
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


def steps(model, edges, data, count):
    """Seconds of each after the first three, and the first loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seconds, losses = [], []
    for _ in range(count + 3):
        begin = time.perf_counter()
        optimizer.zero_grad()
        out = model(data.x, edges)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    return seconds[3:], losses[0]


def csr_of(graph):
    """A sparse CSR tensor, rows targets, as PyTorch Geometric's adj_t."""
    source, target = graph.edge_index
    size = (graph.num_nodes, graph.num_nodes)
    ones = torch.ones(graph.num_edges)
    return torch.sparse_coo_tensor(torch.stack([target, source]), ones, size).coalesce().to_sparse_csr()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--models", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of torch, that sparse CSR tensors are young
    graph = plait.Graph.load(options.graph)
    classes = int(graph.y.max()) + 1
    forms = {"plait": graph, "edge_index": graph.edge_index, "sparse CSR": csr_of(graph)}
    for kind in options.models:
        ours = None
        for form, edges in forms.items():
            package = plait.nn if form == "plait" else pyg
            try:
                model = TwoLayers(package, kind, graph.x.size(1), options.hidden, classes)
                seconds, loss = steps(model, edges, graph, options.steps)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                print(f"{kind:5} {form:11} {str(error).splitlines()[0][:90]}", flush=True)
                continue
            median = statistics.median(seconds) * 1e3
            ours = ours or (median, loss)
            print(f"{kind:5} {form:11} {median:9.2f} ms ({min(seconds) * 1e3:.2f} to "
                  f"{max(seconds) * 1e3:.2f}), {median / ours[0]:.2f} times plait's; first loss "
                  f"{loss:.5f}, {abs(loss - ours[1]) / ours[1]:.1e} from plait's", flush=True)
            if abs(loss - ours[1]) > 1e-3 * ours[1]:
                sys.exit(f"pyg_layers: {kind} by {form} is another model than plait's")


if __name__ == "__main__":
    main()

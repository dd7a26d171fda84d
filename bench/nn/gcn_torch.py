"""Full-graph GCN on torch.sparse, to compare plait train --gpus 1 with.

    gcn_torch.py GRAPH.npz [--epochs 50] [--hidden 16] [--json FILE]

The model is that of plait train: two layers of D^-1/2 (A + I) D^-1/2 X W + b, ReLU and dropout between,
Adam with weight decay on the first layer. The product is torch.sparse CSR's; the gradient uses a cached
transpose. Prints the median time of a training step, and the first and last loss; FILE
(build/bench/gcn-torch.json) receives them as JSON.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results


def normalized_adjacency(edge_index, vertices):
    source, target = (torch.from_numpy(row.astype(np.int64)).cuda() for row in edge_index)
    keep = source != target
    loops = torch.arange(vertices, device="cuda")
    source, target = torch.cat([source[keep], loops]), torch.cat([target[keep], loops])
    scale = torch.bincount(target, minlength=vertices).float().rsqrt()
    coo = torch.sparse_coo_tensor(torch.stack([target, source]), scale[target] * scale[source],
                                  (vertices, vertices)).coalesce()
    return coo.to_sparse_csr(), coo.t().coalesce().to_sparse_csr()


class Propagate(torch.autograd.Function):
    @staticmethod
    def forward(context, x, matrix, transposed):
        context.transposed = transposed
        return matrix @ x

    @staticmethod
    def backward(context, gradient):
        return context.transposed @ gradient, None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--json", default=results.FOLDER / "gcn-torch.json")
    options = parser.parse_args()
    data = np.load(options.graph, allow_pickle=False)
    x = torch.from_numpy(data["x"]).cuda()
    y = torch.from_numpy(data["y"].astype(np.int64)).cuda()
    train = torch.from_numpy(data["train"]).cuda()
    matrix, transposed = normalized_adjacency(data["edge_index"], len(x))
    torch.manual_seed(0)
    first = torch.nn.Linear(x.shape[1], options.hidden).cuda()
    second = torch.nn.Linear(options.hidden, int(y.max()) + 1).cuda()
    optimizer = torch.optim.Adam([{"params": first.parameters(), "weight_decay": 5e-4},
                                  {"params": second.parameters()}], lr=0.01)

    def propagate(h, layer):
        return Propagate.apply(h @ layer.weight.t(), matrix, transposed) + layer.bias

    times, losses = [], []
    for _ in range(options.epochs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad()
        dropped = torch.nn.functional.dropout
        h = dropped(propagate(dropped(x, 0.5), first).relu(), 0.5)
        loss = torch.nn.functional.cross_entropy(propagate(h, second)[train], y[train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - begin) * 1e3)
    print(f"torch.sparse CSR: {statistics.median(times):.3f} ms per epoch "
          f"({min(times):.3f} to {max(times[3:]):.3f}), loss {losses[0]:.4f} to {losses[-1]:.4f}")
    results.Results(options.json).add(
        "gcn-torch", {"graph": pathlib.Path(options.graph).stem, "hidden": options.hidden},
        **results.spread(times) | {"most_ms": max(times[3:])}, last_loss=losses[-1])


if __name__ == "__main__":
    main()

"""Training on samples by the layers of PyTorch Geometric and a plain sampler: the oracle of sampled_accuracy.py.

It has no code of Plait. Neighbours are drawn as torch_geometric.loader.NeighborLoader draws them ("directional",
without replacement): hop by hop, from the nodes that the hop before has found, and each layer computes on all of
the drawn edges. GCN then divides by the degrees that nodes have in the sample. Accuracies are measured on the whole graph.

With `alike`, samples are those that docs/models.md describes for `plait train --sampled`: each layer has edges of its
own, which are drawn for all nodes whose rows it makes, and GCN divides by the degrees of the whole graph.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

# Kind -> dropout, learning rate, weight decay: the defaults of `plait train`.
SETTINGS = {"gcn": (0.5, 0.01, 5e-4), "sage": (0.5, 0.01, 5e-4), "gat": (0.6, 0.005, 5e-4)}
HEADS = 8


@dataclasses.dataclass
class Graph:
    """x, y, edge_index, and masks by name: "train", "val", "test". Labels are -1 where unknown."""

    x: torch.Tensor
    y: torch.Tensor
    edge_index: torch.Tensor
    masks: dict

    def examples(self, part):
        return (self.masks[part] & (self.y >= 0)).nonzero().view(-1)


class Sampler:
    """Draws edges into nodes, at most so many per node and hop."""

    def __init__(self, edge_index, nodes):
        order = edge_index[1].argsort(stable=True)
        self._source = edge_index[0, order]
        degree = edge_index[1].bincount(minlength=nodes)
        self._end = degree.cumsum(0)
        self._degree = degree
        self._number = torch.full((nodes,), -1)

    def draw(self, seeds, fanouts, for_all=False):
        """Returns the ids of nodes, seeds first, and the edges of each hop as places in these ids. A hop draws for
        the nodes that the hop before has found, or `for_all` that were found so far."""
        found, hops, targets = seeds, [], seeds
        self._number[seeds] = torch.arange(seeds.numel())
        for fanout in fanouts:
            source, target = self._draw_hop(targets, fanout)
            fresh = source[self._number[source] < 0].unique()
            self._number[fresh] = found.numel() + torch.arange(fresh.numel())
            hops.append(torch.stack([self._number[source], self._number[target]]))
            found = torch.cat([found, fresh])
            targets = found if for_all else fresh
        self._number[found] = -1
        return found, hops

    def _draw_hop(self, targets, fanout):
        degree = self._degree[targets]
        owner = torch.arange(targets.numel()).repeat_interleave(degree)
        first = (degree.cumsum(0) - degree)[owner]
        place = torch.arange(owner.numel()) - first + (self._end - self._degree)[targets][owner]
        # Of each target, the edges with the least random keys.
        order = torch.argsort(owner + torch.rand(owner.numel(), dtype=torch.float64))
        kept = order[torch.arange(owner.numel()) - first < fanout]
        return self._source[place[kept]], targets[owner[kept]]


class Model(torch.nn.Module):
    """Layers as `plait train` stacks them: dropout on each layer's input, an activation between layers. With
    `weighted`, which is for `gcn`, edges come with loops and weights."""

    def __init__(self, kind, widths, weighted=False):
        super().__init__()
        self.kind, (self.dropout, *_) = kind, SETTINGS[kind]
        ends = list(zip(widths, widths[1:]))
        if kind == "gat":
            self.convs = [GATConv(i, o // HEADS, HEADS, dropout=self.dropout) for i, o in ends[:-1]]
            self.convs.append(GATConv(*ends[-1], 1, dropout=self.dropout))
        else:
            options = {"normalize": False} if weighted else {}
            self.convs = [{"gcn": GCNConv, "sage": SAGEConv}[kind](*each, **options) for each in ends]
        self.convs = torch.nn.ModuleList(self.convs)

    def forward(self, x, edges):
        """`edges`: a tuple by layer, of edge_index and, if they have them, weights."""
        for number, (conv, of_layer) in enumerate(zip(self.convs, edges)):
            if number > 0:
                x = F.elu(x) if self.kind == "gat" else x.relu()
            x = conv(F.dropout(x, self.dropout, self.training), *of_layer)
        return x

    def parameter_groups(self):
        """Weight decay is for all layers of gat, and for all but the last of the others."""
        decay = SETTINGS[self.kind][2]
        last = list(self.convs[-1].parameters())
        others = [p for conv in self.convs[:-1] for p in conv.parameters()]
        return [{"params": others, "weight_decay": decay},
                {"params": last, "weight_decay": decay if self.kind == "gat" else 0}]


def weighted(ids, edges, degree):
    """Returns edges and loops, and their weights in GCN by the degrees of the whole graph. Weights of drawn edges are
    scaled so that their sum estimates that over all edges."""
    loops = torch.arange(ids.numel())
    root = (degree[ids] + 1.0).sqrt()
    scale = degree[ids] / edges[1].bincount(minlength=ids.numel()).clamp(min=1)
    weight = scale[edges[1]] / (root[edges[0]] * root[edges[1]])
    return torch.cat([edges, loops.expand(2, -1)], 1), torch.cat([weight, root**-2])


@torch.no_grad()
def accuracies(model, graph, edges):
    """Returns the accuracy by part, and the validation loss, of the whole graph, of which these are the edges."""
    model.eval()
    scores = model(graph.x, [edges] * len(model.convs))
    found = {}
    for part in graph.masks:
        ids = graph.examples(part)
        found[part] = float((scores[ids].argmax(1) == graph.y[ids]).float().mean())
    ids = graph.examples("val")
    return found, float(F.cross_entropy(scores[ids], graph.y[ids]))


def train(graph, o, kind, seed, alike=False):
    """Returns the validation accuracies by epoch, and the test accuracy of the epoch with the best one. `o`: hidden,
    fanout, batch and epochs."""
    torch.manual_seed(seed)
    degree = graph.edge_index[1].bincount(minlength=graph.x.size(0))

    has_weights = alike and kind == "gcn"

    def edges_of(ids, edges):
        return weighted(ids, edges, degree) if has_weights else (edges,)

    widths = [graph.x.size(1), *[o.hidden] * (len(o.fanout) - 1), int(graph.y.max()) + 1]
    model, sampler = Model(kind, widths, has_weights), Sampler(graph.edge_index, graph.x.size(0))
    optimizer = torch.optim.Adam(model.parameter_groups(), lr=SETTINGS[kind][1])
    examples, validation, best = graph.examples("train"), [], None
    whole = edges_of(torch.arange(graph.x.size(0)), graph.edge_index)
    for _ in range(o.epochs):
        model.train()
        for seeds in examples[torch.randperm(examples.numel())].split(o.batch):
            optimizer.zero_grad()
            ids, hops = sampler.draw(seeds, o.fanout, for_all=alike)
            layers = reversed(hops) if alike else [torch.cat(hops, 1)] * len(hops)
            scores = model(graph.x[ids], [edges_of(ids, edges) for edges in layers])[:seeds.numel()]
            F.cross_entropy(scores, graph.y[seeds]).backward()
            optimizer.step()
        found, loss = accuracies(model, graph, whole)
        validation.append(found["val"])
        best = max(best or (-1,), (found["val"], -loss, found["test"]))
    return validation, best[2]

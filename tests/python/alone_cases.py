"""Work of one rank alone in the midst of the training of a spread model. As a program on two ranks, it trains,
lets rank 0 do what the case of the given name does within plait.alone() while rank 1 does nothing, trains on, and
prints the losses and what rank 0 has found, as JSON."""

import copy
import functools
import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait
from plait._edges.values import edge_ends
from spread_cases import CLASSES, NODES, WIDTH, error_of, make_data

BEFORE, AFTER = 3, 6  # joint steps


class Net(torch.nn.Module):
    """Drops attention, and rows; has running statistics."""

    def __init__(self):
        super().__init__()
        self.attend = pyg.GATConv(WIDTH, 8, heads=2, dropout=0.5)
        self.norm = torch.nn.BatchNorm1d(16)
        self.sum = pyg.SAGEConv(16, CLASSES)

    def forward(self, x, edge_index):
        x = self.norm(self.attend(x, edge_index)).relu()
        return self.sum(F.dropout(x, 0.4, self.training), edge_index)


class Job:
    """A spread model in training."""

    def __init__(self):
        torch.manual_seed(3)
        self.whole = make_data()
        self.model, self.data = plait.parallelize(Net(), self.whole)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def loss(self):
        out = self.model(self.data.x, self.data.edge_index)[self.data.train_mask]
        return plait.mean(F.cross_entropy(out, self.data.y[self.data.train_mask], reduction="none"))

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def scores(self):
        """Returns scores of all nodes in evaluation mode; collective."""
        with torch.no_grad():
            scores = self.data.edge_index.gather(self.model.eval()(self.data.x, self.data.edge_index))
        self.model.train()
        return scores


# --- what rank 0 does alone ---


def nothing(job):
    pass


def call_in_training(job):
    """As docs/processes.md has it; the model is in training mode, and gradients are on."""
    whole = plait.Graph(job.whole.edge_index, NODES)
    return [*job.model(job.whole.x, whole).shape, *job.model(job.whole.x, job.whole.edge_index).shape]


def call_in_evaluation(job):
    with torch.no_grad():
        scores = job.model.eval()(job.whole.x, plait.Graph(job.whole.edge_index, NODES))
    job.model.train()
    return [*scores.shape]


def call_of_a_copy(job):
    other = copy.deepcopy(job.model)
    return [*other(job.whole.x, job.whole.edge_index).shape]


def save_the_model(job):
    with tempfile.TemporaryFile() as file:
        torch.save(job.model, file)
        file.seek(0)
        return [*torch.load(file, weights_only=False)(job.whole.x, job.whole.edge_index).shape]


def many_weights(job):
    """More than are kept, all of which live."""
    weights = [torch.full((job.whole.num_edges,), 1.0 + k) for k in range(20)]
    sums = [plait.aggregate(plait.Graph(job.whole.edge_index, NODES, weight), torch.ones(NODES, 1), "weighted").sum()
            for weight in weights]
    return [(total / sums[0]).item() for total in sums]


def train_another_model(job):
    torch.manual_seed(1)
    model, data = plait.parallelize(pyg.GCN(WIDTH, 8, 2, CLASSES, dropout=0.5, norm="batch_norm"), job.whole)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = plait.mean(F.cross_entropy(model(data.x, data.edge_index), data.y, reduction="none"))
        loss.backward()
        optimizer.step()
    return data.num_nodes


def train_on_batches(job):
    layer = plait.nn.GATConv(WIDTH, CLASSES, dropout=0.5)
    loader = plait.loader.NeighborLoader(job.whole, [3], batch_size=20)
    for batch in loader:
        F.cross_entropy(layer(batch.x, batch.edge_index)[: batch.batch_size], batch.y[: batch.batch_size]).backward()
    return len(loader)


def embed(job):
    bag = plait.nn.EmbeddingBag(100, 8, mode="sum", sparse=True, split="rows")
    optimizer = plait.optim.RowAdagrad(bag.parameters())
    bag(torch.arange(10), torch.tensor([0, 5])).sum().backward()
    optimizer.step()
    return [*bag.full_weight().shape, *copy.deepcopy(bag)(torch.arange(10), torch.tensor([0, 5])).shape]


def sums_and_rows(job):
    graph = plait.Graph(job.whole.edge_index, NODES)
    rows = plait.gather(job.whole.x, torch.tensor([3, 4]), graph)
    return [plait.sum(torch.ones(3)).item(), plait.mean(torch.ones(3)).item(), *rows.shape, graph.num_own,
            *graph.gather(job.whole.x).shape, plait.rank(), plait.world_size()]


def advice(job):
    return plait.advise(pyg.GCN(WIDTH, 8, 2, CLASSES), job.whole).ranks


def checkpoints(job):
    model = plait.nn.Model(plait.nn.ModelConfig("gcn", WIDTH, CLASSES))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        plait.save_checkpoint(model, path)
        return [*plait.load_checkpoint(path).model()(job.whole.x, job.whole.edge_index).shape]


CASES = {work.__name__: work for work in (
    nothing, call_in_training, call_in_evaluation, call_of_a_copy, save_the_model, many_weights, train_another_model,
    train_on_batches, embed, sums_and_rows, advice, checkpoints)}


def run(work):
    job = Job()
    losses = [job.step() for _ in range(BEFORE)]
    found = None
    if plait.rank() == 0:
        generator = torch.get_rng_state()
        with plait.alone():
            found = work(job)
        torch.set_rng_state(generator)
    losses += [job.step() for _ in range(AFTER)]
    print(json.dumps({"losses": losses, "found": found, "scores": job.scores().tolist()}))


# --- gradients ---


def error_of_gradients(model, data):
    """Returns the largest difference between a gradient along a direction and the difference of two losses, relative
    to the gradients' size; collective. Copies of the model draw the same dropout, at the same call."""
    torch.manual_seed(8)
    factor = torch.randn(NODES, CLASSES)

    def loss(changed):
        return plait.sum(changed(data.x, data.edge_index) * data.edge_index.own(factor))

    first = copy.deepcopy(model)
    loss(first).backward()
    worst, size, small = 0.0, 1.0, 2e-3
    for name, parameter in first.named_parameters():
        direction = F.normalize(torch.randn(parameter.shape).flatten(), dim=0).view(parameter.shape)
        found = []
        for sign in (1, -1):
            other = copy.deepcopy(model)
            with torch.no_grad():
                other.get_parameter(name).add_(direction, alpha=sign * small)
                found.append(loss(other).item())
        exact = (parameter.grad * direction).sum().item()
        worst, size = max(worst, abs((found[0] - found[1]) / (2 * small) - exact)), max(size, abs(exact))
    return worst / size


class Attention(torch.nn.Module):
    """`fails`: whether a call raises an error after the layer."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GATConv(WIDTH, CLASSES, heads=2, dropout=0.5, concat=False)
        self.fails = False

    def forward(self, x, edge_index):
        out = self.conv(x, edge_index)
        if self.fails:
            raise torch.OutOfMemoryError("on this rank")
        return out


def gradients(disturb):
    """Prints the error of gradients before and after disturb(model, data, whole)."""
    torch.manual_seed(2)
    whole = make_data()
    model, data = plait.parallelize(Attention(), whole)
    before = error_of_gradients(model, data)
    said = disturb(model, data, whole)
    print(json.dumps({"before": before, "said": said, "after": error_of_gradients(model, data)}))


def a_call_alone(model, data, whole):
    if plait.rank() == 0:
        with plait.alone(), torch.no_grad():
            model(whole.x, whole.edge_index)


def a_call_that_fails(model, data, whole):
    model.fails = plait.rank() == 0
    said = error_of(lambda: model(data.x, data.edge_index))
    model.fails = False
    return said


def other_counts():
    """A call in training mode on one rank and not on the other. It is found where attention is dropped, and calls
    at which ranks compare weights: the first, second, fourth, eighth and sixteenth one."""
    torch.manual_seed(2)
    model, data = plait.parallelize(Attention(), make_data())
    for _ in range(4):
        model(data.x, data.edge_index)
    model.train(plait.rank() == 0).conv.eval()
    model(data.x, data.edge_index)
    model.train()
    attention = error_of(lambda: model(data.x, data.edge_index))
    after = error_of(lambda: [plait.mean(model(data.x, data.edge_index).sum(1)).backward() for _ in range(11)])
    model.conv.dropout = 0.0
    other = plait.parallelize(Attention(), make_data())[0]
    other.conv.dropout = 0.0
    for training in (True, plait.rank() == 0):
        other.train(training)
        with torch.no_grad():
            other(data.x, data.edge_index)
    other.train()
    print(json.dumps({"attention": attention, "after": after,
                      "weights": error_of(lambda: other(data.x, data.edge_index))}))


def other_gradients():
    """A call in training on all ranks, with gradients on one of them alone."""
    torch.manual_seed(2)
    model, data = plait.parallelize(Attention(), make_data())
    for _ in range(4):
        model(data.x, data.edge_index)
    with torch.set_grad_enabled(plait.rank() == 1):
        attention = error_of(lambda: model(data.x, data.edge_index))
    after = error_of(lambda: [model(data.x, data.edge_index) for _ in range(12)])
    print(json.dumps({"attention": attention, "after": after}))


def spread_alone():
    """A model that was spread by each process alone."""
    with plait.alone():
        model, _ = plait.parallelize(Attention(), make_data())
    data = plait.spread(make_data())
    print(json.dumps(error_of(lambda: model(data.x, data.edge_index))))


# --- what is made by one world and used in another ---


def seeds_that_differ():
    """Attention outside of a spread model, whose dropout follows torch's generator of each rank."""
    torch.manual_seed(5)
    index, factor, way = torch.randint(NODES, (2, 400)), torch.randn(NODES, 8), torch.randn(NODES, WIDTH)
    layer, graph = plait.nn.GATConv(WIDTH, 4, heads=2, dropout=0.5).requires_grad_(False), plait.Graph(index, NODES)
    rows = graph.own(make_data().x).clone().requires_grad_()
    way = graph.own(way)

    def loss(rows):
        torch.manual_seed(20 + plait.rank())
        return (layer(rows, graph) * graph.own(factor)).sum()

    loss(rows).backward()
    exact = plait.sum((rows.grad * way).detach()).item()
    with torch.no_grad():
        ends = [plait.sum(loss(rows + sign * 1e-2 * way).view(1)).item() for sign in (1, -1)]
    print(json.dumps({"exact": exact, "found": (ends[0] - ends[1]) / 2e-2, "next": torch.rand(()).item()}))


def weights_that_live_longer_on_one_rank():
    """Objects that ranks make together go on all of them or on none."""
    index = make_data().edge_index
    graph, own = plait.Graph(index, NODES), []

    def weighted(weight):
        return plait.sum(plait.aggregate(plait.Graph(index, NODES, weight), torch.ones(graph.num_own, 1), "weighted"))

    first = torch.ones(index.size(1))
    totals = [plait.sum(plait.aggregate(graph, torch.ones(graph.num_own, 1))).item(), weighted(first).item()]
    for k in range(10):
        weight = torch.full_like(first, 2.0 + k)
        weighted(weight)
        if plait.rank() == 0:
            own.append(weight)
    for k in range(8):
        own.append(torch.full_like(first, 20.0 + k))
        weighted(own[-1])
    totals += [plait.sum(plait.aggregate(graph, torch.ones(graph.num_own, 1))).item(), weighted(first).item()]
    if plait.rank() == 0:
        graph.num_own_edges  # noqa: B018  what one rank makes by itself pushes nothing out
        for k in range(20):
            edge_ends(index, NODES + k, NODES + k)
    totals.append(weighted(first).item())
    print(json.dumps({"edges": index.size(1), "totals": totals}))


def embedding_tables():
    bag = plait.nn.EmbeddingBag(100, 8, mode="sum", split="rows")
    ids, offsets = torch.arange(10), torch.tensor([0, 5])
    before, said, total = bag(ids, offsets), [], bag(ids, offsets).sum()
    if plait.rank() == 0:
        with plait.alone():
            said = [error_of(call) for call in (lambda: bag(ids, offsets), bag.full_weight, bag.reset_parameters,
                                                total.backward)]
            own = plait.nn.EmbeddingBag(10, 4)
        said.append(error_of(lambda: own(ids, offsets)))
        said.append([*torch.load(saved(bag))])
    same = bool(torch.equal(bag(ids, offsets), before))
    print(json.dumps({"said": said, "same": same, "sum": plait.sum(torch.ones(2)).item()}))


def saved(bag):
    file = tempfile.TemporaryFile()
    torch.save(bag.state_dict(), file)
    file.seek(0)
    return file


def backward_alone():
    """A step backward through what ranks have made together would wait for them."""
    job = Job()
    graph, loss = plait.Graph(job.whole.edge_index, NODES), job.loss()
    rows = graph.own(job.whole.x).clone().requires_grad_()
    sums = plait.aggregate(graph, rows).sum()
    maxima = plait.nn.SAGEConv(WIDTH, 2, aggr="max").requires_grad_(False)(rows, graph).sum()
    read = plait.gather(rows, torch.tensor([1, NODES - 1]), graph).sum()
    owners = torch.ops.plait.partition_of_edges(job.whole.edge_index, NODES, None, "edges")
    own, said = graph.num_own, []
    if plait.rank() == 0:
        with plait.alone():
            said = [error_of(call) for call in (
                loss.backward, sums.backward, maxima.backward, read.backward,
                lambda: torch.ops.plait.gather_rows(torch.ones(own, 1), owners),
                lambda: torch.ops.plait.graph_from_edges(job.whole.edge_index, NODES, partition=owners))]
    print(json.dumps({"said": said, "step": job.step()}))


def own_vertices():
    """A partition knows its own ranks."""
    plait.init()
    owners = torch.ops.plait.partition_of_edges(make_data().edge_index, NODES, None, "vertices")
    before = owners.own_vertices()
    with plait.alone():
        within = owners.own_vertices()
    print(json.dumps(before.tolist() == within.tolist() and len(before) < NODES))


def profile_of_the_machine():
    """The profile is taken once by the ranks that have joined, together, and never by one beside them."""
    plait.init()
    take = torch.ops.plait.take_measured_machine
    take()
    for _ in range(2):
        if plait.rank() == 0:
            with plait.alone():
                take()
        take()
    print(json.dumps(plait.sum(torch.ones(2)).item()))


def a_graph_in_two_worlds():
    """What one rank chooses alone for a graph does not decide for what the ranks do with it together."""
    whole = make_data()
    open_graph, chosen = plait.Graph(whole), plait.Graph(whole.edge_index, NODES)
    plait.spread(chosen, partition="hash", strategy="replicate")
    if plait.rank() == 0:
        with plait.alone():
            for graph in (open_graph, chosen):
                plait.spread(graph, partition="vertices", reorder="degree")
                plait.aggregate(graph, whole.x)
                plait.nn.SAGEConv(WIDTH, 2)(whole.x, graph)
    model, data = plait.parallelize(pyg.GCN(WIDTH, 8, 2, CLASSES), open_graph)
    rows = plait.aggregate(chosen, chosen.own(whole.x))
    print(json.dumps([*model(data.x, data.edge_index).shape, data.edge_index.num_own, chosen.partition, chosen.strategy,
                      len(rows) == chosen.num_own]))


PROGRAMS = {**{name: functools.partial(run, work) for name, work in CASES.items()},
            "a_call_alone": lambda: gradients(a_call_alone), "a_call_that_fails": lambda: gradients(a_call_that_fails),
            **{program.__name__: program for program in (
                other_counts, other_gradients, spread_alone, seeds_that_differ, weights_that_live_longer_on_one_rank,
                embedding_tables, backward_alone, own_vertices, profile_of_the_machine, a_graph_in_two_worlds)}}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()

"""Mistakes that must not go unnoticed on two ranks: each is an error with the same line on both. As a
program, it prints NAME and the error of each check."""

import types

import torch
import torch.nn.functional as F

import plait

RANK = int(plait.rank())
INDEX = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])


class Net(torch.nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.conv = plait.nn.GCNConv(2, width)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)

    def encode(self, x, edge_index):
        return self.conv(x, edge_index)


def data(**changed):
    y = torch.tensor([0, 1, 2, 0])
    return types.SimpleNamespace(**{"x": torch.eye(4, 2), "y": y, "edge_index": INDEX, **changed})


def spread(**options):
    model, own = plait.parallelize(Net(), data(), **options)
    return model, own, lambda out: F.cross_entropy(out, own.y, reduction="none")


def graphs_of_other_edges():
    plait.Graph(INDEX if RANK == 0 else INDEX.flip(0))


def graphs_of_other_size():
    plait.Graph(INDEX, 4 + RANK)


def graphs_of_other_weights():
    plait.Graph(INDEX, 4, torch.full((5,), 1.0 + RANK))


def graphs_with_other_partitions():
    plait.Graph(INDEX, partition=("edges", "hash")[RANK])


def unknown_partition():
    plait.Graph(INDEX, partition="half")


def graphs_changed_in_place():
    index = INDEX.clone()
    graph = plait.Graph(index)
    if RANK == 1:
        index[0, 0] = 3
    plait.aggregate(graph, torch.ones(graph.num_own, 1))


def models_of_other_shapes():
    plait.parallelize(Net(3 + RANK), data())


def data_of_other_content():
    plait.parallelize(Net(), data(x=torch.full((4, 2), float(RANK))))


def model_spread_twice():
    model, own, _ = spread()
    plait.parallelize(model, own)


def loss_of_own_rows():
    model, own, losses = spread()
    losses(model(own.x, own.edge_index)).mean().backward()


def loss_partly_of_own_rows():
    model, own, losses = spread()
    out = model(own.x, own.edge_index)
    (plait.mean(losses(out)) + 0.1 * out.square().mean()).backward()


def losses_of_which_one_is_of_own_rows():
    model, own, losses = spread()
    out = model(own.x, own.edge_index)
    torch.autograd.backward([plait.sum(losses(out)), out.sum()])


def other_weights_frozen():
    model, own, losses = spread()
    (model.conv.bias, model.conv.lin.weight)[RANK].requires_grad_(False)
    plait.mean(losses(model(own.x, own.edge_index))).backward()


def a_sum_and_a_mean():
    (plait.sum, plait.mean)[RANK](torch.ones(3))


def sums_of_other_types():
    plait.sum(torch.ones(3, dtype=(torch.float32, torch.int64)[RANK]))


def a_sum_and_rows():
    graph = plait.Graph(INDEX)
    if RANK == 0:
        plait.sum(torch.ones(3))
    else:
        graph.gather(torch.ones(graph.num_own, 2))


def a_sum_and_a_graph():
    plait.sum(torch.ones(3)) if RANK == 0 else plait.Graph(INDEX)


def rows_of_other_widths():
    graph = plait.Graph(INDEX)
    graph.gather(torch.ones(graph.num_own, 2 + RANK))


def rows_of_other_types():
    graph = plait.Graph(INDEX)
    graph.gather(torch.ones(graph.num_own, 2, dtype=(torch.float32, torch.float64)[RANK]))


def layers_with_and_without_loops():
    graph = plait.Graph(INDEX.clone())  # nothing has been made of this tensor
    layer = (plait.nn.GCNConv, plait.nn.SAGEConv)[RANK](2, 2)
    with torch.no_grad():
        layer(torch.ones(graph.num_own, 2), graph)


def aggregates_of_other_widths():
    graph = plait.Graph(INDEX)
    plait.aggregate(graph, torch.ones(graph.num_own, 4 + RANK))


def later_aggregates_of_other_widths():
    graph = plait.Graph(INDEX)
    for width in (9, 3):
        plait.aggregate(graph, torch.ones(graph.num_own, width))
    plait.aggregate(graph, torch.ones(graph.num_own, (9, 3)[RANK]))


def an_aggregate_and_its_gradient():
    graph = plait.Graph(INDEX)
    x = torch.ones(graph.num_own, 2, requires_grad=True)
    y = plait.aggregate(graph, x).sum()
    y.backward() if RANK == 0 else plait.aggregate(graph, x)


def mean_of_a_mean():
    model, own, losses = spread()
    plait.mean(losses(model(own.x, own.edge_index)).mean())


def mean_of_nothing():
    plait.mean(torch.empty(0))


def method_that_is_not_named():
    model, own, losses = spread()
    model.encode(own.x, own.edge_index)


def parameter_outside():
    model, own, losses = spread()
    head = torch.nn.Linear(3, 3)
    plait.mean(losses(head(model(own.x, own.edge_index))))


def layer_on_a_tensor():
    with torch.no_grad():
        plait.nn.GCNConv(2, 2)(torch.ones(2, 2), INDEX)


def all_rows_to_a_layer():
    with torch.no_grad():
        plait.nn.GCNConv(2, 2)(torch.ones(4, 2), plait.Graph(INDEX))


def list_of_nodes():
    plait.spread(data(train_index=INDEX))


def lazy_weights():
    plait.parallelize(torch.nn.Sequential(torch.nn.LazyLinear(2)), data())


class Odd(Net):
    def forward(self, x, edge_index):
        return F.alpha_dropout(x, 0.5, training=self.training)


def other_dropout():
    model, own = plait.parallelize(Odd(), data())
    model(own.x, own.edge_index)


class OddRows(Net):
    def forward(self, x, edge_index):
        return F.dropout(torch.ones(5, 2), 0.5, training=self.training)


def dropout_of_other_rows():
    model, own = plait.parallelize(OddRows(), data())
    model(own.x, own.edge_index)


CHECKS = [f for f in list(globals().values()) if isinstance(f, types.FunctionType)
          and f.__module__ == __name__ and f not in (data, spread)]

if __name__ == "__main__":
    for check in CHECKS:
        try:
            check()
        except Exception as error:
            print(check.__name__, type(error).__name__, error, sep=": ")
        else:
            print(check.__name__, "no error", sep=": ")

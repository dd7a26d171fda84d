"""Further checks of a spread model, on any number of ranks; each rank asserts them, against PyTorch
Geometric on the whole graph in the same process."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

import plait
from spread_cases import TwoLayers, make_data

DATA = make_data()


def close(found, wanted):
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-5), (found, wanted)


def losses(model, data):
    return F.cross_entropy(model(data.x, data.edge_index), data.y, reduction="none")


def pair(make, data=DATA, **options):
    """Returns a model as it is, the same one spread, and its data."""
    plain = make()
    return (plain, *plait.parallelize(copy.deepcopy(plain), data, **options))


def check_gradients(model, plain):
    for (name, found), wanted in zip(model.named_parameters(), plain.parameters()):
        assert (found.grad is None) == (wanted.grad is None), name
        if wanted.grad is not None:
            close(found.grad, wanted.grad)


def rows_go_both_ways():
    graph = plait.Graph(DATA.edge_index, DATA.num_nodes, partition="hash")
    nodes = torch.arange(DATA.num_nodes)
    assert torch.equal(graph.own(nodes), graph.vertices)
    assert torch.equal(graph.gather(graph.vertices), nodes)
    for rows in (torch.randn(len(nodes), 2, 3), nodes % 3 == 0, DATA.x.t()[:4].t(), DATA.x[:, :0]):
        assert torch.equal(graph.gather(graph.own(rows)), rows)


def sums_are_of_all_ranks():
    graph = plait.Graph(DATA.edge_index, DATA.num_nodes)
    total = plait.sum(graph.vertices)
    assert total.dtype == torch.int64 and total == DATA.num_nodes * (DATA.num_nodes - 1) // 2
    assert plait.sum(torch.tensor(2.5)) == 2.5 * plait.world_size()
    close(plait.mean(graph.own(DATA.train_mask)), DATA.train_mask.float().mean())
    few = torch.ones(3 if plait.rank() == 0 else 0)
    assert plait.mean(few) == 1


def integers_are_summed_exactly():
    first = plait.rank() == 0
    others = plait.world_size() - 1
    for dtype, on_first, on_others, total in (
            (torch.int64, 2**53, 1, 2**53 + others), (torch.int64, -(2**63), 0, -(2**63)),
            (torch.uint64, 2**63 - 1, 0, 2**63 - 1), (torch.int8, -128, 127, 127 * others - 128),
            (torch.bool, True, True, others + 1), (torch.uint16, 2**16 - 1, 0, 2**16 - 1)):
        found = plait.sum(torch.tensor([on_first if first else on_others], dtype=dtype))
        assert (found.dtype, found.item()) == (torch.int64, total)
    # A sum may overflow on one rank alone if the sum of all ranks fits.
    assert plait.sum(torch.tensor([2**63 - 1, 1, -2] if first else [0])) == 2**63 - 2
    for dtype, value in ((torch.int64, 2**63 - 1), (torch.uint64, 2**64 - 1)):
        with pytest.raises(OverflowError, match=f"{value + others + 2}, is outside of int64"):
            plait.sum(torch.tensor([value, 2] if first else [1], dtype=dtype))


def what_is_no_tensor_of_real_numbers():
    for reduce, name in ((plait.sum, "plait.sum"), (plait.mean, "plait.mean")):
        for value, kind in (([1, 2], "list"), (torch.ones(2).numpy(), "ndarray")):
            with pytest.raises(TypeError, match=f"{name} takes a tensor, not a {kind}"):
                reduce(value)
        with pytest.raises(TypeError, match=f"{name} takes real numbers"):
            reduce(torch.ones(2, dtype=torch.complex64))


def ranks_without_nodes():
    data = make_data()
    data.edge_index = torch.tensor([[0], [1]])
    data.x, data.y = data.x[:2], torch.tensor([0, 2])
    del data.train_mask, data.val_mask
    for make in (lambda: TwoLayers(pyg.GCNConv, norm=torch.nn.BatchNorm1d(16)),
                 lambda: TwoLayers(pyg.GATConv), lambda: TwoLayers(pyg.SAGEConv, aggr="max")):
        plain, model, own = pair(make, data, partition="vertices")
        losses(plain, data).mean().backward()
        plait.mean(losses(model, own)).backward()
        check_gradients(model, plain)
        model.p = 0.5
        losses(model, own)


def batches_are_normalised_in_bfloat16():
    """Statistics and gradients are float32, as torch's are, and rows have the type that they came with."""
    for affine in (True, False):
        def make(affine=affine):
            return TwoLayers(pyg.GCNConv, norm=torch.nn.BatchNorm1d(16, affine=affine))
        plain, model, own = pair(make)
        for net, data, mean in ((plain, DATA, torch.mean), (model, own, plait.mean)):
            with torch.autocast("cpu", torch.bfloat16):
                loss = mean(losses(net, data).float())
            loss.backward()
        for name in ("running_mean", "running_var"):
            found, wanted = getattr(model.norm, name), getattr(plain.norm, name)
            torch.testing.assert_close(found, wanted, rtol=0.02, atol=2e-3)
        x = own.x[:, :16].bfloat16() if own.x.size(1) >= 16 else torch.ones(own.x.size(0), 16).bfloat16()
        assert model.norm(x).dtype == torch.bfloat16


def gradients_add_up():
    """Several backward passes, a penalty of the weights, and torch.autograd.grad."""
    plain, model, own = pair(lambda: TwoLayers(pyg.GCNConv))
    for net, data, mean in ((plain, DATA, torch.mean), (model, own, plait.mean)):
        for _ in range(2):
            penalty = sum(p.square().sum() for p in net.mix.parameters())
            (mean(losses(net, data)) + 0.1 * penalty).backward()
        mean(losses(net, data)).mul(3).backward()
    check_gradients(model, plain)
    (found,) = torch.autograd.grad(plait.mean(losses(model, own)), [model.conv1.bias])
    close(found, torch.autograd.grad(losses(plain, DATA).mean(), [plain.conv1.bias])[0])


def some_weights_are_frozen_or_shared():
    def make():
        model = TwoLayers(pyg.SAGEConv)
        model.conv1.lin_r.weight = model.conv1.lin_l.weight
        model.mix.requires_grad_(False)
        return model

    plain, model, own = pair(make)
    assert model.conv1.lin_r.weight is model.conv1.lin_l.weight
    losses(plain, DATA).mean().backward()
    plait.mean(losses(model, own)).backward()
    check_gradients(model, plain)


class PartOfRows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.part = pyg.GCNConv(DATA.x.size(1), 3), torch.nn.Linear(3, 3)
        self.never = torch.nn.Linear(3, 3)

    def forward(self, x, edge_index, rows=None):
        h = self.conv(x, edge_index)
        if rows is None or rows.any():
            h = torch.where(rows[:, None], self.part(h), h)
        return h


def weights_that_some_ranks_do_not_use():
    plain, model, own = pair(PartOfRows)
    graph = own.edge_index
    owners = graph.gather(torch.full((graph.num_own,), plait.rank()))
    for net, data, mean in ((plain, DATA, torch.mean), (model, own, plait.mean)):
        rows = owners == 0 if net is plain else graph.own(owners) == 0
        out = net(data.x, data.edge_index, rows)
        mean(F.cross_entropy(out, data.y, reduction="none")).backward()
    check_gradients(model, plain)


class Autoencoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(DATA.x.size(1), 4)
        self.out = torch.nn.Linear(4, 2)

    def encode(self, x, edge_index):
        return self.conv(x, edge_index).relu()

    def decode(self, z):
        return self.out(z).square().sum(1)

    def forward(self, data):
        return self.decode(self.encode(data.x, data.edge_index))


def other_methods():
    methods = ("forward", "encode", "decode")
    plain, model, own = pair(Autoencoder, methods=methods)
    plain(DATA).mean().backward()
    plait.mean(model.decode(model.encode(own.x, own.edge_index))).backward()
    check_gradients(model, plain)
    model.zero_grad()
    plait.mean(model(own)).backward()
    check_gradients(model, plain)


def copies_are_independent():
    _, model, own = pair(lambda: TwoLayers(pyg.GCNConv))
    copied = copy.deepcopy(model)
    before = copied(own.x, own.edge_index)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(copied(own.x, own.edge_index), before)
    assert type(model).__name__ == "TwoLayers" and isinstance(model, TwoLayers)
    model.load_state_dict(copied.state_dict())
    assert torch.equal(model(own.x, own.edge_index), before)


class Drops(torch.nn.Module):
    def __init__(self, p, inplace=False):
        super().__init__()
        self.first, self.second = torch.nn.Dropout(p, inplace), torch.nn.Dropout(p)

    def forward(self, x, data):
        return self.first(x), self.second(torch.ones(len(x), 2, 300))


def dropout_is_by_node():
    _, model, own = pair(lambda: Drops(0.25))
    graph, x = own.edge_index, torch.ones(own.edge_index.num_own, 600, requires_grad=True)
    first, second = model(x, own)
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())  # the mask
    first, second = graph.gather(first), graph.gather(second).flatten(1)
    kept = torch.tensor(1 / 0.75)
    assert all(v == 0 or v == kept for v in first.unique())
    for mask in (first, second):
        assert abs((mask == 0).float().mean() - 0.25) < 0.02
        assert (mask.mean(1) - 1).abs().max() < 0.2 and len(mask.unique(dim=0)) == len(mask)
    again = graph.gather(model(x, own)[0])
    for one, other in ((first, second), (first, again)):
        agree = ((one == 0) & (other == 0)).float().mean()
        assert abs(agree - 0.25**2) < 0.02  # calls and steps are independent
    assert torch.equal(model.eval()(x, own)[0], x)
    _, none, _ = pair(lambda: Drops(1.0, inplace=True))
    x = torch.ones(graph.num_own, 3)
    none(x, own)
    assert (x == 0).all()


def a_compiled_model_is_right():
    plain, model, own = pair(lambda: TwoLayers(pyg.GCNConv))
    compiled = torch.compile(model, backend="eager")
    plait.mean(losses(compiled, own)).backward()
    losses(plain, DATA).mean().backward()
    check_gradients(model, plain)


def what_cannot_be_spread():
    class Own(pyg.MessagePassing):
        def message(self, x, x_j):
            return x.sum() * x_j

    model = torch.nn.ModuleDict({
        "own": Own(), "cheb": pyg.ChebConv(2, 2, 2), "pair": pyg.PairNorm(),
        "graph": pyg.LayerNorm(2), "pool": pyg.TopKPooling(2),
        "flow": pyg.GCNConv(2, 2, flow="target_to_source"),
        "batch": torch.nn.BatchNorm2d(2), "lstm": torch.nn.LSTM(2, 2),
        "fine": torch.nn.Sequential(pyg.Linear(2, 2), torch.nn.LayerNorm(2), pyg.MLP([2, 2, 2])),
    })
    try:
        plait.parallelize(model, DATA)
    except NotImplementedError as error:
        named = [name for name in model if f"ModuleDict.{name} (" in str(error)]
        assert named == [name for name in model if name != "fine"], error
    else:
        raise AssertionError("they were spread")


CHECKS = (rows_go_both_ways, sums_are_of_all_ranks, ranks_without_nodes, batches_are_normalised_in_bfloat16,
          gradients_add_up,
          some_weights_are_frozen_or_shared, other_methods, copies_are_independent,
          dropout_is_by_node, a_compiled_model_is_right, what_cannot_be_spread)

if __name__ == "__main__":
    for check in CHECKS:
        torch.manual_seed(3)
        check()
        print(check.__name__)

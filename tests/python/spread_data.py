"""Forms of data that plait.parallelize takes, what is kept of them, extreme values over ranks, and models that are
saved. spread_links.py runs these checks, on one rank and on several."""

import copy
import io
import pickle
import random
import warnings

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
import torch_geometric.transforms as T
from torch_geometric import seed_everything
from torch_geometric.data import Data

import plait
import spread_layers
from edges import extreme_by_scatter
from spread_layers import HIDDEN, NODES, WIDTH


def plain_data():
    """Without loops, which PyTorch Geometric's GCNConv treats differently in a matrix, and without duplicates."""
    data = spread_layers.make_data()
    edges = torch.unique(data.edge_index[:, data.edge_index[0] != data.edge_index[1]], dim=1)
    weight = torch.rand(edges.size(1), generator=torch.Generator().manual_seed(2)) + 0.5
    return Data(x=data.x, y=data.y, edge_index=edges, edge_weight=weight, train_mask=data.train_mask)


class SparseTensor:
    """A stand-in for torch_sparse's, which need not be there."""

    def __init__(self, index, value, nodes):
        self.entries, self.nodes = (index[1], index[0], value), nodes

    def coo(self):
        return self.entries

    def sparse_sizes(self):
        return self.nodes, self.nodes


def matrices_as_edges():
    """adj_t in each layout, with weights and without: as the same edges on one process."""
    for layout in (torch.sparse_csr, torch.sparse_coo):
        for weighted in (False, True):
            data = plain_data()
            if not weighted:
                del data.edge_weight
            of_matrix = T.ToSparseTensor(layout=layout)(copy.copy(data))
            torch.manual_seed(1)
            model = pyg.GCN(WIDTH, HIDDEN, 2, 3)
            wanted = model(data.x, data.edge_index, data.get("edge_weight"))
            spread, own = plait.parallelize(model, of_matrix, partition="hash")
            assert own.adj_t is own.edge_index and own.adj_t.is_weighted == weighted
            out = own.adj_t.gather(spread(own.x, own.adj_t))
            torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)
            assert own.num_nodes == own.adj_t.num_own and of_matrix.adj_t.layout == layout
    index = data.edge_index
    for value in (None, data.edge_weight):
        graph = plait.Graph(SparseTensor(index, value, NODES))
        assert torch.equal(graph.edge_index, index) and graph.is_weighted == (value is not None)
    with pytest.warns(UserWarning, match="adj_t has loops"):
        looped = Data(x=data.x, edge_index=torch.tensor([[0, 1], [1, 1]]))
        plait.spread(T.ToSparseTensor(layout=torch.sparse_csr)(looped))
    for wrong, words in ((Data(x=data.x), "data has no edge_index"),
                         (Data(x=data.x, adj_t=torch.ones(NODES, NODES)), "adj_t is a dense tensor")):
        with pytest.raises(ValueError, match=words):
            plait.spread(wrong)
    both = T.ToSparseTensor(layout=torch.sparse_csr, remove_edge_index=False)(plain_data())
    with pytest.raises(NotImplementedError, match="adj_t"):
        plait.spread(both)


def links_of_a_split_are_kept():
    """What RandomLinkSplit gives, and a decoder, as on one process."""
    data = plain_data()
    del data.edge_weight
    if plait.world_size() > 1:
        random.seed(plait.rank())  # which draws the negative links
        torch.manual_seed(4)
        with pytest.raises(ValueError, match="different links.*seed_everything"):
            plait.spread(T.RandomLinkSplit()(data)[0])
    seed_everything(4)
    train, _, test = T.RandomLinkSplit(num_val=0.1, num_test=0.2)(data)

    def losses(model, data, mean, rows):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            z = model(data.x, data.edge_index)
            source, target = rows(z, data.edge_label_index)
            loss = mean(F.binary_cross_entropy_with_logits((source * target).sum(-1), data.edge_label,
                                                           reduction="none"))
            loss.backward()
            optimizer.step()
            yield loss.item()

    torch.manual_seed(1)
    wanted = list(losses(pyg.GCN(WIDTH, HIDDEN, 2, 7), train, torch.mean, lambda z, ids: z[ids]))
    torch.manual_seed(1)
    model, own = plait.parallelize(pyg.GCN(WIDTH, HIDDEN, 2, 7), train)
    graph = own.edge_index
    found = list(losses(model, own, plait.mean, lambda z, ids: plait.gather(z, ids, graph)))
    assert found == pytest.approx(wanted, rel=1e-4)
    own_test = plait.spread(test)
    assert torch.equal(own_test.edge_label_index, test.edge_label_index)
    assert torch.equal(own_test.edge_label, test.edge_label)
    split = T.RandomLinkSplit(split_labels=True)(data)[0]
    assert plait.spread(split).neg_edge_label_index.shape == split.neg_edge_label_index.shape
    train.edge_label_index = train.edge_label_index + NODES
    with pytest.raises(ValueError, match="edge_label_index has the id"):
        plait.spread(train)
    with pytest.raises(NotImplementedError, match="train_pos_index.*plait.gather"):
        plait.spread(Data(x=data.x, edge_index=data.edge_index, train_pos_index=data.edge_index[:, :3]))


def extremes_are_of_all_ranks():
    """Of rows with many ties, against PyTorch's scatter_reduce on one process; nodes without edges have 0."""
    data = spread_layers.make_data()
    for strategy in ("auto", "replicate"):
        graph = plait.Graph(data.edge_index, NODES, partition="hash", strategy=strategy)
        for op in ("max", "min"):
            whole = (data.x * 2).round().requires_grad_()
            wanted = extreme_by_scatter(data, whole, op)
            own = graph.own(whole.detach()).requires_grad_()
            found = plait.aggregate(graph, own, op)
            assert torch.equal(graph.gather(found), wanted)
            # Values other than 0: there scatter_reduce withholds a share of the gradient.
            (wanted * wanted).sum().backward()
            (found * found).sum().backward()
            torch.testing.assert_close(graph.gather(own.grad), whole.grad, rtol=1e-5, atol=1e-5)


def pickles_are_of_one_process():
    """torch.save of a spread model has the model as it was; copies are spread."""
    data = plain_data()

    def models():
        yield pyg.GCN(WIDTH, HIDDEN, 2, 3, norm="batch")
        yield pyg.GCNConv(WIDTH, 3)
        yield pyg.SAGEConv(WIDTH, 3, aggr="median")
        yield torch.nn.Sequential(torch.nn.BatchNorm1d(WIDTH), torch.nn.Linear(WIDTH, 3))
        yield pyg.Sequential("x, e", [(pyg.ResGatedGraphConv(WIDTH, 3), "x, e -> x"), torch.nn.ReLU()])

    for model in models():
        kind, names = type(model), list(model.state_dict())
        spread, own = plait.parallelize(model.eval(), data)
        takes_edges = kind is not torch.nn.Sequential
        out = own.edge_index.gather(spread(own.x, own.edge_index) if takes_edges else spread(own.x))
        file = io.BytesIO()
        torch.save(spread, file)
        file.seek(0)
        plain = torch.load(file, weights_only=False)
        assert type(plain).__name__ == kind.__name__ and list(plain.state_dict()) == names
        assert not hasattr(plain, "_ranks") and all(type(p) is not type(q) or "plait" in type(p).__module__ or
                                                     type(p).__module__.startswith(("torch.", "torch_geometric."))
                                                     for p, q in zip(plain.modules(), spread.modules()))
        for part in plain.modules():  # another process finds every class by its name
            assert pickle.loads(pickle.dumps(type(part))) is type(part)
        if plait.world_size() == 1:
            there = plain(data.x, data.edge_index) if takes_edges else plain(data.x)
            torch.testing.assert_close(there, out, rtol=1e-5, atol=1e-5)
        copied = copy.deepcopy(spread)
        assert type(copied) is type(spread)
        again = copied(own.x, own.edge_index) if takes_edges else copied(own.x)
        assert torch.equal(own.edge_index.gather(again), out)
        assert list(torch.load(_saved(spread.state_dict()))) == names
        plait.parallelize(plain, data)


def _saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def names_that_a_script_has_changed():
    """A script that puts Plait's classes into PyTorch Geometric's namespace."""
    data, before = plain_data(), pyg.GCNConv
    model = pyg.Sequential("x, e", [(pyg.GCNConv(WIDTH, 3), "x, e -> x"), (pyg.PairNorm(), "x -> x")])
    pyg.GCNConv, pyg.MessagePassing, norm, pyg.PairNorm = plait.nn.GCNConv, None, pyg.PairNorm, None
    try:
        with pytest.raises(NotImplementedError, match="PairNorm normalises over nodes"):
            plait.parallelize(model, data)
        model, _ = plait.parallelize(torch.nn.Sequential(before(WIDTH, 3), pyg.GCNConv(3, 3)), data)
        assert all(type(part) is plait.nn.GCNConv for part in model)
    finally:
        pyg.GCNConv, pyg.MessagePassing, pyg.PairNorm = before, before.__mro__[1], norm


CHECKS = (matrices_as_edges, links_of_a_split_are_kept, extremes_are_of_all_ranks, pickles_are_of_one_process,
          names_that_a_script_has_changed)
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for check in CHECKS:
        check()
        print(check.__name__)

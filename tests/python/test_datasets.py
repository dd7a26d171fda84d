"""python -m plait.datasets, with PyG's own classes where only the download is a stand-in, and with
stand-ins for OGB, which is not installed here."""

import os
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
import torch_geometric.data
import torch_geometric.datasets

import plait
from plait import datasets

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("PLAIT_PROGRAM",
                       os.environ.get("PLAIT_PROGRAM", str(CHECKOUT / "build/bin/plait")))


def run(capfd, *arguments):
    code = datasets.main([str(a) for a in arguments])
    return code, capfd.readouterr()


def fails(capfd, *arguments, names):
    code, output = run(capfd, *arguments)
    assert code == 1 and output.out == "" and output.err.count("\n") == 1
    for name in ("plait: ", *names):
        assert name in output.err
    return output.err


@pytest.fixture
def photo(monkeypatch):
    """Files of Amazon-Photo's kind, put where PyG's class would download them to."""
    random = np.random.default_rng(1)
    dense = (random.random((30, 12)) < 0.1).astype(np.float32)
    edges = random.integers(0, 30, (2, 80))
    edges = edges[:, edges[0] != edges[1]]
    y = random.integers(0, 4, 30)

    def csr(matrix, name):
        rows, columns = np.nonzero(matrix)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=30))])
        return {f"{name}_data": matrix[rows, columns], f"{name}_indices": columns,
                f"{name}_indptr": offsets, f"{name}_shape": np.array(matrix.shape)}

    adjacency = np.zeros((30, 30), np.float32)
    adjacency[edges[0], edges[1]] = 1

    def download(self):
        np.savez(self.raw_paths[0], **csr(adjacency, "adj"), **csr(dense, "attr"), labels=y)

    monkeypatch.setattr(torch_geometric.datasets.Amazon, "download", download)
    return np.maximum(adjacency, adjacency.T), dense, y


@pytest.mark.parametrize("name", ["Amazon-Photo", "amazon-photo"])
def test_a_class_of_pyg(tmp_path, capfd, photo, name):
    adjacency, x, y = photo
    code, output = run(capfd, name, "-o", tmp_path / "g.plait", "--root", tmp_path / "root")
    assert code == 0 and "30 vertices" in output.out
    graph = plait.Graph.load(tmp_path / "g.plait")
    found = np.zeros((30, 30))
    np.add.at(found, tuple(graph.edge_index.numpy()), 1)
    np.testing.assert_array_equal(found, adjacency)
    np.testing.assert_array_equal(graph.x, x)
    np.testing.assert_array_equal(graph.y, y)
    assert graph.train_mask is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.plait", "root"]


class StandIn:
    """A dataset of one graph, as PyG's are."""

    def __init__(self, root, name=None):
        self.root = root

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(3)
        masks = torch.randint(0, 4, (20, 3), generator=generator)
        return torch_geometric.data.Data(
            num_nodes=20, edge_index=torch.tensor([[0, 1, 1], [1, 2, 2]]),
            edge_weight=torch.tensor([0.5, 2.0, 3.0]), x=torch.arange(40.0).view(20, 2),
            train_mask=masks == 1, val_mask=masks == 2, test_mask=(masks == 3).all(1))


def test_weights_and_several_splits(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(torch_geometric.datasets, "WikiCS", StandIn)
    assert run(capfd, "WikiCS", "-o", tmp_path / "g.npz")[0] == 0
    data = StandIn(None)[0]
    with np.load(tmp_path / "g.npz") as file:
        assert file["edge_index"].T.tolist() == [[0, 1], [1, 2], [1, 2]]
        assert file["edge_weight"].tolist() == [0.5, 2, 3]
        np.testing.assert_array_equal(file["x"], data.x)
        np.testing.assert_array_equal(file["train_masks"], data.train_mask.T)
        np.testing.assert_array_equal(file["val_masks"], data.val_mask.T)
        np.testing.assert_array_equal(file["test_masks"], [data.test_mask] * 3)


class Papers(StandIn):
    """A dataset as OGB gives it: labels in a column, nan where there is none, and lists of nodes."""

    def __getitem__(self, i):
        y = torch.tensor([[0.0], [float("nan")], [2.0], [1.0]])
        return torch_geometric.data.Data(num_nodes=4, edge_index=torch.tensor([[0, 3], [3, 1]]), y=y)

    def get_idx_split(self):
        return {"train": torch.tensor([0]), "valid": torch.tensor([2]), "test": torch.tensor([3])}


def test_a_class_of_ogb(tmp_path, capfd, monkeypatch):
    module = types.ModuleType("ogb.nodeproppred")
    module.PygNodePropPredDataset = Papers
    monkeypatch.setitem(sys.modules, "ogb", types.ModuleType("ogb"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", module)
    assert run(capfd, "ogbn-papers100m", "-o", tmp_path / "g.plait")[0] == 0
    graph = plait.Graph.load(tmp_path / "g.plait")
    assert graph.y.tolist() == [0, -1, 2, 1]
    assert graph.edge_index.T.tolist() == [[3, 1], [0, 3]]  # by targets
    assert graph.test_mask.tolist() == [False, False, False, True]


class Proteins(Papers):
    """Several labels per node, and features of edges alone, as ogbn-proteins has them."""

    labels = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])

    def __getitem__(self, i):
        data = super().__getitem__(i)
        data.edge_index = torch.tensor([[0, 3, 2], [3, 1, 1]])
        data.edge_attr = torch.tensor([[1.0, 2.0], [3.0, 4.0], [4.0, 8.0]])
        data.y = self.labels
        return data


def test_several_labels_and_features_of_edges(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(torch_geometric.datasets, "Yelp", Proteins)
    code, output = run(capfd, "Yelp", "-o", tmp_path / "g.npz")
    assert code == 0 and "means of the features of their edges" in output.err
    with np.load(tmp_path / "g.npz") as file:
        np.testing.assert_array_equal(file["y"], Proteins.labels)
        assert file["x"].tolist() == [[0, 0], [3.5, 6], [0, 0], [1, 2]]


def test_labels_that_are_no_sets_are_left_out(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(Proteins, "labels", torch.full((4, 7), 0.5))
    monkeypatch.setattr(torch_geometric.datasets, "Yelp", Proteins)
    code, output = run(capfd, "Yelp", "-o", tmp_path / "g.plait")
    assert code == 0 and "labels of shape (4, 7) are left out" in output.err
    graph = plait.Graph.load(tmp_path / "g.plait")
    assert graph.num_nodes == 4 and graph.y is None


def test_a_set_of_graphs_trains(tmp_path, capfd, monkeypatch):
    """TU's own class reads files in the form in which TU Dortmund publishes them."""
    def download(self):
        folder = pathlib.Path(self.raw_dir)
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n4, 5\n5, 4\n6, 7\n7, 6\n", "graph_indicator": "1\n1\n2\n2\n2\n3\n3\n",
                 "graph_labels": "1\n-1\n1\n", "node_labels": "0\n2\n1\n1\n0\n2\n2\n"}
        for name, text in texts.items():
            (folder / f"MUTAG_{name}.txt").write_text(text)

    monkeypatch.setattr(torch_geometric.datasets.TUDataset, "download", download)
    code, output = run(capfd, "mutag", "-o", tmp_path / "g.npz", "--root", tmp_path / "root")
    assert code == 0, output.err
    with np.load(tmp_path / "g.npz") as file:
        assert file["graph_id"].tolist() == [0, 0, 1, 1, 1, 2, 2]
        assert file["y"].tolist() == [1, 0, 1]  # as PyTorch Geometric numbers them
        assert file["x"].argmax(1).tolist() == [0, 2, 1, 1, 0, 2, 2]
        assert file["edge_index"].shape == (2, 8)
    command = [os.environ["PLAIT_PROGRAM"], "train", str(tmp_path / "g.npz"), "--folds", "3", "--epochs", "2"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_errors_are_one_line(tmp_path, capfd, monkeypatch):
    out = tmp_path / "g.plait"
    fails(capfd, "Coara", "-o", out, names=["Coara", "unknown", "Cora"])
    fails(capfd, "ogbn-arxive", "-o", out, names=["ogbn-arxiv"])
    fails(capfd, "#", "-o", out, names=["--list"])
    for module in ("ogb", "ogb.nodeproppred"):
        monkeypatch.setitem(sys.modules, module, None)
    fails(capfd, "ogbn-arxiv", "-o", out, names=["package ogb", "pip install ogb"])

    def broken(self):
        raise OSError("the network\nis away")

    monkeypatch.setattr(torch_geometric.datasets.Amazon, "download", broken)
    fails(capfd, "Amazon-Photo", "-o", out, "--root", tmp_path / "root",
          names=["Amazon could not load it", "the network is away"])
    monkeypatch.setattr(torch_geometric.datasets, "Yelp", StandIn)
    fails(capfd, "Yelp", "-o", tmp_path / "none/g.plait", names=["there is no folder"])
    monkeypatch.setenv("PLAIT_PROGRAM", str(tmp_path / "away"))
    fails(capfd, "Yelp", "-o", out, names=["not found", "PLAIT_PROGRAM"])
    assert not out.exists()


def test_every_class_exists(capfd):
    """OGB's are left out, which are not installed."""
    for name, source in datasets.DATASETS.items():
        if source.module == "torch_geometric.datasets":
            assert hasattr(torch_geometric.datasets, source.type), name
    code, output = run(capfd, "--list")
    assert code == 0 and output.out.split() == list(datasets.DATASETS)
    assert {"Cora", "Reddit", "Coauthor-CS", "ogbn-products"} <= set(output.out.split())


def test_as_a_module():
    """The packages are not imported before a dataset asks for them; the end of the process tells it. runpy starts the
    module as `python -m` does."""
    code = ("import atexit, runpy, sys; atexit.register(lambda: print('torch_geometric' in sys.modules)); "
            "runpy.run_module('plait.datasets', run_name='__main__', alter_sys=True)")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, "--list"], env=environment,
                          capture_output=True, text=True, check=True)
    assert "Cora" in done.stdout.split() and done.stdout.split()[-1] == "False"

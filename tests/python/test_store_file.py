"""plait.store.load: a graph file as stores, against plait.Graph.load."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch

import plait
from plait.store import load
from ranks import environment
from test_checkpoint import run

NODES = 300


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Graph files by kind: with dense features, renumbered, with weights, with several splits and sets of labels,
    and with sparse features, also renumbered."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(1)
    index = random.integers(0, NODES - 9, (2, 2000))
    x = random.random((NODES, 33), np.float32)
    masks = {f"{part}_masks": random.random((3, NODES)) < 0.1 for part in ("train", "val", "test")}
    masks["val_masks"] &= ~masks["train_masks"]
    masks["test_masks"] &= ~masks["train_masks"] & ~masks["val_masks"]
    sparse = scipy.sparse.random(NODES, 50, 0.05, "csr", np.float32, random_state=1)
    kinds = {
        "dense": {"x": x, "y": random.integers(-1, 4, NODES)},
        "weighted": {"edge_weight": random.random(2000, np.float32), "y": random.integers(0, 2, (NODES, 5))},
        "splits": {"x": x[:, :1], "y": random.integers(0, 4, NODES), **masks},
        "sparse": {"x_data": sparse.data, "x_indices": sparse.indices, "x_indptr": sparse.indptr,
                   "x_shape": np.array(sparse.shape)},
    }
    for kind, arrays in kinds.items():
        np.savez(folder / f"{kind}.npz", edge_index=index, **arrays)
        run("convert", folder / f"{kind}.npz", folder / f"{kind}.plait")
    for kind in ("dense", "splits", "sparse", "weighted"):
        run("reorder", folder / f"{kind}.plait", folder / f"{kind}-renumbered.plait", "--method", "degree")
    return folder


@pytest.mark.parametrize("name", [f"{kind}{ending}" for kind in ("dense", "weighted", "splits", "sparse")
                                  for ending in (".plait", "-renumbered.plait", ".npz")])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_file_as_plait_graph_loads_it(files, name, device):
    graph = plait.Graph.load(files / name)
    features, edges = load(files / name, device)
    for field in plait.Graph._FIELDS:
        wanted, found = getattr(graph, field), features.get_tensor_size(None, field)
        assert (wanted is None) == (found is None), field
        if wanted is not None:
            by_node = wanted.t() if wanted.dim() == 2 and field.endswith("mask") else wanted
            assert torch.equal(features[None, field, None], by_node) and found == tuple(by_node.shape)
            ids = torch.tensor([NODES - 1, 0, 7, 7, 130])
            assert torch.equal(features[None, field, ids], by_node[ids])
            assert torch.equal(features[None, field, 100], by_node[100])
    assert features.get_tensor_size((None, None), "edge_weight") == (
        None if graph.edge_weight is None else (graph.num_edges,))
    if graph.edge_weight is not None:
        assert torch.equal(features[(None, None), "edge_weight", None], graph.edge_weight)
    assert torch.equal(torch.stack(edges.get_edge_index(None, "coo")), graph.edge_index)
    row, colptr = edges.get_edge_index(None, "csc")
    assert torch.equal(row, graph.edge_index[0]) and torch.equal(colptr.diff(), graph.edge_index[1].bincount(
        minlength=NODES))
    assert edges.num_nodes() == NODES and features.num_rows(None) in (None, NODES)


def test_features_on_a_device_are_copied_some_at_a_time(files, monkeypatch):
    monkeypatch.setattr(plait.store.features, "_ROWS_AT_ONCE", 7)
    features, _ = load(files / "dense-renumbered.plait", "cpu")
    assert torch.equal(features[None, "x", None], plait.Graph.load(files / "dense.plait").x)
    features[None, "x", torch.tensor([1])] = torch.ones(1, 33)  # memory, which can be written
    assert features[None, "x", 1].eq(1).all()


@pytest.mark.parametrize("device", ["meta", "cuda:99", 3.5])
def test_devices_that_cannot_hold_features(files, device):
    with pytest.raises(ValueError, match="device is"):
        load(files / "dense.plait", device)


def test_many_rows_of_all_threads(files):
    x = plait.Graph.load(files / "dense.plait").x
    features, _ = load(files / "dense-renumbered.plait")
    ids = torch.randint(NODES, (20000,), generator=torch.Generator().manual_seed(1))
    assert torch.equal(features[None, "x", ids], x[ids])
    assert features[None, "x", ids[:0]].shape == features[None, "x", []].shape == (0, 33)
    assert torch.equal(features[None, "x", torch.tensor(3)], x[3])
    for write in (features.put_tensor, features.update_tensor):
        with pytest.raises(ValueError, match="is in a file"):
            write(x, None, "x", None)


def test_loaders_share_the_copy_of_edges(files):
    _, edges = load(files / "dense.plait")
    first, second = (edges.get_edge_index(None, "csc") for _ in range(2))
    assert first[0] is second[0] and copy.deepcopy(edges).get_edge_index(None, "csc")[0] is first[0]


# Prints the MiB of this process's memory that no file backs and that opening and a batch have taken.
MEASURE = """
import sys, torch, plait.store

def private():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024

before = private()
features, _ = plait.store.load(sys.argv[1])
batch = features.get_tensor(None, "x", torch.arange(64))
print(private() - before)
"""


def test_features_are_not_copied(tmp_path):
    """A process that opens a file with 128 MB of features and reads a batch takes little memory for itself."""
    np.savez(tmp_path / "g.npz", edge_index=np.zeros((2, 1), np.int64), x=np.ones((1 << 18, 128), np.float32))
    run("convert", tmp_path / "g.npz", tmp_path / "g.plait")
    done = subprocess.run([sys.executable, "-c", MEASURE, tmp_path / "g.plait"], env=environment(), text=True,
                          capture_output=True, timeout=120, check=True)
    assert float(done.stdout) < 40


@pytest.mark.parametrize("which", [0, 1])
def test_copies_open_the_same_file(files, which, monkeypatch):
    monkeypatch.chdir(files)
    store = load("dense.plait")[which]
    monkeypatch.chdir("/")
    pickled = pickle.dumps(store)
    assert len(pickled) < 20000  # features and edges are not in it
    for twin in (pickle.loads(pickled), copy.deepcopy(store)):
        if which == 0:
            assert torch.equal(twin[None, "x", 5], store[None, "x", 5])
        else:
            assert torch.equal(twin.get_edge_index(None, "csc")[0], store.get_edge_index(None, "csc")[0])


def test_copies_refuse_another_file(files, tmp_path):
    """Ids that were checked against one file are not looked up in another."""
    path = tmp_path / "g.plait"
    path.write_bytes((files / "dense.plait").read_bytes())
    features, _ = load(path)
    pickled, row = pickle.dumps(features), features[None, "x", 5]
    assert torch.equal(pickle.loads(pickled)[None, "x", 5], row)
    np.savez(tmp_path / "small.npz", edge_index=np.zeros((2, 1), np.int64), x=np.ones((3, 33), np.float32))
    run("convert", tmp_path / "small.npz", path)
    assert torch.equal(features[None, "x", 5], row)  # the file that was opened is still there
    with pytest.raises(ValueError, match=r"g\.plait was replaced or changed since it was opened first; load the store"):
        pickle.loads(pickled)


def test_a_file_that_is_written_to(files, tmp_path):
    path = tmp_path / "g.plait"
    path.write_bytes((files / "dense.plait").read_bytes())
    features, edges = load(path)
    path.rename(tmp_path / "h.plait")
    with (tmp_path / "h.plait").open("r+b") as file:
        file.truncate(100)
    for read in (lambda: features[None, "x", 5], lambda: edges.get_edge_index(None, "csc")):
        with pytest.raises(ValueError, match=r"g\.plait was changed while it is open; write another file and rename it"):
            read()


def test_a_file_that_was_read_may_change(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.zeros((2, 1), np.int64), x=np.ones((3, 2), np.float32))
    features, _ = load(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", edge_index=np.zeros((2, 1), np.int64))
    assert features[None, "x", 2].tolist() == [1, 1]


def test_tensors_beside_those_of_the_file(files):
    before = (files / "dense.plait").read_bytes()
    features, _ = load(files / "dense.plait")
    features.put_tensor(torch.arange(NODES), None, "number", None)
    assert features[None, "number", slice(3, 5)].tolist() == [3, 4]
    for write in (lambda: features.put_tensor(torch.ones(NODES, 33), None, "x", None),
                  lambda: features.put_tensor(torch.ones(33), None, "x", 3),
                  lambda: features.update_tensor(torch.ones(33), None, "x", 3)):
        with pytest.raises(ValueError, match="^'x' is in a file, which is not written; remove it from the store first"):
            write()
    with pytest.raises(ValueError, match=r"^'x': index\[1\] is 300, outside 0\.\.299; correct it$"):
        features.get_tensor(None, "x", torch.tensor([0, 300]))
    assert features.remove_tensor(None, "x", None)
    assert "x" not in [attr.attr_name for attr in features.get_all_tensor_attrs()]
    features.put_tensor(torch.ones(NODES, 2), None, "x", None)
    assert features[None, "x", 3].tolist() == [1, 1] and (files / "dense.plait").read_bytes() == before


def test_wrong_files(tmp_path, files):
    with pytest.raises(FileNotFoundError, match="cannot be opened.*none.plait"):
        load(tmp_path / "none.plait")
    broken = bytearray((files / "dense.plait").read_bytes())
    broken[-40] ^= 1
    (tmp_path / "broken.plait").write_bytes(broken)
    with pytest.raises(ValueError, match="broken.plait: .*checksum") as error:
        load(tmp_path / "broken.plait")
    assert "\n" not in str(error.value)
    np.savez(tmp_path / "set.npz", edge_index=np.array([[0, 2], [1, 3]]), graph_id=np.array([0, 0, 1, 1]),
             y=np.array([0, 1]))
    with pytest.raises(ValueError, match="set.npz is a set of graphs, but a store holds one; use plait.Graph.load"):
        load(os.fspath(tmp_path / "set.npz"))


def test_no_edges(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.empty((2, 0), np.int64), y=np.zeros(3, np.int64))
    _, edges = load(tmp_path / "g.npz")
    row, colptr = edges.get_edge_index(None, "csc")
    assert edges.num_nodes() == 3 and row.numel() == 0 and colptr.tolist() == [0] * 4


def test_an_edge_list_is_read_by_the_options_of_graphs(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("# Undirected graph\n3 3\n1 2\n")
    def edges_of(**options):
        _, edges = load(path, first_line="edge", **options)
        row, colptr = pickle.loads(pickle.dumps(edges)).get_edge_index(None, "csc")
        return edges.num_nodes(), row.numel(), colptr.numel() - 1
    assert edges_of(vertices=6, directed=True) == (6, 2, 6)
    assert edges_of(vertices=6) == (6, 3, 6)  # of a loop one, of the other edge both directions
    with pytest.raises(TypeError, match="directed is 1; use True or False"):
        load(path, directed=1)


SHORTENED = """
import faulthandler, os, signal, sys, torch, plait
faulthandler.enable()
file = torch.classes.plait.GraphFile(sys.argv[1], 0, False, "auto")
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGBUS)
print(os.WTERMSIG(os.wait()[1]) == signal.SIGBUS)
os.truncate(sys.argv[1], 4096)
file.gather(torch.arange(300))
"""


def test_a_file_that_becomes_shorter_is_named(files, tmp_path):
    """Every other SIGBUS is left to the handler that was there before, which is Python's here."""
    path = tmp_path / "g.plait"
    path.write_bytes((files / "dense.plait").read_bytes())
    ended = subprocess.run([sys.executable, "-c", SHORTENED, path], env=environment(), capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "True\n"), ended
    of_python, _, line = ended.stderr.rpartition("\nplait: ")
    assert of_python.startswith("Fatal Python error: Bus error") and of_python.count("Fatal") == 1, ended
    assert line.startswith(f"{path}: ") and line.endswith("its disk has failed\n"), ended

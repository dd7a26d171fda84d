"""plait.parquet: tables written by pyarrow, and the graphs that the program makes of them."""

import os
import pathlib

import numpy as np
import pytest
import torch

import plait
from plait import parquet

pyarrow = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402, F811

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
NODES, EDGES = 40, 200


def save(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=17)
    return path


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.fixture
def edges(tmp_path, random):
    return save(tmp_path / "edges.parquet", source=random.integers(0, NODES, EDGES),
                target=random.integers(0, NODES, EDGES).astype(np.uint16),
                weight=random.random(EDGES))


def columns_of(path):
    return {name: np.asarray(column) for name, column in
            pyarrow.parquet.read_table(path).to_pydict().items()}


def test_edges_with_the_columns_that_are_named(edges):
    table = columns_of(edges)
    graph = parquet.read(edges)
    assert graph.edge_weight is None and graph.num_nodes == max(table["source"].max(),
                                                                table["target"].max()) + 1
    np.testing.assert_array_equal(graph.edge_index, [table["source"], table["target"]])
    turned = parquet.read(edges, columns=parquet.EdgeColumns("target", "source", "weight"))
    np.testing.assert_array_equal(turned.edge_index, [table["target"], table["source"]])
    np.testing.assert_array_equal(turned.edge_weight, table["weight"].astype(np.float32))


@pytest.mark.parametrize("form", ["list", "fixed", "columns"])
def test_nodes_in_any_order(tmp_path, edges, random, form):
    ids = random.permutation(NODES)
    x = random.random((NODES, 3)).astype(np.float32)
    label = random.integers(-1, 4, NODES)
    words = np.array(["train", "val", "test", None], dtype=object)[random.integers(0, 4, NODES)]
    features = {"list": {"x": pyarrow.array(list(x[ids]))},
                "fixed": {"x": pyarrow.FixedSizeListArray.from_arrays(x[ids].reshape(-1), 3)},
                "columns": {f"f{k}": x[ids, k] for k in range(3)} | {"name": ["node"] * NODES}}
    nodes = save(tmp_path / "nodes.parquet", id=ids, split=pyarrow.array(words[ids]),
                 label=pyarrow.array(label[ids], mask=label[ids] < 0), **features[form])
    graph = parquet.read(edges, nodes)
    assert graph.num_nodes == NODES
    np.testing.assert_array_equal(graph.x, x)
    np.testing.assert_array_equal(graph.y, label)
    for split in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(graph, f"{split}_mask"), words == split)


def test_what_is_written_is_read_again(tmp_path, random):
    graph = plait.Graph(torch.from_numpy(random.integers(0, NODES, (2, EDGES))), NODES,
                        torch.rand(EDGES))
    graph.x, graph.y = torch.rand(NODES, 5), torch.randint(-1, 3, (NODES,))
    graph.train_mask = torch.rand(NODES) < 0.3
    parquet.write(graph, tmp_path / "e.parquet", tmp_path / "n.parquet")
    again = parquet.read(tmp_path / "e.parquet", tmp_path / "n.parquet",
                         parquet.EdgeColumns(weight="weight"))
    for name in ("edge_index", "edge_weight", "x", "y", "train_mask"):
        torch.testing.assert_close(getattr(again, name), getattr(graph, name), rtol=0, atol=0)
    assert not again.val_mask.any() and again.num_nodes == NODES


def test_the_command_writes_a_graph_of_plait(tmp_path, edges, random, monkeypatch):
    monkeypatch.setenv("PLAIT_PROGRAM",
                       os.environ.get("PLAIT_PROGRAM", str(CHECKOUT / "build/bin/plait")))
    nodes = save(tmp_path / "nodes.parquet", a=random.random(NODES),
                 label=random.integers(0, 3, NODES))
    out = tmp_path / "g.plait"
    assert parquet.main([str(edges), "--nodes", str(nodes), "--weight", "weight",
                         "-o", str(out)]) == 0
    direct = parquet.read(edges, nodes, parquet.EdgeColumns(weight="weight"))
    graph = plait.Graph.load(out)
    assert graph.num_nodes == NODES
    torch.testing.assert_close(graph.x, direct.x)
    torch.testing.assert_close(graph.y, direct.y)
    x = torch.rand(NODES, 4)
    torch.testing.assert_close(plait.aggregate(graph, x, op="weighted"),
                               plait.aggregate(direct, x, op="weighted"))


@pytest.mark.parametrize("columns, names", [
    ({"from": [0], "target": [0]}, ["no column source", "from, target"]),
    ({"source": [0.5], "target": [0]}, ["column source", "double"]),
    ({"source": [0, None, 1], "target": [0, 0, 0]}, ["column source is empty in row 1"]),
    ({"source": [0], "target": [-1]}, ["-1"]),
])
def test_wrong_tables_of_edges(tmp_path, columns, names):
    path = save(tmp_path / "wrong.parquet", **columns)
    with pytest.raises(ValueError) as raised:
        parquet.read(path)
    for name in names:
        assert name in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("columns, names", [
    ({"id": [0, 0], "label": [1, 1]}, ["column id", "0 .. 1"]),
    ({"label": ["a", "b"]}, ["column label", "not integers"]),
    ({"split": ["train", "dev"]}, ["'dev' in row 1"]),
    ({"x": [[1.0, 2.0], [3.0]]}, ["column x"]),
])
def test_wrong_tables_of_nodes(tmp_path, columns, names):
    edges = save(tmp_path / "edges.parquet", source=[0], target=[1])
    with pytest.raises(ValueError) as raised:
        parquet.read(edges, save(tmp_path / "wrong.parquet", **columns))
    for name in ("wrong.parquet", *names):
        assert name in str(raised.value)


def test_columns_that_do_not_fit(tmp_path, edges, capfd, monkeypatch):
    """Equal values take next to no room in a file."""
    monkeypatch.setattr(parquet, "_free_memory", lambda: 2**30)
    nodes = save(tmp_path / "n.parquet", label=np.zeros(1000, int))
    assert parquet.read(edges, nodes).num_nodes == 1000
    monkeypatch.setattr(parquet, "_free_memory", lambda: 16 * 1000 - 1)
    assert parquet.main([str(edges), "--nodes", str(nodes), "-o", str(tmp_path / "g.plait")]) == 4
    error = capfd.readouterr().err
    assert error.count("\n") == 1 and "n.parquet: column label has 1000 values" in error


def test_files_appear_whole(tmp_path, monkeypatch):
    graph = plait.Graph(torch.tensor([[0, 1], [1, 0]]), 2)
    path, link = tmp_path / "e.parquet", tmp_path / "link.parquet"
    path.write_text("old")
    link.symlink_to(path)

    def breaks_off(table, where):
        pathlib.Path(where).write_text("half")
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(pyarrow.parquet, "write_table", breaks_off)
        with pytest.raises(OSError, match="no space"):
            parquet.write(graph, link)
    assert path.read_text() == "old" and sorted(tmp_path.iterdir()) == [path, link]
    parquet.write(graph, link)
    assert link.is_symlink() and parquet.read(path).num_nodes == 2
    with pytest.raises(FileNotFoundError, match="no folder"):
        parquet.write(graph, tmp_path / "no" / "e.parquet")
    if os.geteuid() == 0:
        os.chown(link, 12345, 12345, follow_symlinks=False)
        with pytest.raises(PermissionError, match="a link of another user"):
            parquet.write(graph, link)


def test_errors_of_the_command_are_one_line(tmp_path, capfd):
    text = tmp_path / "text.parquet"
    text.write_text("no table")
    for path in (text, tmp_path / "missing.parquet"):
        assert parquet.main([str(path), "-o", str(tmp_path / "g.plait")]) == 1
        error = capfd.readouterr().err
        assert error.count("\n") == 1 and path.name in error
    assert not (tmp_path / "g.plait").exists()

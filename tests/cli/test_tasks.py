"""plait train and plait infer beyond one label per vertex: several labels, ROC AUC, and sets of
graphs; against the metrics' definitions and against PyG."""

import numpy as np
import pytest
import safetensors.numpy
import torch

import pyg_reference
from program import FAILED, USAGE
from pyg_reference import Settings
from task_graphs import MAKERS, SLOW
from training import check_same_curve, metadata_of

RANKS = {1: [], 2: ["--ranks", 2], 3: ["--ranks", 3, "--partition", "hash"]}
# The graph to train on, and the options.
TASKS = {"sets": ("sets", ["--model", "sage", "--hidden", 16]),
         "roc-auc": ("two", ["--model", "gcn", "--metric", "roc-auc"]),
         "accuracy of two": ("two", ["--model", "sage", "--norm", "layer"]),
         "graphs": ("graphs", ["--model", "gin", "--layers", 3, "--hidden", 16]),
         "graphs by mean": ("graphs", ["--model", "gat", "--hidden", 16, "--metric", "roc-auc"]),
         "graphs by sum": ("graphs", ["--model", "gcn", "--pool", "sum", "--layers", 1])}
METRICS = ("train_metric", "val_metric", "test_metric")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    for name, make in MAKERS.items():
        make(folder / f"{name}.npz")
    return {name: folder / f"{name}.npz" for name in MAKERS}


def labels_of(archive):
    with np.load(archive) as file:
        arrays = {name: file[name] for name in file.files}
    known = arrays["y"] >= 0 if arrays["y"].ndim == 1 else np.ones(len(arrays["y"]), bool)
    return arrays["y"], {part: arrays[part][known[arrays[part]]] for part in ("train", "val", "test")}


@pytest.mark.parametrize("task", TASKS)
def test_ranks_and_metrics(plait, tmp_path, archives, task):
    """1, 2 and 3 ranks give the same losses, and the metrics that follow from the written scores by
    their definitions."""
    name, options = TASKS[task]
    y, parts = labels_of(archives[name])
    curves, metrics = [], []
    for ranks in RANKS.values():
        checkpoint, out = tmp_path / "c.safetensors", tmp_path / "y.npy"
        result = plait.json("train", archives[name], *options, *ranks, "--epochs", 12,
                            "--checkpoint", checkpoint)
        curves.append(result["loss"])
        metrics.append([result[part] for part in METRICS])
        assert max(result["val_metric_by_epoch"]) == result["val_metric"]
        assert ("test_accuracy" in result) == (result["metric"] == "accuracy")
        plait.ok("infer", archives[name], "--checkpoint", checkpoint, "--out", out)
        scores = np.load(out)
        assert len(scores) == len(y)
        wanted = [SLOW[result["metric"]](scores[part], y[part]) for part in parts.values()]
        # Scores of other numbers of ranks differ in their last bits, and few pairs by them.
        np.testing.assert_allclose(metrics[-1], wanted, atol=2e-3 if ranks else 1e-9, rtol=0)
    for curve, metric in zip(curves[1:], metrics[1:]):
        check_same_curve(curve, curves[0])
        np.testing.assert_allclose(metric, metrics[0], atol=2e-3, rtol=0)


def test_auc_of_exact_scores_does_not_depend_on_ranks(plait, archives):
    """Without layers that sum in another order, scores are the same bits, and so is the area."""
    train = ["train", archives["two"], "--model", "mlp", "--metric", "roc-auc", "--epochs", 1,
             "--layers", 1, "--lr", 0]
    found = [[plait.json(*train, *ranks)[part] for part in METRICS] for ranks in RANKS.values()]
    assert found[0] == found[1] == found[2] and 0.5 < found[0][0] < 1


@pytest.mark.parametrize(("name", "settings"), [
    ("sets", Settings("gcn", 8, layers=2)),
    ("sets", Settings("sage", 10, norm="batch", activation="elu")),
    ("graphs", Settings("gin", 8, norm="batch", pool="sum")),
    ("graphs", Settings("gcn", 12, layers=2, norm="layer", pool="mean", activation="elu")),
])
def test_curve_and_scores_of_pyg(plait, tmp_path, archives, name, settings):
    """The same model of PyG in double precision, from the same weights: losses of six steps, then
    scores."""
    graph = pyg_reference.Graph(archives[name])
    graph.train = torch.tensor(labels_of(archives[name])[1]["train"])
    start, trained = tmp_path / "start.safetensors", tmp_path / "trained.safetensors"
    train = ["train", archives[name], *settings.options(), "--dropout", 0]
    plait.ok(*train, "--epochs", 1, "--lr", 0, "--weight-decay", 0, "--checkpoint", start)
    curve = plait.json(*train, "--epochs", 6, "--lr", 0.05, "--weight-decay", 1e-3, "--checkpoint",
                       trained, *RANKS[3])["loss"]
    model = graph.model(settings, safetensors.numpy.load_file(start))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.reset_running_stats()
    wanted = pyg_reference.train(graph, settings, model, epochs=6, rate=0.05, decay=1e-3)
    assert min(wanted) < 0.97 * wanted[0]
    check_same_curve(curve, wanted)
    model = graph.model(settings, safetensors.numpy.load_file(trained)).eval()
    with torch.no_grad():
        wanted = graph.scores(model).numpy()
    for ranks in RANKS.values():
        plait.ok("infer", archives[name], "--checkpoint", trained, "--out", tmp_path / "y.npy",
                 *ranks)
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4,
                                   atol=1e-5 * np.abs(wanted).max())


def test_label_sets_are_learnt(plait, archives):
    """The graph is needed: a vertex's own features are not enough."""
    found = {model: plait.json("train", archives["sets"], "--model", model, "--hidden", 32,
                               "--epochs", 150, "--dropout", 0)
             for model in ("sage", "mlp")}
    assert found["sage"]["metric"] == "micro-f1"
    assert found["sage"]["test_metric"] > 0.75 > found["mlp"]["test_metric"] + 0.1


def test_graphs_are_learnt(plait, archives):
    """Their structure tells, which a model without edges does not see."""
    found = {model: plait.json("train", archives["graphs"], "--model", model, "--hidden", 16,
                               "--layers", 3, "--epochs", 60)["test_accuracy"]
             for model in ("gin", "mlp")}
    assert found["gin"] > 0.9 > found["mlp"] + 0.1


@pytest.mark.parametrize("task", ["sets", "roc-auc", "graphs"])
def test_resume(plait, tmp_path, archives, task):
    """Training goes on exactly on as many ranks, and to rounding on others."""
    name, options = TASKS[task]
    first, whole, rest = (tmp_path / f"{part}.safetensors" for part in ("first", "whole", "rest"))
    train = ["train", archives[name], *options]
    two = [*train, "--ranks", 2, "--partition", "hash"]
    wanted = plait.json(*two, "--epochs", 8, "--checkpoint", whole)
    plait.ok(*two, "--epochs", 3, "--checkpoint", first)
    found = plait.json(*two, "--epochs", 8, "--resume", first, "--checkpoint", rest)
    for field in ("loss", "val_metric_by_epoch", "best_epoch", *METRICS):
        assert found[field] == wanted[field], field
    one, other = safetensors.numpy.load_file(whole), safetensors.numpy.load_file(rest)
    assert all((value == other[key]).all() for key, value in one.items())
    check_same_curve(plait.json(*train, "--epochs", 8, "--resume", first)["loss"], wanted["loss"])


def test_checkpoints_of_other_tasks(plait, tmp_path, archives):
    checkpoints = {name: tmp_path / f"{name}.safetensors" for name in archives}
    pool = {name: ["--pool", "sum"] * (name == "graphs") for name in archives}
    for name, checkpoint in checkpoints.items():
        plait.ok("train", archives[name], "--epochs", 1, "--checkpoint", checkpoint, *pool[name])
    assert {name: metadata_of(path)["task"] for name, path in checkpoints.items()} == {
        "sets": "multi-label", "two": "single-label", "graphs": "graph-label"}
    for name, checkpoint in checkpoints.items():
        for other, archive in archives.items():
            if other == name:
                continue
            plait.fails(FAILED, "train", archive, "--resume", checkpoint, *pool[other],
                        names=[checkpoint, "'task'", metadata_of(checkpoint)["task"]])
            plait.fails(FAILED, "infer", archive, "--checkpoint", checkpoint, "--out",
                        tmp_path / "y.npy", names=[checkpoint])
    plait.fails(FAILED, "train", archives["two"], "--resume", checkpoints["two"], "--metric",
                "roc-auc", names=["'metric'", "accuracy", "roc-auc"])
    plait.fails(FAILED, "train", archives["graphs"], "--resume", checkpoints["graphs"], "--pool",
                "mean", names=["'pool'", "sum", "mean"])


def test_infer_refuses_the_same_width_of_another_task(plait, tmp_path, archives):
    """This is a model of vertices on a set of graphs, or the other way round, of the same width."""
    with np.load(archives["graphs"]) as file:
        arrays = {name: file[name] for name in file.files}
    vertices = len(arrays.pop("graph_id"))
    np.savez(tmp_path / "v.npz", **arrays | {"y": np.arange(vertices) % 2})
    for trained, other in [("v", archives["graphs"]), ("g", tmp_path / "v.npz")]:
        graph = tmp_path / "v.npz" if trained == "v" else archives["graphs"]
        checkpoint = tmp_path / f"{trained}.safetensors"
        plait.ok("train", graph, "--epochs", 1, "--checkpoint", checkpoint)
        plait.fails(FAILED, "infer", other, "--checkpoint", checkpoint, "--out",
                    tmp_path / "y.npy", names=[checkpoint, "'task'", "single-label", "graph-label"])


def test_predicted_classes(plait, tmp_path, archives):
    for name in ("sets", "graphs"):
        checkpoint, out = tmp_path / "c.safetensors", tmp_path / "y.npy"
        plait.ok("train", archives[name], "--epochs", 5, "--checkpoint", checkpoint)
        found = plait.json("infer", archives[name], "--checkpoint", checkpoint, "--out", out)
        scores, (y, _) = np.load(out), labels_of(archives[name])
        metric = "micro-f1" if name == "sets" else "accuracy"
        assert found["metric"] == metric
        known = y >= 0 if y.ndim == 1 else slice(None)
        assert found[metric.replace("-", "_")] == pytest.approx(SLOW[metric](scores[known], y[known]))
        plait.ok("infer", archives[name], "--checkpoint", checkpoint, "--out", out, "--classes",
                 "--ranks", 3)
        wanted = scores > 0 if name == "sets" else scores.argmax(axis=1)
        np.testing.assert_array_equal(np.load(out), wanted)


@pytest.mark.parametrize("name", ["sets", "graphs"])
def test_convert_keeps_the_task(plait, tmp_path, archives, name):
    plait.ok("convert", archives[name], tmp_path / "g.plait")
    plait.ok("convert", tmp_path / "g.plait", tmp_path / "g.npz")
    described = plait.json("info", tmp_path / "g.plait")
    assert described["task"] == {"sets": "multi-label", "graphs": "graph-label"}[name]
    with np.load(archives[name]) as before, np.load(tmp_path / "g.npz") as after:
        for array in {"y", "graph_id", "train", "val", "test", "x"} & set(before.files):
            np.testing.assert_array_equal(before[array], after[array])
        if name == "graphs":
            assert described["graphs"] == len(before["y"])
            assert described["splits"] == [{"train": 45, "validation": 22, "test": 23}]
    train = ["--epochs", 3, "--seed", 1]
    assert (plait.json("train", tmp_path / "g.plait", *train)["loss"]
            == plait.json("train", archives[name], *train)["loss"])


def without_split(archive, path, **more):
    with np.load(archive) as file:
        arrays = {name: file[name] for name in file.files if name not in ("train", "val", "test")}
    np.savez(path, **arrays | more)


def test_folds(plait, tmp_path, archives):
    """A set of graphs without a split gets ten folds; other graphs must ask."""
    for name in archives:
        without_split(archives[name], tmp_path / f"{name}.npz")
    graphs = ["train", tmp_path / "graphs.npz", "--epochs", 2]
    curves = [plait.json(*graphs, *options)["loss"] for options in (
        [], ["--folds", 10], ["--folds", 10, "--ranks", 3], ["--fold", 1], ["--folds", 5])]
    assert curves[0] == curves[1]
    check_same_curve(curves[2], curves[0])
    assert curves[0] != curves[3] and curves[0] != curves[4]
    plait.fails(USAGE, "train", tmp_path / "two.npz", names=["split", "--folds"])
    plait.ok("train", tmp_path / "two.npz", "--folds", 4, "--fold", 3, "--epochs", 1)
    plait.ok("train", tmp_path / "sets.npz", "--folds", 4, "--epochs", 1)
    plait.fails(USAGE, *graphs, "--fold", 10, names=["fold 10", "0..9"])
    plait.fails(USAGE, *graphs, "--folds", 91, names=["91 folds", "90"])
    plait.fails(USAGE, "train", archives["graphs"], "--fold", 1, names=["split of its own"])


@pytest.mark.parametrize(("name", "options", "names"), [
    ("sets", ["--metric", "accuracy"], ["accuracy", "multi-label", "micro-f1"]),
    ("two", ["--metric", "micro-f1"], ["micro-f1", "single-label", "roc-auc"]),
    ("graphs", ["--metric", "f2"], ["f2", "roc-auc"]),
    ("graphs", ["--pool", "max"], ["max", "mean"]),
    ("graphs", ["--pool", "none"], ["none", "graph-label"]),
    ("two", ["--pool", "mean"], ["--pool", "a set of graphs"]),
    ("sets", ["--pool", "sum", "--ranks", 2], ["--pool", "a set of graphs"]),
    ("two", ["--folds", 5, "--split", 0], ["--folds", "--split"]),
])
def test_wrong_options(plait, archives, name, options, names):
    plait.fails(USAGE, "train", archives[name], *options, names=names)


def test_roc_auc_is_of_two_classes(plait, communities):
    plait.fails(USAGE, "train", communities, "--metric", "roc-auc", "--ranks", 2,
                names=["two classes", "7"])


def test_text(plait, archives):
    assert "roc-auc at epoch" in plait.ok("train", archives["two"], "--epochs", 2, "--metric",
                                          "roc-auc").out
    assert "micro-f1 at epoch" in plait.ok("train", archives["sets"], "--epochs", 2).out


def test_features_made_of_the_graph(plait, tmp_path, archives):
    """degree is enough to tell rings from trees; so is constant, by a model that counts."""
    with np.load(archives["graphs"]) as file:
        arrays = {name: file[name] for name in file.files if name != "x"}
    np.savez(tmp_path / "bare.npz", **arrays)
    degree = np.bincount(arrays["edge_index"][1], minlength=len(arrays["graph_id"]))
    widths = {"constant": 1, "degree": degree.max() + 1, "identity": len(degree)}
    for kind, width in widths.items():
        out = tmp_path / f"{kind}.plait"
        plait.ok("convert", tmp_path / "bare.npz", out, "--features", kind)
        assert plait.json("info", out)["feature_width"] == width
    found = plait.json("train", tmp_path / "degree.plait", "--model", "gin", "--layers", 2,
                       "--epochs", 40)
    assert found["test_accuracy"] > 0.9
    plait.fails(USAGE, "train", tmp_path / "bare.npz", names=["no features"])


def test_sizes_at_the_edge(plait, tmp_path):
    """There is one graph, or there are more ranks than graphs or vertices. Batch norm of three
    vertices would enlarge rounding."""
    np.savez(tmp_path / "one.npz", edge_index=np.array([[0, 1], [1, 0]]), y=np.array([1]),
             graph_id=np.zeros(3, np.int64), x=np.eye(3, dtype=np.float32), train=np.array([0]))
    train = ["train", tmp_path / "one.npz", "--model", "gin", "--norm", "none", "--epochs", 4]
    check_same_curve(plait.json(*train, "--ranks", 4)["loss"], plait.json(*train)["loss"])

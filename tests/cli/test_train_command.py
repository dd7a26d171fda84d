"""plait train: the loss curve is the same on any number of ranks, any partition and any strategy; its
output; its end."""

import numpy as np
import pytest

import gcn_reference
from program import FAILED, USAGE, Plait
from training import SCHEMES, STRATEGIES, check_same_curve, directed_archive, history_of

EPOCHS = 100


@pytest.fixture(scope="module")
def curve_alone(communities, tmp_path_factory):
    """Returns the curve of one rank, with dropout 0.5."""
    plait = Plait(tmp_path_factory.mktemp("alone"))
    return plait.json("train", communities, "--epochs", EPOCHS)["loss"]


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_curve_of_ranks_and_partitions(plait, communities, curve_alone, ranks, scheme):
    """The strategies take turns, so that each meets every partition and every number of ranks."""
    strategy = STRATEGIES[(ranks + SCHEMES.index(scheme)) % 3]
    result = plait.json("train", communities, "--epochs", EPOCHS, "--ranks", ranks, "--partition",
                        scheme, "--strategy", strategy)
    assert len(result["loss"]) == EPOCHS
    check_same_curve(result["loss"], curve_alone)


def test_strategies_train_alike_to_the_bit(plait, communities):
    curves = [plait.json("train", communities, "--epochs", 20, "--ranks", 2, "--partition", "hash",
                         "--strategy", strategy)["loss"] for strategy in STRATEGIES]
    assert curves[0] == curves[1] == curves[2]


@pytest.mark.parametrize("ranks,scheme,strategy", [(2, "metis", "replicate"), (4, "hash", "bulk"),
                                                   (3, "vertices", "get")])
def test_curve_of_a_directed_graph(plait, tmp_path, ranks, scheme, strategy):
    """It has loops, duplicates, weights and sparse features: the gradient needs the transposed graph."""
    directed_archive(tmp_path / "g.npz", vertices=150)
    options = ["--epochs", EPOCHS, "--layers", 3, "--hidden", 9, "--seed", 5]
    alone = plait.json("train", tmp_path / "g.npz", *options)["loss"]
    result = plait.json("train", tmp_path / "g.npz", *options, "--ranks", ranks, "--partition",
                        scheme, "--strategy", strategy)
    check_same_curve(result["loss"], alone)


@pytest.mark.parametrize("vertices", [1, 2])
def test_fewer_vertices_than_ranks(plait, tmp_path, vertices):
    ids = np.arange(vertices)
    np.savez(tmp_path / "g.npz", edge_index=np.stack([ids, (ids + 1) % vertices]), y=ids % 2,
             x=np.eye(vertices, 3, dtype=np.float32), train=ids[:1], val=ids[1:], test=ids[:0])
    alone = plait.json("train", tmp_path / "g.npz", "--epochs", 10)
    spread = plait.json("train", tmp_path / "g.npz", "--epochs", 10, "--ranks", 4)
    check_same_curve(spread["loss"], alone["loss"])
    assert alone["test_accuracy"] == 0


def test_json(plait, communities):
    result = plait.json("train", communities, "--epochs", 7, "--seed", 3, "--ranks", 2,
                        "--strategy", "get", "--partition", "hash")
    wanted = {"schema": 1, "model": "gcn", "ranks": 2, "seed": 3, "epochs": 7, "device": "cpu",
              "strategy": "get", "partition": "hash"}
    assert {key: result[key] for key in wanted} == wanted
    assert len(result["loss"]) == 7 and all(isinstance(loss, float) for loss in result["loss"])
    for name in ("train_accuracy", "val_accuracy", "test_accuracy"):
        assert 0 <= result[name] <= 1
    assert result["val_accuracy"] == max(result["val_accuracy_by_epoch"])
    assert result["epoch_ms"] > 0 and 0 < result["comm_share"] <= 1
    assert isinstance(result["bytes_per_rank"], int) and result["bytes_per_rank"] > 0


def test_text(plait, communities):
    out = plait.ok("train", communities, "--epochs", 3, "--ranks", 2).out
    assert "gcn on 2 ranks: 3 epochs" in out and "test " in out and "bytes per rank" in out


def test_bytes_of_an_epoch(plait, communities):
    """Strategy bulk promises that each halo row crosses once in each aggregation of a step. Two layers,
    forward and backward, make four; the gradients' sum comes on top."""
    options = ["--ranks", 2, "--partition", "vertices", "--hidden", 16]
    result = plait.json("train", communities, "--epochs", 5, *options)
    parts = plait.json("partition", communities, "--ranks", 2, "--partition",
                       "vertices")["schemes"][0]["ranks"]
    halo = max(part["halo_rows"] for part in parts)
    classes, hidden, features = 7, 16, 32
    rows = halo * 2 * (hidden + 8) * 4  # rows of 7 floats are padded to 32 bytes
    weights = (features * hidden + hidden + hidden * classes + classes) * 4
    assert rows < result["bytes_per_rank"] <= rows + 2 * weights


def test_seed_decides(plait, communities):
    curves = [plait.json("train", communities, "--epochs", 5, "--seed", seed)["loss"]
              for seed in (1, 1, 2)]
    assert curves[0] == curves[1] != curves[2]


def test_early_stopping(plait, tmp_path, communities):
    """Training ends when the validation loss has not fallen for so many epochs."""
    patience = 4
    out = tmp_path / "c.safetensors"
    result = plait.json("train", communities, "--epochs", 2000, "--lr", 0.1, "--patience", patience,
                        "--checkpoint", out)
    losses = [epoch["validation_loss"] for epoch in history_of(out)]
    assert result["epochs"] == len(losses) < 2000
    assert len(losses) == np.argmin(losses) + patience + 1
    assert not result["interrupted"]


def test_patience_needs_validation_examples(plait, tmp_path):
    random = np.random.default_rng(0)
    trains = np.arange(60) < 30
    np.savez(tmp_path / "g.npz", edge_index=random.integers(0, 60, (2, 300)), x=random.random((60, 4), np.float32),
             y=random.integers(0, 3, 60), train_mask=trains, val_mask=np.zeros(60, bool), test_mask=~trains)
    for options in ([], ["--sampled", "--batch", 8], ["--ranks", 2]):
        refused = plait("train", tmp_path / "g.npz", "--epochs", 50, "--patience", 3, *options)
        assert refused.code == USAGE and len(refused.lines) == 1, refused
        assert "no labelled validation examples in split 0, by which --patience stops" in refused.err
    assert plait.json("train", tmp_path / "g.npz", "--epochs", 6)["epochs"] == 6


def test_best_epoch_is_kept(plait, tmp_path, communities, communities_npz):
    """It has the highest validation accuracy and, among equals, the lowest validation loss; its
    weights give its accuracies."""
    out = tmp_path / "c.safetensors"
    result = plait.json("train", communities, "--epochs", 40, "--checkpoint", out, "--lr", 0.05)
    history = history_of(out)
    best = max(range(40), key=lambda e: (history[e]["validation_accuracy"],
                                         -history[e]["validation_loss"]))
    assert result["best_epoch"] == best
    plait.ok("infer", communities, "--checkpoint", out, "--out", tmp_path / "c.npy", "--classes")
    arrays = gcn_reference.load_archive(communities_npz)
    right = np.load(tmp_path / "c.npy") == arrays["y"]
    for part, name in [("train", "train"), ("val", "val"), ("test", "test")]:
        assert result[f"{name}_accuracy"] == pytest.approx(right[arrays[part]].mean(), abs=1e-9)


def test_a_graph_is_worth_15_points(plait, tmp_path):
    """On the graph of the demo, a model that ignores the edges is at least 15 points lower."""
    plait.ok("generate", "dcsbm", "-o", tmp_path / "g.plait")
    accuracy = {model: plait.json("train", tmp_path / "g.plait", "--model", model, "--ranks",
                                  2)["test_accuracy"] for model in ("gcn", "mlp")}
    assert accuracy["gcn"] > 0.85
    assert accuracy["mlp"] < accuracy["gcn"] - 0.15


@pytest.mark.parametrize("ranks", [1, 2])
def test_diverging_training_is_an_error(plait, communities, ranks):
    plait.fails(FAILED, "train", communities, "--lr", 1e30, "--epochs", 50, "--ranks", ranks,
                names=["loss is", "learning rate"])


@pytest.mark.parametrize("more", [[], ["--ranks", 2]])
def test_divergence_in_the_last_epoch(plait, tmp_path, communities, more):
    """The validation loss shows it, or without validation examples the weights, which decay
    by more than a float32 holds; no checkpoint is written."""
    keep = ["--checkpoint", tmp_path / "c.safetensors", *more]
    plait.fails(FAILED, "train", communities, "--epochs", 1, "--lr", 1e30, *keep,
                names=["validation loss is", "epoch 0", "learning rate"])
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 0]]), y=np.array([1, 0]),
             x=np.full((2, 65000), 1e-4, np.float32), train=np.array([0]))
    plait.fails(FAILED, "train", tmp_path / "g.npz", "--epochs", 2, "--lr", 1e18,
                "--weight-decay", 1e21, "--hidden", 1, "--dropout", 0, *keep,
                names=["weights are not finite", "epoch 1", "learning rate"])


def test_features_that_are_too_large(plait, tmp_path):
    """The learning rate has not acted yet and is not blamed."""
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 0]]), y=np.array([1, 0]),
             x=np.full((2, 8), 3e38, np.float32), train=np.array([0]), val=np.array([1]))
    result = plait.fails(FAILED, "train", tmp_path / "g.npz", "--normalize", "none",
                         names=["epoch 0", "features", "too large"])
    assert "learning rate" not in result.err


@pytest.mark.parametrize("more", [[], ["--ranks", 2], ["--ranks", 2, "--partition", "hash"]])
def test_gcn_needs_degrees_of_0_or_more(plait, tmp_path, communities, more):
    """This is as in Python; the other models do not use weights. A loop of weight 1 is counted, and
    two vertices are wrong, which may be on different ranks."""
    weights = np.array([-1, -1, -3, -2, 1], np.float32)
    np.savez(tmp_path / "g.npz", x=np.eye(4, dtype=np.float32), y=np.array([1, 0, 1, 0]),
             edge_index=np.array([[1, 2, 0, 0, 3], [0, 1, 2, 3, 2]]), edge_weight=weights,
             train=np.array([0, 1]), val=np.array([2, 3]))
    train = ["train", tmp_path / "g.npz", "--epochs", 1, *more]
    plait.fails(FAILED, *train, names=["vertex 2 has degree -1,", "0 or more", "--no-weights"])
    checkpoint = tmp_path / "c.safetensors"
    plait.ok(*train, "--model", "sage", "--checkpoint", checkpoint)
    np.savez(tmp_path / "h.npz", **dict(np.load(tmp_path / "g.npz")) | {"edge_weight": weights + 2})
    plait.ok("train", tmp_path / "h.npz", "--epochs", 1, "--checkpoint", checkpoint)
    plait.fails(FAILED, "infer", tmp_path / "g.npz", "--checkpoint", checkpoint, "--out",
                tmp_path / "y.npy", *more, names=["vertex 2 has degree -1,", "0 or more"])


def test_no_labelled_training_vertex(plait, tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 0]]), y=np.array([-1, 0]),
             x=np.ones((2, 2), np.float32), train=np.array([0]))
    for ranks in (1, 2):
        plait.fails(USAGE, "train", tmp_path / "g.npz", "--ranks", ranks, names=["g", "training"])

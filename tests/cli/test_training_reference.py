"""plait train and plait infer against an independent GCN in double precision, from the same initial
weights."""

import numpy as np
import pytest
import safetensors.numpy

import gcn_reference
from program import FAILED
from training import check_same_curve, directed_archive

EPOCHS = 30
RATES = {"symmetric": 0.01, "directed": 0.03}  # of learning


@pytest.fixture(scope="module")
def graphs(communities, communities_npz, tmp_path_factory):
    """Returns name -> graph to train on and archive for NumPy: symmetric with dense features; directed
    and weighted with sparse ones."""
    directed = tmp_path_factory.mktemp("directed") / "directed.npz"
    directed_archive(directed, vertices=300)
    return {"symmetric": (communities, communities_npz), "directed": (directed, directed)}


def initial_weights(plait, graph, options):
    """Returns weights as they were drawn: a learning rate of 0 leaves them."""
    path = plait.folder / "initial.safetensors"
    plait.ok("train", graph, *options, "--epochs", 1, "--lr", 0, "--checkpoint", path)
    return safetensors.numpy.load_file(path)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("name,options,ranks", [
    ("symmetric", ["--hidden", 16], []),
    ("symmetric", ["--hidden", 48, "--layers", 3], ["--ranks", 2]),
    ("directed", ["--hidden", 16], []),
    ("directed", ["--hidden", 5, "--layers", 3],
     ["--ranks", 3, "--partition", "hash", "--strategy", "get"]),
])
def test_loss_curve(plait, graphs, name, options, ranks, dropout):
    graph, archive = graphs[name]
    options = [*options, "--seed", 2, "--dropout", dropout]
    tensors = initial_weights(plait, graph, options)
    model = gcn_reference.Gcn(tensors, gcn_reference.load_archive(archive))
    rate = RATES[name]
    wanted = gcn_reference.train(model, EPOCHS, rate=rate, decay=1e-3, dropout=dropout, seed=2)
    # It learns, but not until single precision has nothing left to tell.
    assert 1e-3 < wanted[-1] < 0.97 * wanted[0]
    found = plait.json("train", graph, *options, *ranks, "--epochs", EPOCHS, "--lr", rate,
                       "--weight-decay", 1e-3)
    check_same_curve(found["loss"], wanted)


def test_mlp(plait, graphs):
    graph, archive = graphs["symmetric"]
    options = ["--model", "mlp", "--dropout", 0]
    tensors = initial_weights(plait, graph, options)
    model = gcn_reference.Gcn(tensors, gcn_reference.load_archive(archive), kind="mlp")
    found = plait.json("train", graph, *options, "--epochs", EPOCHS, "--ranks", 2)
    check_same_curve(found["loss"], gcn_reference.train(model, EPOCHS))


def test_initial_weights_are_glorot(plait, graphs):
    tensors = initial_weights(plait, graphs["symmetric"][0], ["--hidden", 64])
    for name, value in tensors.items():
        if not name.startswith("convs."):
            continue  # kept for resuming
        if name.endswith("bias"):
            assert not value.any()
        else:
            bound = np.sqrt(6 / sum(value.shape))
            assert 0.98 * bound < np.abs(value).max() <= bound
            assert abs(value.mean()) < 0.1 * bound


@pytest.mark.parametrize("name", ["symmetric", "directed"])
@pytest.mark.parametrize("ranks", [[], ["--ranks", 3, "--partition", "metis", "--strategy", "get"]])
def test_infer(plait, tmp_path, graphs, name, ranks):
    graph, archive = graphs[name]
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", graph, "--epochs", 20, "--checkpoint", checkpoint)
    result = plait.json("infer", graph, "--checkpoint", checkpoint, "--out", tmp_path / "y.npy",
                        *ranks)
    arrays = gcn_reference.load_archive(archive)
    wanted = gcn_reference.Gcn(safetensors.numpy.load_file(checkpoint), arrays).forward()
    scores = np.load(tmp_path / "y.npy")
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, wanted, atol=1e-5 * np.abs(wanted).max())
    plait.ok("infer", graph, "--checkpoint", checkpoint, "--out", tmp_path / "c.npy", "--classes",
             *ranks)
    classes = np.load(tmp_path / "c.npy")
    assert classes.shape == (len(wanted),) and (classes == scores.argmax(axis=1)).all()
    assert result["accuracy"] == pytest.approx((classes == arrays["y"]).mean())
    assert (result["vertices"], result["classes"]) == wanted.shape


def test_infer_on_another_graph(plait, tmp_path, graphs):
    """A graph of another width is refused with both widths."""
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", graphs["symmetric"][0], "--epochs", 2, "--checkpoint", checkpoint)
    for ranks in (1, 2):
        plait.fails(FAILED, "infer", graphs["directed"][0], "--checkpoint", checkpoint, "--out",
                    tmp_path / "y.npy", "--ranks", ranks,
                    names=[checkpoint, "32 features", "has 40"])

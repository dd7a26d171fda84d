"""The models of plait train and plait infer against those of PyG, by the names of a checkpoint, on
graphs with hubs, loops, parallel edges and vertices without edges."""

import numpy as np
import pytest
import safetensors.numpy
import torch

import pyg_reference
from program import Plait
from pyg_reference import Settings
from training import check_same_curve, history_of

COURSE = {"epochs": 6, "rate": 0.05, "decay": 1e-3}
RANKS = {1: [], 2: ["--ranks", 2], 3: ["--ranks", 3, "--partition", "hash"]}

# Layers that widen and that narrow rows, on dense and on sparse features.
CASES = {
    "gcn with layer norm": ("dense", Settings("gcn", 12, norm="layer")),
    "sage": ("sparse", Settings("sage", 8)),
    "sage as wide as its input, residual": ("sparse", Settings("sage", 40, residual=True)),
    "sage with layer norm": ("dense", Settings("sage", 48, norm="layer", activation="elu")),
    "sage by maximum": ("sparse", Settings("sage", 8, aggregation="max")),
    "sage by maximum, residual": ("dense", Settings("sage", 20, aggregation="max", residual=True)),
    "gin": ("dense", Settings("gin", 32, activation="elu")),
    "gin with batch norm": ("sparse", Settings("gin", 10, norm="batch")),
    "gat": ("sparse", Settings("gat", 24, heads=4, output_heads=3, activation="elu")),
    "gat with batch norm": ("dense", Settings("gat", 12, heads=6, norm="batch", residual=True)),
    "gatv2": ("dense", Settings("gatv2", 24, heads=4, output_heads=3, activation="elu")),
    "gatv2 with layer norm": ("sparse", Settings("gatv2", 10, heads=2, norm="layer", residual=True)),
    "transformer": ("sparse", Settings("transformer", 24, heads=4, output_heads=3)),
    "transformer of one layer": ("dense", Settings("transformer", 7, layers=1, heads=2, output_heads=2)),
    "gat of one layer": ("dense", Settings("gat", 7, layers=1, heads=2, output_heads=2)),
}


class Run:
    """Training of one case: a step that moves no weight, so that its gradients and the initial
    weights are known; and some steps that move them."""

    def __init__(self, folder, archive, settings):
        self.plait, self.archive, self.settings = Plait(folder), archive, settings
        self.graph = pyg_reference.Graph(archive)
        self.trained = folder / "trained.safetensors"
        start = folder / "start.safetensors"
        self.train(2, start, epochs=1, rate=0, decay=0)
        self.start = safetensors.numpy.load_file(start)
        self.curve = self.train(3, self.trained, **COURSE)

    def train(self, ranks, checkpoint, *, epochs, rate, decay):
        return self.plait.json("train", self.archive, *self.settings.options(), "--dropout", 0,
                               "--epochs", epochs, "--lr", rate, "--weight-decay", decay,
                               "--checkpoint", checkpoint, *RANKS[ranks])["loss"]

    def initial_model(self):
        """Returns a model whose norms have seen nothing yet."""
        model = self.graph.model(self.settings, self.start)
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.reset_running_stats()
        return model


@pytest.fixture(scope="module", params=CASES)
def run(request, archives, tmp_path_factory):
    name, settings = CASES[request.param]
    return Run(tmp_path_factory.mktemp("run"), archives[name], settings)


def test_gradients(run):
    """The first moment of Adam is a tenth of the first gradient. Buffers of batch norms
    come from the same step."""
    model = run.initial_model().train()
    run.graph.loss(model).backward()
    pairs = [(name, 10 * run.start[f"resume.adam.exp_avg.{name}"], parameter.grad.numpy())
             for name, parameter in model.named_parameters()]
    pairs += [(name, run.start[name], kept.numpy()) for name, kept in model.named_buffers()
              if not name.endswith("num_batches_tracked")]
    for name, found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=0, err_msg=name,
                                   atol=2e-5 * np.abs(wanted).max() + 1e-6)


def test_loss_curve(run):
    wanted = pyg_reference.train(run.graph, run.settings, run.initial_model(), **COURSE)
    assert min(wanted) < 0.97 * wanted[0]
    check_same_curve(run.curve, wanted)


def test_infer(run, tmp_path):
    model = run.graph.model(run.settings, safetensors.numpy.load_file(run.trained)).eval()
    with torch.no_grad():
        wanted = model(run.graph.x, run.graph.edge_index)
    for ranks in RANKS.values():
        run.plait.ok("infer", run.archive, "--checkpoint", run.trained, "--out",
                     tmp_path / "y.npy", *ranks)
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4,
                                   atol=1e-5 * wanted.abs().max().item())


@pytest.mark.parametrize("model", ["sage", "gin", "gat", "gatv2", "transformer"])
def test_ranks_train_alike(plait, archives, model):
    """The settings are those of the paper, so with dropout, also of attention."""
    train = ["train", archives["sparse"], "--model", model, "--epochs", 8]
    curves = [plait.json(*train, *ranks)["loss"] for ranks in RANKS.values()]
    for curve in curves[1:]:
        check_same_curve(curve, curves[0])


@pytest.mark.parametrize("model", ["gin", "gat"])
def test_resume(plait, tmp_path, archives, model):
    """Batch norms go on from their buffers, and dropout from its epoch."""
    train = ["train", archives["sparse"], "--model", model, "--ranks", 2]
    whole, first, second = (tmp_path / f"{name}.safetensors" for name in ("whole", "first", "rest"))
    wanted = plait.json(*train, "--epochs", 7, "--checkpoint", whole)
    plait.ok(*train, "--epochs", 3, "--checkpoint", first)
    found = plait.json(*train, "--epochs", 7, "--resume", first, "--checkpoint", second)
    assert found["loss"] == wanted["loss"]
    # It comes from scores by the buffers of norms; the loss does not.
    assert ([epoch["validation_loss"] for epoch in history_of(second)]
            == [epoch["validation_loss"] for epoch in history_of(whole)])
    one, other = safetensors.numpy.load_file(whole), safetensors.numpy.load_file(second)
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)

"""Weights go both ways: from `plait train` to models of this package and of PyTorch Geometric, and from
either to `plait infer`."""

import dataclasses

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from torch_geometric.nn import GATv2Conv, TransformerConv, models

import plait
from edges import assert_close
from plait.nn import Model, ModelConfig
from test_checkpoint import run

# Name -> options of plait train; and PyTorch Geometric's model, of (inputs, outputs).
NORM = {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
CASES = {
    "gcn": ("--model gcn --hidden 12 --norm layer",
            lambda i, o: models.GCN(i, 12, 2, o, dropout=0.5, **NORM)),
    "sage": ("--model sage --hidden 10 --activation elu",
             lambda i, o: models.GraphSAGE(i, 10, 2, o, act="elu")),
    "sage by max": ("--model sage --aggregation max --hidden 8 --layers 3",
                    lambda i, o: models.GraphSAGE(i, 8, 3, o, aggr="max")),
    "gin": ("--model gin --hidden 8 --layers 3",
            lambda i, o: models.GIN(i, 8, 3, o, norm="batch_norm")),
    "gat": ("--model gat --hidden 12 --heads 3 --output-heads 3",
            lambda i, o: models.GAT(i, 12, 2, o, heads=3, act="elu", dropout=0.6)),
    "gatv2": ("--model gatv2 --hidden 12 --heads 3 --output-heads 2",
              lambda i, o: attention(GATv2Conv, i, o, 12, 3, 2, dropout=0.6, act="elu")),
    "transformer": ("--model transformer --hidden 8 --heads 4 --layers 2",
                    lambda i, o: attention(TransformerConv, i, o, 8, 4, 1, dropout=0.5)),
    "mlp": ("--model mlp --hidden 9", None),
    "residual": ("--model gcn --hidden 12 --layers 3 --residual", None),
}


def attention(conv, inputs, outputs, hidden, heads, output_heads, dropout, **options):
    """A model of two layers of this kind."""
    model = models.GAT(inputs, hidden, 2, outputs, heads=heads, dropout=dropout, **options)
    model.convs[0] = conv(inputs, hidden // heads, heads, dropout=dropout)
    model.convs[1] = conv(hidden, outputs, output_heads, concat=False, dropout=dropout)
    return model


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "g.plait"
    run("generate", "dcsbm", "--vertices", 200, "--edges", 1500, "-o", path)
    return path


def infer(graph_file, weights, folder):
    run("infer", graph_file, "--checkpoint", weights, "--out", folder / "scores.npy")
    return torch.from_numpy(np.load(folder / "scores.npy"))


@pytest.fixture(scope="module", params=CASES)
def trained(request, graph_file, tmp_path_factory):
    """Returns its name, the graph, the checkpoint's path and the program's scores."""
    folder = tmp_path_factory.mktemp("trained")
    path = folder / "w.safetensors"
    options = CASES[request.param][0].split()
    run("train", graph_file, *options, "--epochs", 4, "--checkpoint", path)
    return request.param, plait.Graph.load(graph_file), path, infer(graph_file, path, folder)


def theirs(name, graph, scores):
    return CASES[name][1](graph.x.size(1), scores.size(1)).eval()


def test_model_of_a_checkpoint(trained):
    _, graph, path, scores = trained
    checkpoint = plait.load_checkpoint(path)
    assert_close(checkpoint.model()(graph.x, graph), scores)
    other = Model(checkpoint.config)
    plait.load_checkpoint(str(path), other)
    assert_close(other.eval()(graph.x, graph), scores)


in_torch_geometric = pytest.mark.parametrize(
    "trained", [name for name, (_, make) in CASES.items() if make], indirect=True)


@in_torch_geometric
def test_into_torch_geometric(trained):
    name, graph, path, scores = trained
    model = theirs(name, graph, scores)
    plait.load_checkpoint(path, model)
    assert_close(model(graph.x, graph.edge_index), scores)


@in_torch_geometric
def test_of_torch_geometric(trained, graph_file, tmp_path):
    """Weights are as PyTorch Geometric draws them; its norms have buffers."""
    name, graph, path, scores = trained
    model = theirs(name, graph, scores).train()
    for _ in range(3):
        model(graph.x, graph.edge_index)
    wanted = model.eval()(graph.x, graph.edge_index)
    saved = tmp_path / "w.safetensors"
    plait.save_checkpoint(model, saved)
    assert_close(infer(graph_file, saved, tmp_path), wanted)
    found, of_program = (dataclasses.asdict(plait.load_checkpoint(p).config) for p in (saved, path))
    for changes in ("dropout", "seed"):  # which do not change scores
        del found[changes], of_program[changes]
    assert found == of_program


def test_of_a_model_of_this_package(trained, graph_file, tmp_path):
    _, graph, path, scores = trained
    model = Model(plait.load_checkpoint(path).config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model(graph.x, graph)
    wanted = model.eval()(graph.x, graph)
    saved = tmp_path / "w.safetensors"
    plait.save_checkpoint(model, saved)
    assert_close(infer(graph_file, saved, tmp_path), wanted, 2e-5)


@pytest.fixture(scope="module", params=["auto", "unit"])
def of_words(request, tmp_path_factory):
    """A graph of bags of words, a checkpoint whose training normalised them, that normalisation, and the program's
    scores. By default rows are divided by their sum."""
    folder = tmp_path_factory.mktemp("words")
    random = np.random.default_rng(3)
    x = (random.random((90, 40)) < 0.2).astype(np.float32)
    x[4] = 0
    np.savez(folder / "g.npz", x=x, edge_index=random.integers(0, 90, (2, 400)), y=random.integers(0, 3, 90),
             edge_weight=random.uniform(0.5, 2, 400).astype(np.float32),
             train=np.arange(30), val=np.arange(30, 60), test=np.arange(60, 90))
    run("train", folder / "g.npz", "--normalize", request.param, "--epochs", 3, "--checkpoint", folder / "c")
    rule = {"auto": "rows"}.get(request.param, request.param)
    return folder / "g.npz", folder / "c", rule, infer(folder / "g.npz", folder / "c", folder)


def test_features_are_normalised_as_in_training(of_words, tmp_path):
    """The scores are those of `plait infer`; where they could not be, a warning says what to do."""
    path, weights, rule, scores = of_words
    graph, checkpoint = plait.Graph.load(path), plait.load_checkpoint(weights)
    assert checkpoint.config.normalize == rule
    assert_close(checkpoint.model()(graph.x, graph), scores)
    with pytest.raises(AssertionError):
        assert_close(Model(dataclasses.replace(checkpoint.config, normalize="none")).eval()(graph.x, graph), scores)
    other = Model(dataclasses.replace(checkpoint.config, normalize="none"))
    plait.load_checkpoint(weights, other)
    assert_close(other.eval()(graph.x, graph), scores)
    theirs = models.GCN(40, 16, 2, 3).eval()
    with pytest.warns(UserWarning, match=r"divided by their .*checkpoint.normalized\(x\)"):
        plait.load_checkpoint(weights, theirs)
    wanted = theirs(checkpoint.normalized(graph.x), graph.edge_index, graph.edge_weight)
    assert_close(wanted, scores)
    for model, settings, found in ((other, {}, scores), (theirs, {"normalize": rule}, scores),
                                   (theirs, {}, theirs(graph.x, graph.edge_index, graph.edge_weight))):
        plait.save_checkpoint(model, tmp_path / "again", **settings)
        assert_close(infer(path, tmp_path / "again", tmp_path), found, 2e-5)
        assert plait.load_checkpoint(tmp_path / "again").config.normalize == (
            "none" if model is theirs and not settings else rule)


def test_checkpoints_without_a_normalisation(saved):
    """As earlier versions saved models of Python."""
    path, tensors, metadata = saved
    del metadata["normalize"]
    torch.ops.plait.write_tensors(str(path), metadata, tensors)
    assert plait.load_checkpoint(path).config.normalize == "none"


def test_x_that_a_model_cannot_take():
    model, graph = Model(ModelConfig("gcn", 4, 2)), plait.Graph(torch.tensor([[0, 1], [1, 2]]))
    for x, words in ((None, "x is a NoneType"), (torch.ones(3, 5), "of shape (3, 5)"), (torch.ones(4), "of shape (4,)")):
        with pytest.raises(ValueError) as error:
            model(x, graph)
        assert words in one_line(error) and "(nodes, 4) features" in str(error.value)


class Own(torch.nn.Module):
    """Layers of this package in a module of one's own."""

    def __init__(self, *widths, **options):
        super().__init__()
        self.convs = torch.nn.ModuleList(
            plait.nn.SAGEConv(a, b, **options) for a, b in zip(widths, widths[1:]))

    def forward(self, x, graph):
        for conv in self.convs[:-1]:
            x = torch.nn.functional.elu(conv(x, graph))
        return self.convs[-1](x, graph)


def test_of_a_model_of_ones_own(graph_file, tmp_path):
    graph = plait.Graph.load(graph_file)
    model = Own(graph.x.size(1), 8, 8, 5, aggr="max")
    saved = tmp_path / "w.safetensors"
    plait.save_checkpoint(model, saved, activation="elu")
    assert_close(infer(graph_file, saved, tmp_path), model(graph.x, graph))
    again = Own(graph.x.size(1), 8, 8, 5, aggr="max")
    plait.load_checkpoint(saved, again)
    assert torch.equal(again(graph.x, graph), model(graph.x, graph))


def one_line(error):
    assert "\n" not in str(error.value)
    return str(error.value)


def inner(model, **options):
    """Returns the model with other options in the MLP of its first layer."""
    for name, value in options.items():
        setattr(model.convs[0].nn, name, value)
    return model


def broken(model):
    with torch.no_grad():
        model.convs[0].bias[1] = float("nan")
    return model


def changed(model, **options):
    """Returns the model with other options in its second layer."""
    for name, value in options.items():
        setattr(model.convs[1], name, value)
    return model


@pytest.mark.parametrize("model,settings,words", [
    (lambda: Own(4, 4), {}, "say activation='relu' or activation='elu'"),
    (lambda: Own(4, 4, normalize=True), {"activation": "elu"}, "convs.0 has normalize=True"),
    (lambda: Own(4, 4, aggr="sum"), {"activation": "elu"}, "aggregation is 'sum'; use mean, max"),
    (lambda: Own(4, 4, bias=False), {"activation": "elu"},
     "has no 'convs.0.lin_l.bias', which a model of the program (kind sage"),
    (lambda: Own(4, 4, bias=False), {"activation": "elu"}, "has; the program's models have these weights alone"),
    (lambda: models.GCN(4, 4, 2, 3, jk="cat"), {}, "the model has jk='cat', which joins the outputs of all layers"),
    (lambda: models.GraphSAGE(4, 4, 2, 3, jk="last"), {}, "the program's models have jk=None"),
    (lambda: models.GCN(4, 4, 2, 3, norm="layer_norm"), {}, "LayerNorm with mode='node'"),
    (lambda: models.GCN(4, 4, 2, 3, norm="pair_norm"), {}, "norms are PairNorm"),
    (lambda: models.GCN(4, 4, 2, 3, act="tanh"), {}, "the model's act is Tanh"),
    (lambda: models.GCN(4, 4, 2, 3, norm="batch_norm", act_first=True), {}, "act_first=True"),
    (lambda: models.GIN(4, 4, 2, 3, norm="batch_norm", act_first=True), {}, "act_first=True"),
    (lambda: models.GCN(4, 4, 2, 3, act="elu", act_kwargs={"alpha": 0.3}), {}, "ELU has alpha=1"),
    (lambda: models.GIN(4, 4, 2, 3, act="elu", act_kwargs={"alpha": 0.3}), {}, "ELU has alpha=1"),
    (lambda: models.GCN(4, 4, 2, 3, norm="batch_norm", norm_kwargs={"eps": 0.5}), {}, "eps=0.5"),
    (lambda: models.GIN(4, 4, 2, 3, norm="batch_norm", norm_kwargs={"eps": 0.5}), {}, "eps=0.5"),
    (lambda: changed(models.GraphSAGE(4, 4, 2, 3), aggr="max"), {}, "convs.1 has aggr=max"),
    (lambda: changed(models.GAT(4, 4, 2, 3), negative_slope=0.9), {}, "has negative_slope=0.9"),
    (lambda: models.PNA(4, 4, 2, 3, aggregators=["mean"], scalers=["identity"],
                        deg=torch.ones(3)), {}, "layers are PNAConv"),
    (lambda: torch.nn.Linear(2, 2), {}, "not in a ModuleList convs"),
    (lambda: models.GIN(4, 4, 2, 3, train_eps=True, norm="batch_norm"), {"hidden": 5},
     "hidden=5 was given, but the model has 4"),
    (lambda: models.GCN(4, 4, 2, 3), {"activation": "elu"}, "the model has 'relu'"),
    (lambda: models.GraphSAGE(4, 4, 2, 3), {"aggregation": "max"}, "the model has 'mean'"),
    *((lambda kind=kind: kind(4, 4, 2, 3, flow="target_to_source"), {}, "flow=target_to_source")
      for kind in (models.GCN, models.GraphSAGE, models.GAT, models.GIN)),
    *((lambda kind=kind: kind(4, 4, 2, 3, aggr="max"), {}, "has aggr=max")
      for kind in (models.GCN, models.GAT)),
    (lambda: inner(models.GIN(4, 4, 2, 3), act=torch.nn.Tanh()), {}, "convs.0.nn has act=Tanh"),
    (lambda: inner(models.GIN(4, 4, 2, 3), act=torch.nn.ELU()), {}, "convs.0.nn has act=ELU"),
    (lambda: inner(models.GIN(4, 4, 2, 3), plain_last=False), {}, "plain_last=False"),
    (lambda: models.GCN(-1, 4, 2, 3), {}, "call the model once"),
    (lambda: broken(models.GCN(4, 4, 2, 3)), {}, "values that are not finite"),
])
def test_models_that_cannot_be_saved(tmp_path, model, settings, words):
    path = tmp_path / "w.safetensors"
    with pytest.raises(ValueError) as error:
        plait.save_checkpoint(model(), path, **settings)
    assert words in one_line(error) and not path.exists()


def test_settings_that_are_wrong(tmp_path):
    with pytest.raises(TypeError, match="heds is no setting"):
        plait.save_checkpoint(Own(4, 4), tmp_path / "w", heds=2)
    for wrong, words in [({"kind": "gnc"}, "kind is 'gnc'; use gcn"),
                         ({"layers": 0}, "layers is 0"),
                         ({"norm": "bach"}, "none, batch, layer"),
                         ({"normalize": "auto"}, "use rows, unit, none"),
                         ({"pool": "sum"}, "sets of graphs, which only the program has"), ({"dropout": 1.5}, "dropout"),
                         ({"slope": float("nan")}, "slope is nan, not a finite number"),
                         ({"hidden": 2**70}, "beyond 64 bits"), ({"seed": 2**64}, "beyond 64 bits"),
                         ({"seed": -1}, "seed is -1; use 0 or more"), ({"hidden": np.int64(-2)}, "hidden is -2"),
                         ({"kind": "gat", "heads": 3}, "hidden=16 cannot be shared by 3 heads")]:
        with pytest.raises(ValueError) as error:
            ModelConfig(**{"kind": "gcn", "inputs": 4, "outputs": 2, **wrong})
        assert words in one_line(error)
    for wrong, words in [({"layers": 2.5}, "layers is 2.5, not a whole number"),
                         ({"hidden": True}, "hidden is True, not a whole number"),
                         ({"heads": "2"}, "heads is '2', not a whole number"),
                         ({"dropout": "x"}, "dropout is 'x', not a number"), ({"slope": None}, "slope is None"),
                         ({"residual": "no"}, "residual is 'no'; use True or False")]:
        with pytest.raises(TypeError) as error:
            ModelConfig(**{"kind": "gcn", "inputs": 4, "outputs": 2, **wrong})
        assert words in one_line(error)
    whole = ModelConfig("gcn", np.int64(4), 2, seed=2**64 - 1, dropout=np.float32(0.5))
    plait.save_checkpoint(Model(whole), tmp_path / "w")
    assert plait.load_checkpoint(tmp_path / "w").config == whole


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of a small model: its path, its tensors and its metadata."""
    path = tmp_path / "w.safetensors"
    plait.save_checkpoint(Model(ModelConfig("gcn", 4, 3, hidden=5)), path)
    with safetensors.safe_open(path, "pt") as file:
        return path, {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


@pytest.mark.parametrize("change,words", [
    (lambda t, m: t.pop("convs.1.bias"), "has no 'convs.1.bias'"),
    (lambda t, m: t.update({"convs.1.bias": torch.ones(4)}), "of shape (4,), but its own metadata"),
    (lambda t, m: t.update(more=torch.ones(1)), "has 'more'"),
    (lambda t, m: m.pop("layers"), "metadata 'layers' is missing"),
    (lambda t, m: m.update(layers="two"), "metadata 'layers' is 'two', not a number"),
    (lambda t, m: m.update(layers="0"), "metadata: layers is 0"),
    (lambda t, m: m.update(layers="1000000000"), "metadata 'layers' is 1000000000, but the file has 4 arrays"),
    (lambda t, m: m.update(kind="gnc"), "kind is 'gnc'"),
    (lambda t, m: m.update(format="plait-checkpoint-0"), "metadata 'format'"),
    (lambda t, m: m.pop("checksum"), "metadata 'checksum' is missing"),
    (lambda t, m: t.update({"convs.1.bias": torch.ones(3).double()}), "convs.1.bias"),
])
def test_damaged_checkpoints(saved, change, words):
    path, tensors, metadata = saved
    plait.load_checkpoint(path)
    change(tensors, metadata)
    # Missing entries and entries of another type are found before the checksum.
    if "checksum" in metadata and all(t.dtype == torch.float32 for t in tensors.values()):
        torch.ops.plait.write_tensors(str(path), metadata, tensors)
    else:
        safetensors.torch.save_file(tensors, path, metadata)
    with pytest.raises(ValueError) as error:
        plait.load_checkpoint(path)
    assert words in one_line(error) and str(path) in str(error.value)


def test_changed_checkpoints(saved):
    """A bit is flipped, or another program leaves the checksum as it was."""
    path, tensors, metadata = saved
    tensors = {name: t.clone() for name, t in tensors.items()}  # no views of the file
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 16]) + content[-2:])
    with pytest.raises(ValueError, match="metadata 'checksum': does not match") as error:
        plait.load_checkpoint(path)
    one_line(error)
    safetensors.torch.save_file(tensors, path, metadata)
    plait.load_checkpoint(path)  # the same content, laid out by another program
    tensors["convs.1.bias"][0] += 1
    safetensors.torch.save_file(tensors, path, metadata)
    with pytest.raises(ValueError, match="checksum"):
        plait.load_checkpoint(path)


def test_a_model_that_does_not_fit(saved):
    path = saved[0]
    for other, words in [({"hidden": 6}, "'convs.0.bias' of shape (5,)"),
                         ({"layers": 3}, "'convs.1.bias' of shape"),
                         ({"kind": "sage"}, "no 'convs.0.lin_l.weight'"),
                         ({"norm": "layer"}, "no 'norms.0.weight'")]:
        model = Model(ModelConfig(**{"kind": "gcn", "inputs": 4, "outputs": 3, "hidden": 5, **other}))
        before = {name: t.clone() for name, t in model.state_dict().items()}
        with pytest.raises(ValueError) as error:
            plait.load_checkpoint(path, model)
        assert words in one_line(error)
        assert "kind gcn, inputs 4, outputs 3, layers 2, hidden 5" in str(error.value)
        for name, t in model.state_dict().items():
            assert torch.equal(t, before[name])


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="none'$") as error:
        plait.load_checkpoint(tmp_path / "none")
    one_line(error)
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(ValueError, match="text") as error:
        plait.load_checkpoint(tmp_path / "text")
    one_line(error)


@pytest.mark.parametrize("kind", ["gcn", "gat", "transformer"])
def test_a_layer_with_fewer_numbers_than_hidden_features_would_be(tmp_path, kind):
    """With one layer, nothing is as wide as the settings say that rows between layers would be."""
    graph = plait.Graph(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    model = Model(ModelConfig(kind, inputs=1, outputs=2, layers=1, hidden=4096, heads=64))
    plait.save_checkpoint(model, tmp_path / "w.safetensors")
    x = torch.rand(3, 1)
    np.savez(tmp_path / "g.npz", edge_index=graph.edge_index.numpy(), x=x.numpy(), y=np.array([0, 1, 0]))
    wanted = model.eval()(x, graph)
    assert_close(infer(tmp_path / "g.npz", tmp_path / "w.safetensors", tmp_path), wanted)


def test_heads_that_shapes_do_not_tell(tmp_path):
    """The matrices of a TransformerConv are as large with other heads."""
    def model(*heads):
        layers = Model(ModelConfig("transformer", inputs=6, outputs=3, layers=3, hidden=8, heads=2))
        layers.convs = torch.nn.ModuleList([TransformerConv(6, 8 // heads[0], heads[0]),
                                            TransformerConv(8, 8 // heads[1], heads[1]),
                                            TransformerConv(8, 3, heads[2], concat=False)])
        return layers

    class Other(torch.nn.Module):
        def __init__(self, convs):
            super().__init__()
            self.convs, self.act = convs, torch.nn.ReLU()

    with pytest.raises(ValueError, match="convs have 2, 4 heads"):
        plait.save_checkpoint(Other(model(2, 4, 1).convs), tmp_path / "w.safetensors")
    plait.save_checkpoint(Other(model(2, 2, 1).convs), tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match=r"has 2 heads in convs\.1, but the model has 4"):
        plait.load_checkpoint(tmp_path / "w.safetensors", model(2, 4, 1))
    plait.load_checkpoint(tmp_path / "w.safetensors", model(2, 2, 1))

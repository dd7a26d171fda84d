"""Models and graphs whose training must give the same bits with --exact, for tests on CPUs and GPUs."""

import numpy as np
import safetensors.numpy

from program import environment
from task_graphs import graphs_archive, label_sets_archive
from training import directed_archive

EPOCHS = 10
BATCH = ["--norm", "batch", "--layers", 3, "--hidden", 13, "--residual"]
CASES = {
    "gcn": ("directed", []),
    "gcn with batch norm": ("communities", BATCH),
    "sage": ("directed", ["--model", "sage", "--hidden", 11, "--norm", "layer"]),
    "sage by maximum": ("communities", ["--model", "sage", "--aggregation", "max", "--hidden", 9]),
    "gin": ("directed", ["--model", "gin", "--layers", 3, "--hidden", 9]),
    "gat": ("communities", ["--model", "gat", "--hidden", 10, "--heads", 2, "--output-heads", 3]),
    "mlp": ("directed", ["--model", "mlp"]),
    "label sets": ("sets", ["--model", "sage", "--activation", "elu"]),
    "graphs": ("graphs", ["--model", "gin", "--layers", 2, "--hidden", 8, "--pool", "mean"]),
    "hub": ("hub", ["--epochs", 3]),
    "gatv2": ("communities", ["--model", "gatv2", "--hidden", 10, "--heads", 2, "--output-heads", 3]),
    "transformer": ("communities", ["--model", "transformer", "--hidden", 10, "--heads", 2]),
    "hub by attention": ("hub", ["--model", "gat", "--heads", 2, "--hidden", 6, "--epochs", 3]),
}


def hub_archive(path, vertices=5000):
    """Vertex 7 aggregates from almost all others, and almost all from vertex 11, so that their rows
    are cut into pieces, forward and backward."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, vertices)
    most = np.arange(200, vertices)
    hub = np.full(len(most), 1)
    source = np.concatenate([rng.integers(0, vertices, vertices), most, 11 * hub])
    target = np.concatenate([rng.integers(0, vertices, vertices), 7 * hub, most])
    x = rng.standard_normal((vertices, 5), dtype=np.float32) + y[:, None]
    parts = np.split(rng.permutation(vertices), [vertices // 2, vertices * 3 // 4])
    np.savez(path, edge_index=np.stack([source, target]), x=x, y=y,
             **dict(zip(("train", "val", "test"), parts)))


def make_archives(folder):
    """Returns name -> path."""
    paths = {name: folder / f"{name}.npz" for name in ("directed", "sets", "graphs", "hub")}
    directed_archive(paths["directed"], vertices=150)
    label_sets_archive(paths["sets"], vertices=150)
    graphs_archive(paths["graphs"], graphs=40)
    hub_archive(paths["hub"])
    return paths


def arguments_of(name, graphs):
    """Returns the arguments that train a case."""
    graph, options = CASES[name]
    epochs = [] if "--epochs" in options else ["--epochs", EPOCHS]
    return [graphs[graph], *epochs, "--seed", 3, *options]


def layout_of(name, layout):
    """Returns the options of a layout that a case reads: an MLP moves no rows, and so has no strategy."""
    return layout[:layout.index("--strategy")] if name == "mlp" and "--strategy" in layout else layout


def outcome(plait, checkpoint, *arguments, threads=1):
    """Returns all results of training, as bytes: tensors of the checkpoint, losses, metrics."""
    result = plait.json("train", *arguments, "--exact", "--checkpoint", checkpoint,
                        env=environment(OMP_NUM_THREADS=str(threads)))
    assert result["exact"] is True
    values = {name: result[name] for name in ("loss", "val_loss_by_epoch", "val_metric_by_epoch",
                                              "test_metric", "best_epoch")}
    tensors = safetensors.numpy.load_file(checkpoint)
    return {**values, **{name: tensor.tobytes() for name, tensor in tensors.items()}}

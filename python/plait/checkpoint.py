"""Checkpoints of `plait train`, read and written.

A checkpoint is a safetensors file: weights by the names of PyTorch Geometric's basic models, and
what the model is made from as metadata. Nothing in it is unpickled.
"""

import dataclasses
import os

import torch

from plait._library import ops
from plait.nn.model import Model, ModelConfig

_FORMAT = "plait-checkpoint-2"
_FIELDS = {field.name: field.type for field in dataclasses.fields(ModelConfig)}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A trained model, of the epoch that was best.

    Attributes:
        config: plait.nn.ModelConfig, what it is made from.
        state_dict: weights by name, for load_state_dict of a model of PyTorch Geometric too.
    """

    config: ModelConfig
    state_dict: dict

    def model(self):
        """A plait.nn.Model with these weights, ready to infer; .train() to train it further."""
        model = Model(self.config)
        model.load_state_dict(self.state_dict)
        return model.eval()


def load_checkpoint(path, model=None):
    """Reads what `plait train --checkpoint` or save_checkpoint wrote.

    Args:
        path: the file.
        model: a module whose parameters have the checkpoint's names: a plait.nn.Model, a basic
            model of PyTorch Geometric, or one of your own. It gets the weights. None: only read.

    Returns a plait.Checkpoint.

    Raises ValueError that names the file and what is missing or wrong in it, RuntimeError if it
    cannot be read.
    """
    path = os.fspath(path)
    metadata, tensors = ops.read_tensors(path)
    config = _config_of_metadata(path, dict(metadata))
    state = {name: t for name, t in tensors.items() if not name.startswith("resume.")}
    _check_names(f"{path}: the checkpoint", state, "its own metadata", _empty_state(config))
    if model is not None:
        made = f"make the model as the checkpoint says: {_in_words(config)}"
        _check_names(f"{path}: the checkpoint", state, "the model", _state_of(model), made)
        model.load_state_dict(state)
    return Checkpoint(config, state)


def save_checkpoint(model, path, **settings):
    """Writes a checkpoint for `plait infer --checkpoint`.

    Args:
        model: a plait.nn.Model, a basic model of PyTorch Geometric (GCN, GraphSAGE, GAT, GIN), or
            any module with the same names: its layers in a ModuleList `convs`, their norms in
            `norms`, residual projections in `residuals`.
        path: the file; it appears whole, or stays what it was.
        settings: fields of plait.nn.ModelConfig that the model does not tell, such as
            activation="elu" and residual=True; they go before what it tells.

    `plait train --resume` needs more than is written: only `plait infer` takes it.

    Raises ValueError for a model that the program has not, naming what differs.
    """
    config = _config_of(model, settings)
    state = _state_of(model)
    _check_names("the model", state, f"a model of the program ({_in_words(config)})",
                 _empty_state(config))
    metadata = {"format": _FORMAT}
    for name in _FIELDS:
        value = getattr(config, name)
        metadata[name] = str(int(value) if isinstance(value, bool) else value)
    tensors = {name: t.detach().float().cpu() for name, t in state.items()}
    ops.write_tensors(os.fspath(path), metadata, tensors)


def _in_words(config):
    defaults = ModelConfig("gcn", 1, 1)
    always = ("kind", "inputs", "outputs", "layers", "hidden")
    return ", ".join(f"{name} {getattr(config, name)}" for name in _FIELDS if name in always or
                     getattr(config, name) != getattr(defaults, name))


def _state_of(model):
    """What the program keeps of a state_dict: no count of batches."""
    return {name: t for name, t in model.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def _empty_state(config):
    """The names and shapes of the program's model."""
    with torch.device("meta"):
        return _state_of(Model(config))


def _check_names(ours, state, theirs, wanted, remedy="use a checkpoint of the same model"):
    for name, tensor in wanted.items():
        if name not in state:
            raise ValueError(f"{ours} has no '{name}', which {theirs} has; {remedy}")
        if state[name].shape != tensor.shape:
            raise ValueError(
                f"{ours} has '{name}' of shape {tuple(state[name].shape)}, {theirs} has "
                f"{tuple(tensor.shape)}; {remedy}"
            )
    for name in state:
        if name not in wanted:
            raise ValueError(f"{ours} has '{name}', which {theirs} has not; {remedy}")


def _config_of_metadata(path, metadata):
    def field(name):
        if name not in metadata:
            raise ValueError(
                f"{path}: metadata '{name}' is missing; use a checkpoint of plait train or "
                "plait.save_checkpoint"
            )
        return metadata[name]

    if field("format") != _FORMAT:
        raise ValueError(f"{path}: metadata 'format' is '{metadata['format']}', not '{_FORMAT}'; "
                         "use a checkpoint of this version of plait")
    field("checksum")  # else it was lost with whatever else is damaged
    values = {}
    for name, kind in _FIELDS.items():
        try:
            values[name] = bool(int(field(name))) if kind is bool else kind(field(name))
        except ValueError as error:
            if name not in metadata:
                raise
            raise ValueError(f"{path}: metadata '{name}' is '{metadata[name]}', not a number; use "
                             "a checkpoint of plait train") from error
    try:
        return ModelConfig(**values)
    except ValueError as error:
        raise ValueError(f"{path}: metadata: {error}") from None


# --- what a model is made from, read off its layers ---

_KINDS = {"GCNConv": "gcn", "SAGEConv": "sage", "GATConv": "gat", "GINConv": "gin"}

# Options of layers, with the values that the program computes.
_OPTIONS = {
    "gcn": {"improved": False, "add_self_loops": True, "normalize": True},
    "sage": {"normalize": False, "root_weight": True, "project": False},
    "gat": {"add_self_loops": True, "residual": False, "edge_dim": None},
    "gin": {},
}


def _config_of(model, settings):
    for name in settings:
        if name not in _FIELDS:
            raise TypeError(f"{name} is no setting of a model; use {', '.join(_FIELDS)}")
    config = getattr(model, "config", None)
    if isinstance(config, ModelConfig):
        return dataclasses.replace(config, **settings)
    return ModelConfig(**{**_read_off(model, settings), **settings})


def _read_off(model, settings):
    convs = list(getattr(model, "convs", ()))
    names = {type(conv).__name__ for conv in convs}
    if len(names) != 1 or not names <= _KINDS.keys():
        raise ValueError(
            f"the model's layers are {', '.join(sorted(names)) or 'not in a ModuleList convs'}; "
            f"the program has models whose convs are all one of {', '.join(_KINDS)}"
        )
    kind = _KINDS[names.pop()]
    for layer, conv in enumerate(convs):
        for option, value in _OPTIONS[kind].items():
            if getattr(conv, option) != value:
                raise ValueError(f"convs.{layer} has {option}={getattr(conv, option)}; the "
                                 f"program's models have {option}={value}")
    first, last = convs[0], convs[-1]
    found = {"kind": kind, "layers": len(convs), **_widths_of(kind, convs),
             "dropout": _dropout_of(model), "norm": _norm_of(model)}
    if "activation" not in settings:
        found["activation"] = _activation_of(model)
    if kind == "sage":
        found["aggregation"] = first.aggr
    if kind == "gat":
        if not all(conv.concat for conv in convs[:-1]) or last.concat and last.heads > 1:
            raise ValueError("heads of the program's gat stand side by side (concat=True), but "
                             "for those of the last layer, of which the mean is taken")
        found |= {"heads": first.heads, "output_heads": last.heads, "slope": first.negative_slope}
    found["residual"] = any(name.startswith("residuals.") for name in model.state_dict())
    return found


def _widths_of(kind, convs):
    def shape(conv):
        linear = {"sage": "lin_l.weight", "gin": "nn.lins.0.weight"}.get(kind, "lin.weight")
        weight = conv.state_dict().get(linear)
        if weight is None or weight.dim() != 2:
            raise ValueError(f"a layer of the model has no matrix '{linear}'; the program's "
                             f"{kind} has, as PyTorch Geometric's basic models name it")
        out, wide = weight.shape
        return wide, out if kind != "gat" or conv.concat else out // conv.heads

    inputs, hidden = shape(convs[0])
    return {"inputs": inputs, "hidden": hidden, "outputs": shape(convs[-1])[1]}


def _dropout_of(model):
    dropout = getattr(model, "dropout", 0.0)
    return float(getattr(dropout, "p", dropout))


def _norm_of(model):
    names = {type(norm).__name__ for norm in getattr(model, "norms", ())} - {"Identity"}
    known = {"BatchNorm": "batch", "LayerNorm": "layer"}
    if not names:
        return "none"
    if len(names) > 1 or not names <= known.keys() or any(
            getattr(norm, "mode", "node") != "node" for norm in model.norms):
        raise ValueError(f"the model's norms are {', '.join(sorted(names))}; the program has "
                         "BatchNorm, and LayerNorm with mode='node'")
    return known[names.pop()]


def _activation_of(model):
    name = type(getattr(model, "act", None)).__name__
    if name not in ("ReLU", "ELU"):
        raise ValueError(f"the model's act is {name}; say activation='relu' or activation='elu', "
                         "whichever stands between its layers")
    return name.lower()

"""Reads and writes the checkpoints of `plait train`.

A checkpoint is a safetensors file: weights under the names of PyTorch Geometric's basic models, and
the model's settings as metadata. Nothing in it is unpickled.
"""

import dataclasses
import os
import warnings

import torch

from plait._files import file_errors
from plait._library import ops
from plait.nn.model import Model, ModelConfig, normalized

_FORMAT = "plait-checkpoint-3"
_FIELDS = {field.name: field.type for field in dataclasses.fields(ModelConfig)}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A trained model, with the weights of the best epoch.

    Attributes:
        config: plait.nn.ModelConfig, the model's settings. Its `normalize` says how training normalised x.
        state_dict: weights by name; a model of PyTorch Geometric can load them too.
    """

    config: ModelConfig
    state_dict: dict

    def model(self):
        """Returns a plait.nn.Model with these weights in evaluation mode; call .train() to train it
        further. It normalises x as training did, so that its scores are those of `plait infer`."""
        model = Model(self.config)
        model.load_state_dict(self.state_dict)
        return model.eval()

    def normalized(self, x):
        """Returns x normalised as training did, for models that do not do so themselves."""
        return normalized(x, self.config.normalize)


def load_checkpoint(path, model=None):
    """Reads a checkpoint that `plait train --checkpoint` or save_checkpoint wrote.

    Args:
        path: the file.
        model: a module that gets the weights and whose parameters have the checkpoint's names: a
            plait.nn.Model, a basic model of PyTorch Geometric, or one of your own. None: the file
            is only read. A plait.nn.Model also gets the normalisation of x that training had; for any
            other model whose weights expect one, a warning says so: give it checkpoint.normalized(x).

    Returns a plait.Checkpoint.

    Raises ValueError that names the file and the missing or wrong entry, and OSError, such as
    FileNotFoundError, if the file cannot be read.
    """
    path = os.fspath(path)
    with file_errors(path):
        metadata, tensors = ops.read_tensors(path)
    config = _config_of_metadata(path, dict(metadata))
    state = {name: t for name, t in tensors.items() if not name.startswith("resume.")}
    if config.layers > len(state):  # each has an array; so the file bounds what is made of it
        raise ValueError(f"{path}: metadata 'layers' is {config.layers}, but the file has "
                         f"{len(state)} arrays; use a checkpoint of plait train")
    _check_names(f"{path}: the checkpoint", state, "its own metadata", _empty_state(config))
    if model is not None:
        made = f"make the model as the checkpoint says: {_in_words(config)}"
        _check_names(f"{path}: the checkpoint", state, "the model", _state_of(model), made)
        _check_heads(path, model, config, made)
        model.load_state_dict(state)
        _tell_normalisation(path, model, config)
    return Checkpoint(config, state)


def _check_heads(path, model, config, remedy):
    """Raises ValueError if a layer has other heads than the checkpoint: shapes do not always tell."""
    convs = list(getattr(model, "convs", ()))
    for layer, conv in enumerate(convs if config.kind in _WITH_HEADS else ()):
        heads = config.output_heads if layer + 1 == config.layers else config.heads
        if getattr(conv, "heads", heads) != heads:
            raise ValueError(f"{path}: the checkpoint has {heads} heads in convs.{layer}, but the model has {conv.heads}; "
                             f"{remedy}")


def _tell_normalisation(path, model, config):
    """Lets a plait.nn.Model normalise x as training did; warns of what any other model leaves to its caller."""
    if isinstance(model, Model):
        model.config = dataclasses.replace(model.config, normalize=config.normalize)
    elif config.normalize != "none":
        of = {"rows": "divided by their sum", "unit": "divided by their length"}[config.normalize]
        warnings.warn(f"{path}: training read rows of x {of}; give the model checkpoint.normalized(x) in place of x, "
                      "with the checkpoint that this call returns", stacklevel=3)


def save_checkpoint(model, path, **settings):
    """Writes a checkpoint for `plait infer --checkpoint`.

    Args:
        model: a plait.nn.Model, a basic model of PyTorch Geometric (GCN, GraphSAGE, GAT, GIN), or
            any module with the same names: its layers in a ModuleList `convs`, their norms in
            `norms`, residual projections in `residuals`.
        path: the file. It appears whole, or the existing file remains.
        settings: fields of plait.nn.ModelConfig that cannot be read from the model, such as
            activation="elu" and residual=True. normalize="rows" or "unit" says that the model was given x
            with rows divided by their sum or their length; without it, `plait infer` gives x as it is.

    `plait train --resume` needs more than this file holds: only `plait infer` accepts it.

    The options of the layers are looked at, but neither the forward() of a module of your own nor
    hooks: check the scores of `plait infer` once for such a model.

    Raises ValueError that names the difference if the program does not have such a model, if a
    setting contradicts the model, or if a weight is not finite, and OSError if the file cannot be written.
    """
    if any(map(torch.nn.parameter.is_lazy, model.parameters())):
        raise ValueError("the model has weights without a shape; call the model once before")
    config = _config_of(model, settings)
    state = _state_of(model)
    _check_names("the model", state, f"a model of the program ({_in_words(config)})",
                 _empty_state(config), "the program's models have these weights alone")
    metadata = {"format": _FORMAT}
    for name in _FIELDS:
        value = getattr(config, name)
        metadata[name] = str(int(value) if isinstance(value, bool) else value)
    tensors = {name: t.detach().float().cpu() for name, t in state.items()}
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"the model's {name} has values that are not finite")
    with file_errors(path):
        ops.write_tensors(os.fspath(path), metadata, tensors)


def _in_words(config):
    defaults = ModelConfig("gcn", 1, 1)
    always = ("kind", "inputs", "outputs", "layers", "hidden")
    return ", ".join(f"{name} {getattr(config, name)}" for name in _FIELDS if name in always or
                     getattr(config, name) != getattr(defaults, name))


def _state_of(model):
    """Returns the entries of state_dict that the program keeps: all except counts of batches."""
    return {name: t for name, t in model.state_dict().items()
            if not name.endswith("num_batches_tracked")}


def _empty_state(config):
    """Returns the state of the program's model of these settings: names and shapes only."""
    with torch.device("meta"):
        return _state_of(Model(config))


def _check_names(ours, state, theirs, wanted, remedy="use a checkpoint of the same model"):
    for name, tensor in wanted.items():
        if name not in state:
            raise ValueError(f"{ours} has no '{name}', which {theirs} has; {remedy}")
        if state[name].shape != tensor.shape:
            raise ValueError(
                f"{ours} has '{name}' of shape {tuple(state[name].shape)}, but {theirs} has "
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
    field("checksum")  # a missing checksum means that the file is damaged
    values = {}
    metadata.setdefault("normalize", "none")  # of models that save_checkpoint of earlier versions wrote
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


# --- settings of a model, read from its layers ---

_KINDS = {"GCNConv": "gcn", "SAGEConv": "sage", "GATConv": "gat", "GATv2Conv": "gatv2", "TransformerConv": "transformer",
          "GINConv": "gin"}

# The kinds that have heads.
_WITH_HEADS = ("gat", "gatv2", "transformer")

# Options of layers, with the values that the program supports.
_OPTIONS = {
    "gcn": {"aggr": "add", "improved": False, "add_self_loops": True, "normalize": True},
    "sage": {"normalize": False, "root_weight": True, "project": False},
    "gat": {"aggr": "add", "add_self_loops": True, "residual": False, "edge_dim": None},
    "gatv2": {"aggr": "add", "add_self_loops": True, "residual": False, "edge_dim": None, "share_weights": False},
    "transformer": {"aggr": "add", "root_weight": True, "beta": False, "edge_dim": None},
    "gin": {"aggr": "add"},
}

# The matrices whose shape is that of the layer, where it is not "lin.weight".
_MATRICES = {"sage": "lin_l.weight", "gin": "nn.lins.0.weight", "gatv2": "lin_l.weight", "transformer": "lin_query.weight"}

_EPS = 1e-5  # of norms

# Options that are the same in all layers of the program's models.
_SHARED_OPTIONS = {"sage": ("aggr",), "gat": ("negative_slope",), "gatv2": ("negative_slope",)}


def _config_of(model, settings):
    for name in settings:
        if name not in _FIELDS:
            raise TypeError(f"{name} is no setting of a model; use {', '.join(_FIELDS)}")
    config = getattr(model, "config", None)
    if isinstance(config, ModelConfig):
        return dataclasses.replace(config, **settings)
    found = _read_off(model, settings)
    for name, value in settings.items():
        if name not in ("dropout", "residual") and found.get(name, value) != value:
            raise ValueError(f"{name}={value!r} was given, but the model has {found[name]!r}")
    return ModelConfig(**{**found, **settings})


def _read_off(model, settings):
    convs = list(getattr(model, "convs", ()))
    names = {type(conv).__name__ for conv in convs}
    if len(names) != 1 or not names <= _KINDS.keys():
        raise ValueError(
            f"the model's layers are {', '.join(sorted(names)) or 'not in a ModuleList convs'}; "
            f"the program has models whose convs are all one of {', '.join(_KINDS)}"
        )
    kind = _KINDS[names.pop()]
    if getattr(model, "jk_mode", None) is not None:
        raise ValueError(f"the model has jk={model.jk_mode!r}, which joins the outputs of all layers; the program's models "
                         "have jk=None")
    for layer, conv in enumerate(convs):
        for option, value in {"flow": "source_to_target", **_OPTIONS[kind]}.items():
            given = getattr(conv, option, value)
            if ("add" if given == "sum" else given) != value:  # two names of one aggregation
                raise ValueError(f"convs.{layer} has {option}={given}; the program's models have {option}={value}")
        for option in _SHARED_OPTIONS.get(kind, ()):
            if getattr(conv, option) != getattr(convs[0], option):
                raise ValueError(f"convs.{layer} has {option}={getattr(conv, option)}, convs.0 has "
                                 f"{getattr(convs[0], option)}; the program's models have one for all")
    first, last = convs[0], convs[-1]
    for stack in (model, *(conv.nn for conv in convs if kind == "gin")):
        _check_between(stack)
    found = {"kind": kind, "layers": len(convs), **_widths_of(kind, convs),
             "dropout": _dropout_of(model), "norm": _norm_of(model)}
    if "activation" not in settings or _is_known(getattr(model, "act", None)):
        found["activation"] = _activation_of(model)
    if kind == "gin":
        _check_inner(convs, settings.get("activation") or found["activation"])
    if kind == "sage":
        found["aggregation"] = first.aggr
    if kind in _WITH_HEADS:
        if any(conv.heads != first.heads for conv in convs[:-1]):  # the shapes of a TransformerConv do not tell
            raise ValueError(f"convs have {', '.join(str(conv.heads) for conv in convs[:-1])} heads; the program's models "
                             "have as many in all layers but the last")
        if not all(conv.concat for conv in convs[:-1]) or last.concat and last.heads > 1:
            raise ValueError(f"heads of the program's {kind} stand side by side (concat=True), "
                             "except in the last layer, which takes their mean")
        found |= {"heads": first.heads, "output_heads": last.heads}
        found |= {"slope": first.negative_slope} if hasattr(first, "negative_slope") else {}
    found["residual"] = any(name.startswith("residuals.") for name in model.state_dict())
    return found


def _widths_of(kind, convs):
    def shape(conv):
        linear = _MATRICES.get(kind, "lin.weight")
        weight = conv.state_dict().get(linear)
        if weight is None or weight.dim() != 2:
            raise ValueError(f"a layer of the model has no matrix '{linear}'; the program's "
                             f"{kind} has, as PyTorch Geometric's basic models name it")
        out, wide = weight.shape
        return wide, out if kind not in _WITH_HEADS or conv.concat else out // conv.heads

    inputs, hidden = shape(convs[0])
    return {"inputs": inputs, "hidden": hidden, "outputs": shape(convs[-1])[1]}


def _check_between(stack):
    """Refuses parts between the linear maps or layers of a stack that the program computes differently."""
    if getattr(stack, "act_first", False):
        raise ValueError("the model has act_first=True; the program's models have norms before the "
                         "activation")
    if getattr(getattr(stack, "act", None), "alpha", 1.0) != 1.0:
        raise ValueError(f"the model's act is {stack.act}; the program's ELU has alpha=1")
    for norm in getattr(stack, "norms", ()):
        eps = getattr(getattr(norm, "module", norm), "eps", _EPS)
        if eps != _EPS:
            raise ValueError(f"the model has a norm of eps={eps}; the program's norms have {_EPS}")


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


def _is_known(act):
    return type(act).__name__ in ("ReLU", "ELU")


def _check_inner(convs, activation):
    """Refuses MLPs inside GINConv that do not have the activation between their linear maps alone."""
    for layer, conv in enumerate(convs):
        name = type(getattr(conv.nn, "act", None)).__name__
        if name.lower() != activation or not getattr(conv.nn, "plain_last", True):
            raise ValueError(f"convs.{layer}.nn has act={name}, plain_last="
                             f"{getattr(conv.nn, 'plain_last', True)}; the program's models have "
                             f"the activation {activation} there, and plain_last=True")


def _activation_of(model):
    name = type(getattr(model, "act", None)).__name__
    if not _is_known(getattr(model, "act", None)):
        raise ValueError(f"the model's act is {name}; say activation='relu' or activation='elu', "
                         "whichever stands between its layers")
    return name.lower()

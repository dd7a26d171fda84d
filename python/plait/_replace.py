"""Replaces layers of PyTorch Geometric and of torch by layers that use the rows of all ranks."""

import sys
import warnings

import torch

from plait import nn
from plait._batch_norm import BatchNorm1d
from plait._spread_conv import spread_convolution, why_not_spread


def replace_layers(model, strict):
    """Replaces, in place, the layers that look at several nodes, and returns the model; the
    parameters are the same, under the same names. One NotImplementedError names all layers that
    cannot be replaced; unless `strict`, a warning does."""
    refused = []
    model = _replaced(model, type(model).__name__, refused)
    if refused:
        text = (
            "these layers look at other nodes and cannot be spread over ranks: "
            + "; ".join(refused)
        )
        if strict:
            raise NotImplementedError(text)
        warnings.warn(f"{text}; they see this rank's nodes alone", stacklevel=3)
    return model


def _replaced(module, path, refused):
    theirs = _of_torch_geometric(module)
    if theirs in _CONVOLUTIONS:
        try:
            with torch.random.fork_rng([]):
                ours = _with_state_of(module, _CONVOLUTIONS[theirs](module))
        except (NotImplementedError, ValueError):
            pass  # the layer's own code has the options that ours lacks
        else:
            _replace_children(ours, path, refused)
            return ours
    reason = _why_not(module, theirs)
    if reason:
        refused.append(f"{path} ({reason})")
        return module
    if type(module) is torch.nn.BatchNorm1d:
        module.__class__ = BatchNorm1d  # keeps the state and the user's hooks
    if _is_message_passing(module):
        spread_convolution(module)
    _replace_children(module, path, refused)
    return module


def _replace_children(module, path, refused):
    for name, child in list(module.named_children()):
        if name == "aggr_module" and _is_message_passing(module):
            continue  # it takes the messages to one node together, which are here
        replacement = _replaced(child, f"{path}.{name}", refused)
        if replacement is not child:
            setattr(module, name, replacement)


def _is_message_passing(module):
    library = sys.modules.get("torch_geometric.nn")
    return library is not None and isinstance(module, library.MessagePassing)


def _of_torch_geometric(module):
    """Returns the name of the module's class in torch_geometric.nn; None for other classes and for
    subclasses."""
    cls = type(module)
    library = sys.modules.get("torch_geometric.nn")
    return cls.__name__ if library and getattr(library, cls.__name__, None) is cls else None


def _with_state_of(theirs, ours):
    """Returns `ours` with the parameters, the buffers and the mode of `theirs`."""
    state, wanted = theirs.state_dict(keep_vars=True), ours.state_dict()
    if state.keys() != wanted.keys():
        names = ", ".join(sorted(state.keys() ^ wanted.keys()))
        raise NotImplementedError(f"Plait's layer knows no {names}")
    if theirs._forward_hooks or theirs._forward_pre_hooks:
        raise NotImplementedError("it has hooks, which would be lost")
    for name, tensor in state.items():
        path, _, last = name.rpartition(".")
        owner = ours.get_submodule(path)
        (owner._parameters if last in owner._parameters else owner._buffers)[last] = tensor
    return ours.train(theirs.training)


def _gin_conv(theirs):
    learnt = isinstance(theirs.eps, torch.nn.Parameter)
    # theirs.nn is not passed here, because a layer draws the weights of its parts anew.
    ours = nn.GINConv(torch.nn.Identity(), theirs.initial_eps, learnt, aggr=theirs.aggr,
                      flow=theirs.flow)
    ours.nn = theirs.nn
    return ours


def _like(cls, names, bias):
    """Returns a function that makes a layer with the options that `theirs` has under these names;
    bias(theirs) returns its bias."""

    def make(theirs):
        options = {name: getattr(theirs, name) for name in names.split()}
        return cls(**options, bias=bias(theirs) is not None, flow=theirs.flow)

    return make


_WIDTHS = "in_channels out_channels"
# Name of the class in torch_geometric.nn -> function that makes our layer from theirs, with weights
# yet to be set.
_CONVOLUTIONS = {
    "GCNConv": _like(nn.GCNConv, f"{_WIDTHS} improved cached add_self_loops normalize aggr",
                     lambda theirs: theirs.bias),
    "SAGEConv": _like(nn.SAGEConv, f"{_WIDTHS} aggr normalize root_weight project",
                      lambda theirs: theirs.lin_l.bias),
    "GATConv": _like(nn.GATConv, f"{_WIDTHS} heads concat negative_slope dropout add_self_loops "
                     "edge_dim fill_value residual", lambda theirs: theirs.bias),
    "GINConv": _gin_conv,
}

_NORMS_OVER_NODES = (
    "DiffGroupNorm GraphNorm GraphSizeNorm HeteroBatchNorm HeteroLayerNorm InstanceNorm "
    "MeanSubtractionNorm PairNorm"
).split()


_OVER_ALL_NODES = ("CorrectAndSmooth", "DeepGraphInfomax", "GPSConv", "LabelPropagation", "Polynormer",
                   "SGFormer")


def _why_not(module, theirs):
    """Returns why the module's results would be wrong on a part of the rows; None if it treats each
    row separately."""
    library = sys.modules.get("torch_geometric.nn")
    if library:
        if ".nn.attention" in type(module).__module__ or theirs in _OVER_ALL_NODES:
            return f"{type(module).__name__} looks at all nodes together"
        if _is_message_passing(module):
            return why_not_spread(module)
        if isinstance(module, library.Aggregation) or ".nn.pool" in type(module).__module__:
            return f"{type(module).__name__} takes rows together"
    if theirs in _NORMS_OVER_NODES:
        return f"{theirs} normalises over nodes"
    if theirs == "LayerNorm" and module.mode == "graph":
        return "LayerNorm normalises over nodes; use mode='node'"
    if theirs == "BatchNorm" and module.allow_single_element:
        return "BatchNorm with allow_single_element"
    if isinstance(module, torch.nn.modules.batchnorm._NormBase):
        if type(module) not in (torch.nn.BatchNorm1d, BatchNorm1d):
            return f"{type(module).__name__} normalises over rows"
    if isinstance(module, (torch.nn.MultiheadAttention, torch.nn.RNNBase)):
        return f"{type(module).__name__} is not supported"
    return None

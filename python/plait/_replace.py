"""Layers of PyTorch Geometric and of torch, replaced by those that know the rows of all ranks."""

import sys
import warnings

import torch

from plait import nn
from plait._batch_norm import BatchNorm1d


def replace_layers(model, strict):
    """The model, with what looks at several nodes replaced in place; the same parameters, under the
    same names. What cannot be replaced is named in one NotImplementedError or, unless `strict`, a
    warning."""
    refused = []
    model = _replaced(model, type(model).__name__, refused)
    if refused:
        text = (
            "these layers look at other nodes and cannot be spread over ranks: "
            + "; ".join(refused)
            + f"; known are {', '.join(sorted(_CONVOLUTIONS))} and BatchNorm"
        )
        if strict:
            raise NotImplementedError(text)
        warnings.warn(f"{text}; they see this rank's nodes alone", stacklevel=3)
    return model


def _replaced(module, path, refused):
    theirs = _of_torch_geometric(module)
    if theirs in _CONVOLUTIONS:
        try:
            return _with_parameters_of(module, _CONVOLUTIONS[theirs](module))
        except (NotImplementedError, ValueError) as error:
            refused.append(f"{path} ({error})")
            return module
    reason = _why_not(module, theirs)
    if reason:
        refused.append(f"{path} ({reason})")
        return module
    if type(module) is torch.nn.BatchNorm1d:
        module.__class__ = BatchNorm1d  # the same state, and what the user has hooked to it
    for name, child in module.named_children():
        replacement = _replaced(child, f"{path}.{name}", refused)
        if replacement is not child:
            setattr(module, name, replacement)
    return module


def _of_torch_geometric(module):
    """The name of its class in torch_geometric.nn; None of others, also of subclasses."""
    cls = type(module)
    library = sys.modules.get("torch_geometric.nn")
    return cls.__name__ if library and getattr(library, cls.__name__, None) is cls else None


def _with_parameters_of(theirs, ours):
    """Ours, with the parameters, mode and hooks of theirs."""
    for name, parameter in theirs.named_parameters():
        path, _, last = name.rpartition(".")
        ours.get_submodule(path)._parameters[last] = parameter
    missing = {name for name, _ in ours.named_parameters()} ^ {n for n, _ in theirs.named_parameters()}
    if missing:
        raise NotImplementedError(f"parameters {', '.join(sorted(missing))} do not fit")
    for hooks in ("_forward_hooks", "_forward_pre_hooks"):
        if getattr(theirs, hooks):
            raise NotImplementedError("it has hooks, which would be lost")
    return ours.train(theirs.training)


def _gcn_conv(theirs):
    return nn.GCNConv(
        theirs.in_channels,
        theirs.out_channels,
        improved=theirs.improved,
        cached=theirs.cached,
        add_self_loops=theirs.add_self_loops,
        normalize=theirs.normalize,
        bias=theirs.bias is not None,
        aggr=theirs.aggr,
        flow=theirs.flow,
    )


# By the name of the class in torch_geometric.nn.
_CONVOLUTIONS = {"GCNConv": _gcn_conv}

_NORMS_OVER_NODES = (
    "DiffGroupNorm GraphNorm GraphSizeNorm HeteroBatchNorm HeteroLayerNorm InstanceNorm "
    "MeanSubtractionNorm PairNorm"
).split()


def _why_not(module, theirs):
    """Why its results would be wrong on a part of the rows; None where it takes each row alone."""
    library = sys.modules.get("torch_geometric.nn")
    if library:
        if isinstance(module, library.MessagePassing):
            return f"{type(module).__name__} sends messages in a way of its own"
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

"""Replaces layers of PyTorch Geometric and of torch by layers that use the rows of all ranks."""

import copy
import warnings

import torch

from plait._spread.batch_norm import BatchNorm1d
from plait._spread.conv import spread_convolution, why_not_spread
from plait._spread.correct_and_smooth import correct_and_smooth_class
from plait._spread.quantiles import allow_no_messages
from plait._theirs import is_theirs, name_of_theirs


def replace_layers(model, strict):
    """Lets the layers that look at several nodes, in place, compute on own rows; parameters, hooks and
    names stay. One NotImplementedError names all layers that cannot; unless `strict`, a warning does."""
    refused = []
    _replace(model, type(model).__name__, refused)
    if refused:
        text = (
            "these layers look at other nodes and cannot be spread over ranks: "
            + "; ".join(refused)
        )
        if strict:
            raise NotImplementedError(text)
        warnings.warn(f"{text}; they see this rank's nodes alone", stacklevel=3)


def _replace(module, path, refused):
    reason = None
    _empty_caches(module)
    if not _is_made_fast(module):
        reason = _why_not(module, name_of_theirs(module))
        if type(module) is torch.nn.BatchNorm1d:
            module.__class__ = BatchNorm1d
        if name_of_theirs(module) == "CorrectAndSmooth":
            module.__class__ = correct_and_smooth_class(type(module))
        if _is_message_passing(module) and not reason:
            spread_convolution(module)
            allow_no_messages(module.aggr_module)
    if reason:
        refused.append(f"{path} ({reason})")
        return
    for name, child in module.named_children():
        if name != "aggr_module" or not _is_message_passing(module):  # it gets all messages to a node
            _replace(child, f"{path}.{name}", refused)


def layers_of(model):
    """Yields each layer of a model that looks at other nodes as (name, module, way, reason), as
    replace_layers() will treat it, and changes nothing. `way`:
        "fast": a layer of plait.nn computes it by Plait's operations.
        "by edge": its own code computes it, with steps of plait.nn; rows are brought by an exchange.
        "exchange": its own code computes it, with rows that an exchange brings.
        "refused": it cannot be spread, for the reason.
    The module may be a copy, of a class of plait.nn."""

    def visit(module, name):
        way, probe, reason = _way_of(module)
        if way:
            yield name, probe, way, reason
        if way == "refused":
            return
        for child, part in module.named_children():
            if child != "aggr_module" or not _is_message_passing(module):
                yield from visit(part, f"{name}.{child}" if name else child)

    yield from visit(model, "")


def _way_of(module):
    if getattr(type(module), "_is_spread", False):
        return "exchange", module, None
    probe = copy.copy(module)  # with the same parts
    if _is_made_fast(probe):
        return "fast", probe, None
    reason = _why_not(probe, name_of_theirs(probe))
    if reason:
        return "refused", probe, reason
    if not _is_message_passing(probe):
        return None, probe, None
    has_steps = hasattr(probe, "reason_against_steps") and probe.reason_against_steps() is None
    return "by edge" if has_steps else "exchange", probe, None


def _empty_caches(module):
    """Forgets everything that layers kept of calls with the whole graph."""
    for name in ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h"):
        if _is_message_passing(module) and getattr(module, name, None) is not None:
            setattr(module, name, None)


def _is_made_fast(module):
    """Makes the layer one of plait.nn, if there is one and the layer's options let it, or its steps, be
    fast. Returns whether it takes a plait.Graph then."""
    if not _is_message_passing(module) or module.flow != "source_to_target":
        return False
    from plait import nn

    theirs = type(module)
    if isinstance(module, nn.FastConv):  # a forward of the user's class may read the edges
        ours = theirs if theirs.forward is getattr(nn, module._theirs.__name__).forward else None
    else:
        ours = getattr(nn, name_of_theirs(module) or "", None)
    if ours is None:
        return False
    module.__class__ = ours
    module._set_jittable_templates()  # as when a layer of the class is made
    if module.reason_against() is None:
        return True
    if module.reason_against_steps() is not None:
        module.__class__ = theirs  # its own code has the options that ours lacks
    return False


def _is_message_passing(module):
    return is_theirs(module, "MessagePassing")


def is_left_alone(module):
    """Returns whether a layer of message passing has not been made one for spread graphs."""
    from plait.nn import FastConv

    return _is_message_passing(module) and not (
        isinstance(module, FastConv) or getattr(type(module), "_is_spread", False))


_NORMS_OVER_NODES = (
    "DiffGroupNorm GraphNorm GraphSizeNorm HeteroBatchNorm HeteroLayerNorm InstanceNorm "
    "MeanSubtractionNorm PairNorm"
).split()


_OVER_ALL_NODES = ("DeepGraphInfomax", "GPSConv", "Polynormer", "SGFormer")


def _why_not(module, theirs):
    """Returns why the module's results would be wrong on a part of the rows; None if it treats each
    row separately."""
    if ".nn.attention" in type(module).__module__ or theirs in _OVER_ALL_NODES:
        return f"{type(module).__name__} looks at all nodes together"
    if _is_message_passing(module):
        return why_not_spread(module)
    if is_theirs(module, "Aggregation") or ".nn.pool" in type(module).__module__:
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

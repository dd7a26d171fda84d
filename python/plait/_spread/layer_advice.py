"""Reads from a model the demands of its layers on a graph: the extractor of GNNAdvisor (OSDI 2021, section 3.2)."""

import dataclasses

import torch

from plait._library import ops
from plait._spread.replace import layers_of


@dataclasses.dataclass(frozen=True)
class LayerAdvice:
    """What is known of a layer that looks at other nodes.

    Attributes:
        name, kind: its name in the model, and that of its class.
        way: "fast" (by Plait's operations), "by edge" (its own code with fast steps), "exchange" (its own
            code), or "refused"; rows of "by edge" and "exchange" are brought by an exchange of their own.
        reason: why it is refused; else None.
        inputs, outputs: the widths of its rows; None if they are not known.
        order: "product first" or "sum first": the order of the product with its weights and of the sum or
            attention over neighbours; None where its own code decides.
        crosses: the width of the widest rows that are summed and cross between ranks, forward or backward, in
            float32 numbers, with the padding that they have in memory; None if it is not known.
        sums: how many times a call of the layer sums over neighbours.
        needs_rows: whether rows themselves must come to edges, not only their sums.
    """

    name: str
    kind: str
    way: str
    reason: str = None
    inputs: int = None
    outputs: int = None
    order: str = None
    crosses: int = None
    sums: int = 1
    needs_rows: bool = False


def layer_advice(model):
    """Returns the LayerAdvice of each layer that looks at other nodes, in the order of the model's parts."""
    return tuple(_advice(*layer) for layer in layers_of(model))


def moved_by(layers):
    """Returns the widths of the sums by Plait's operations, and whether any of them needs rows."""
    fast = [layer for layer in layers if layer.way == "fast" and layer.crosses]
    return [layer.crosses for layer in fast for _ in range(layer.sums)], any(l.needs_rows for l in fast)


def require_sums(model, wire):
    """Raises ValueError if the model has layers that look at other nodes, but none of them sums rows by Plait's
    operations, which alone cross between ranks as `wire`."""
    layers = list(layers_of(model))
    if layers and not any(way == "fast" and _sums_rows(conv) for _, conv, way, _ in layers):
        raise ValueError(f"wire is {wire!r}, but no layer of the model has Plait's operations sum rows of other ranks: "
                         "attention, maxima, minima and layers with their own code read rows as they are; leave it out")


def _sums_rows(conv):
    """Returns whether a fast layer makes sums of rows, and not attention, maxima or minima alone."""
    kind = getattr(conv, "_theirs", type(conv)).__name__
    return kind != "GATConv" and bool(_aggregations(conv.aggr_module) - {"Max", "Min", "Softmax"})


def device_of(model):
    """Returns the torch.device of the model's weights; the CPU without any."""
    return next((p.device for p in (*model.parameters(), *model.buffers())), torch.device("cpu"))


def _advice(name, conv, way, reason):
    kind = getattr(conv, "_theirs", type(conv)).__name__
    known = dict(inputs=_width(conv, "in_channels"), outputs=_outputs(conv))
    if way == "fast":
        known["order"], known["crosses"], known["needs_rows"] = _sums(conv, kind, **known)
        known["sums"] = getattr(conv, "K", 1)
    return LayerAdvice(name, kind, way, reason, **known)


def _width(conv, name):
    """Returns a width of the layer; that of sources, if it has two; None for lazy ones."""
    width = getattr(conv, name, None)
    width = width[0] if isinstance(width, (tuple, list)) else width
    if width is None and name == "in_channels":
        first = next((part for part in conv.modules() if hasattr(part, "in_features")), None)
        first = first or next((part for part in conv.modules() if hasattr(part, "in_channels")), None)
        width = getattr(first, "in_features", None) or getattr(first, "in_channels", None)
    return width if isinstance(width, int) and width > 0 else None


def _outputs(conv):
    width = _width(conv, "out_channels")
    if width is None:
        widths = [getattr(part, name, None) for part in conv.modules() for name in ("out_features", "out_channels")]
        return next((width for width in reversed(widths) if isinstance(width, int) and width > 0), None)
    heads = getattr(conv, "heads", 1)
    return width * heads if getattr(conv, "concat", False) and isinstance(heads, int) else width


def _sums(conv, kind, inputs, outputs):
    """Returns the order of a fast layer, the width that crosses, and whether rows do."""
    if inputs is None or outputs is None:
        return None, None, kind == "GATConv" or _reads_rows(conv.aggr_module)
    if kind == "GATConv":
        return ops.layer_plan("gat", [inputs, outputs, conv.heads], conv.concat, "mean")
    names = _aggregations(conv.aggr_module)
    if kind in ("GCNConv", "SAGEConv", "GraphConv") and names <= {"Sum", "Mean"}:
        # The kinds of the program have the same rule, as their sums are linear.
        return ops.layer_plan("gcn" if kind == "GCNConv" else "sage", [inputs, outputs, 1], True, "mean")
    needs_rows = _reads_rows(conv.aggr_module)
    if kind == "GCNConv":  # products are summed, whatever their width
        return "product first", outputs, needs_rows
    if names & {"Max", "Min"}:
        _, width, _ = ops.layer_plan("sage", [inputs, outputs, 1], True, "max")
    elif names & {"Softmax"}:  # attention of as many heads as columns
        _, width, _ = ops.layer_plan("gat", [inputs, inputs, inputs], True, "mean")
    else:
        width = 2 * inputs if names & {"Std", "Var"} else inputs
    return "sum first", width, needs_rows


def _aggregations(module):
    parts = getattr(module, "aggrs", [module])
    return {type(part).__name__.removesuffix("Aggregation") for part in parts}


def _reads_rows(module):
    return bool(_aggregations(module) & {"Max", "Min", "Softmax"})

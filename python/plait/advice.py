"""Decides how a model and a graph are spread over ranks, and says why: GNNAdvisor's loader, extractor and
decider (OSDI 2021, listing 1).

    advice = plait.advise(model, data)
    print(advice)
    model, data = advice.apply(model, data)
"""

import dataclasses

import torch

from plait._edges.inputs import whole_number
from plait._spread.choice import Alternative, choose
from plait._spread.layer_advice import LayerAdvice, device_of, layer_advice
from plait.graph import Graph
from plait.parallel import parallelize
from plait.spread import number_of_nodes
from plait.world import world_size

__all__ = ["Advice", "Alternative", "LayerAdvice", "advise"]


@dataclasses.dataclass(frozen=True)
class Advice:
    """A decision. `print(advice)` shows it as a table.

    Attributes:
        ranks, device: the number of ranks that it is for, and their kind: "cpu" or "cuda".
        graph: numbers that describe the graph, as plait.Graph.stats() returns them, with `nodes` and `edges`.
        layers: one plait.advice.LayerAdvice per layer that looks at other nodes.
        strategy, partition: as in plait.Graph; how rows of other ranks come, and which rank owns which nodes.
        reorder: the order in which operations will work: that of the graph if it has one, else "communities" if
            that brings the ends of edges closer (GNNAdvisor, section 6.1; the rule of `plait reorder`) and `plait
            tune` has not measured the graph as it is, or "none".
        alternatives: the ways that were compared, the fastest first; empty if no times were known.
        reasons: sentences that say why.
    """

    ranks: int
    device: str
    graph: dict
    layers: tuple
    strategy: str
    partition: str
    reorder: str
    alternatives: tuple
    reasons: tuple

    def apply(self, model, data, **options):
        """Returns plait.parallelize(model, data) with this strategy, partition and order; collective. `options`:
        its further arguments. Raises ValueError if this run has another number of ranks."""
        if self.ranks != world_size():
            raise ValueError(f"the advice is for {self.ranks} ranks, but this run has {world_size()}")
        chosen = {"strategy": self.strategy, "partition": self.partition, "reorder": self.reorder}
        return parallelize(model, data, **chosen | options)

    def __str__(self):
        g = self.graph
        ranks = f"{self.ranks} rank{'' if self.ranks == 1 else 's'}"
        return "\n".join((
            f"graph      {g['nodes']} nodes, {g['edges']} edges; mean degree {g['mean_degree']:.2f}, largest "
            f"{g['largest_degree']}",
            f"           averaged edge span {g['averaged_edge_span']:.1f}; {g['communities']} communities with "
            f"{100 * g['inner_edges']:.0f}% of the edges",
            "",
            *_table(self.layers),
            "",
            f"ranks      {ranks} ({self.device})",
            f"strategy   {self.strategy}",
            f"partition  {self.partition}",
            f"reorder    {self.reorder}",
            *(f"           {reason}" for reason in self.reasons),
        ))


_HEADS = "layer", "kind", "way", "in", "out", "order", "crosses"


def _table(layers):
    def cells(layer):
        times = "" if layer.sums == 1 else f"{layer.sums} x "
        crosses = "-" if layer.crosses is None else f"{times}{layer.crosses}"
        known = layer.inputs, layer.outputs, layer.order
        return (layer.name or "-", layer.kind, layer.way, *("-" if one is None else str(one) for one in known),
                crosses)

    rows = [_HEADS, *map(cells, layers)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    for layer in layers:
        if layer.reason:
            yield f"{layer.name or layer.kind}: refused: {layer.reason}"


def advise(model, data, *, ranks=None, device=None, strategy=None, partition=None):
    """Decides how the model would be trained on the graph, without changing or computing anything of both.

    Collective. It reads the model's layers (widths, order of aggregation and product, whether Plait's
    operations compute them) and the graph (degrees, averaged edge span, communities), and asks Plait's
    decider: the times that `plait tune` measured on this graph choose, or on GPUs predicted ones. The answer
    is the one that plait.parallelize takes.

    Args:
        model, data: as plait.parallelize takes them; data may also be anything that plait.Graph takes.
        ranks: the number of ranks, on one host. None: the number of this run.
        device: "cpu" or "cuda", or a torch.device. None: where the model is.
        strategy, partition: as in plait.Graph. None: open.

    Returns an Advice, the same on every rank. Raises TypeError if the model is no torch.nn.Module, or ranks no
    whole number.
    """
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, not a torch.nn.Module")
    ranks = None if ranks is None else whole_number("ranks", ranks)
    graph = _graph_of(data)
    partition, strategy, reorder, wire = (
        own or given for own, given in zip(graph.asked, (partition, strategy, None, "fp32")))
    layers = layer_advice(model)
    device = torch.device(device or device_of(model))
    stats = {"nodes": graph.num_nodes, "edges": graph.num_edges, **graph.stats()}
    choice = choose(graph, layers, device, ranks, (strategy, partition, wire, reorder or "none"))
    reasons = []
    if reorder is None and stats["scattered"] and not choice.measured:  # else times speak for the order of ids
        reorder = "communities"
        choice = choose(graph, layers, device, ranks, (strategy, partition, wire, reorder))
        reasons.append("order communities: it brings the ends of edges closer, which may be faster")
    reasons = [*choice.reasons, *reasons]
    refused = [layer.name or layer.kind for layer in layers if layer.way == "refused"]
    if refused:
        reasons.append(f"plait.parallelize refuses {', '.join(refused)}")
    return Advice(world_size() if ranks is None else ranks, device.type, stats, layers, choice.strategy,
                  choice.partition, reorder or "none", choice.alternatives, tuple(reasons))


def _graph_of(data):
    """Returns the plait.Graph of the data; one that is given as it is."""
    edges = getattr(data, "edge_index", None)
    if isinstance(data, Graph) or edges is None:
        return data if isinstance(data, Graph) else Graph(data)
    if isinstance(edges, Graph):
        return edges
    return Graph(edges, number_of_nodes(data), getattr(data, "edge_weight", None))

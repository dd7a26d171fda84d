"""Chooses the strategy and the partition of a graph for the layers of a model, as the command line
does (aggregate/route_choice.h)."""

import dataclasses

from plait._library import ops
from plait._spread.layer_advice import moved_by
from plait.world import require_equal


@dataclasses.dataclass(frozen=True)
class Alternative:
    """A way that was compared, and the time of one sum at each of the model's widths, added, in ms."""

    strategy: str
    partition: str
    ms: float


@dataclasses.dataclass(frozen=True)
class Choice:
    """The part of an Advice that follows from the widths of sums."""

    strategy: str
    partition: str
    alternatives: tuple = ()
    reasons: tuple = ()
    measured: bool = False  # the times of the alternatives

    @property
    def layout(self):
        return self.partition, self.strategy


def choose(graph, layers, device, ranks=None, way=(None, None, "fp32", "none")):
    """Returns the Choice for the layers of a model on a graph, as rank 0 decides; collective. `way`: the strategy
    and the partition, each None if it is open, the type of rows on the wire, and the order in which the graph is
    worked on."""
    strategy, partition, wire, reorder = way
    widths, needs_rows = moved_by(layers)
    require_equal("models", {"the widths of sums": widths, "needs rows": needs_rows, "the device": device.type,
                             "ranks": ranks, "strategy": strategy, "partition": partition, "wire": wire})
    if ranks is not None and ranks < 1:
        raise ValueError(f"ranks is {ranks}; use 1 or more")
    if not widths:
        return Choice(strategy or "auto", partition or "edges", reasons=(
            "no layer sums by Plait's operations with a known width: the standard way",))
    lines = ops.choose_route(graph.edge_index, graph.num_nodes, graph.edge_weight, widths, needs_rows, device,
                             ranks or 0, [strategy or "", partition or "", wire, reorder])
    facts = [line.split(" ", 1) for line in lines]
    (strategy, partition), = (text.split() for what, text in facts if what == "route")
    ways = [text.split() for what, text in facts if what == "way"]
    return Choice(strategy, partition, tuple(Alternative(s, p, float(ms)) for s, p, ms in ways),
                  tuple(text.strip() for what, text in facts if what == "reason"), ["measured", "yes"] in facts)

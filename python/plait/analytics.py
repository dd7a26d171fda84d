"""Analytics of graphs: one function for each app of the library's table, of the same name as its command."""

import collections
import inspect
import numbers

from plait._edges.adjacency import kept, require_equal_graphs
from plait._edges.inputs import plain_number
from plait._library import ops
from plait.graph import as_graph

_KINDS = {"flag": lambda text: bool(float(text)), "whole": lambda text: int(float(text)), "number": float,
          "optional": lambda text: None}

_NOTES = """

Args:
    graph: a plait.Graph, or an object from which one can be made: an edge_index, a Data, a networkx graph, whose
        nodes are numbered in their order, or a matrix, whose entry (i, j) is an edge from j to i, unlike in
        scipy.sparse.csgraph. A plait.Graph and an edge_index are placed once, and an edge_index anew after a change
        that torch counts (docs/python.md); other objects are placed at every call.
{arguments}
Returns a named tuple: {columns}: one number for each of this rank's own nodes, graph.vertices, on the device of the
graph's edges, on which the work is done; and {facts}: numbers of the whole graph.

Collective on several ranks. The answer does not depend on their number, nor on the device.

Raises ValueError for an argument out of range, and for a graph that has no answer. See docs/analytics.md.
"""

# An app, as the library's table has it. options: [(name, kind, standard value, help)].
App = collections.namedtuple("App", "name summary columns facts options")


def _apps():
    """Returns the table of apps."""
    found = []
    for line in ops.apps().splitlines():
        if line.startswith("\t"):
            name, kind, standard, text = line[1:].split("\t")
            found[-1].options.append((name, kind, _KINDS[kind](standard), text))
        else:
            name, summary, columns, facts = line.split("\t")
            found.append(App(name, summary, columns.split(), facts.split(), []))
    return found


def _place(graph):
    """Returns the graph as apps read it, on the device of its edges, and its Owners. Collective."""
    edges, weight, device = graph.edge_index, graph.edge_weight, graph.edge_index.device
    owners = graph._owners()

    def make():
        require_equal_graphs(edges, weight, graph.num_nodes, graph.partition, device=device.type,
                             **{"the order": graph.reorder})
        return ops.graph_for_apps(edges, graph.num_nodes, weight, owners.handle, device)

    return kept(edges, weight, ("apps", *graph.placing, device), make, together=True), owners


def _number(name, kind, standard, value):
    """Returns the value of an argument as the library takes it, or None for one that is left open. Raises ValueError
    unless it is of that kind; numbers of NumPy, and tensors of one number, are numbers."""
    if value is None and standard is None:
        return None
    taken = {"flag": bool, "number": numbers.Real}.get(kind, numbers.Integral)
    value = plain_number(value)
    if not isinstance(value, taken) or (kind != "flag" and isinstance(value, bool)):
        word = {"flag": "True or False", "number": "a number"}.get(kind, "a whole number")
        raise ValueError(f"{name} is {value!r}, but must be {word}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is {value}, which no graph has") from None


def _function(app):
    """Returns the function of an app."""
    result = collections.namedtuple(app.name.capitalize(), (*app.columns, *app.facts), module=__name__)
    globals()[result.__name__] = result  # where pickle looks for it

    def call(graph, **settings):
        given = signature.bind(graph, **settings)
        given.apply_defaults()
        found = {name: _number(name, kind, standard, given.arguments[name]) for name, kind, standard, _ in app.options}
        handle, owners = _place(as_graph(graph))
        columns, facts = handle.run(app.name, {name: value for name, value in found.items() if value is not None})
        if owners.order is not None:
            columns = [owners.order.leave(column) for column in columns]
        return result(*columns, *(fact.item() for fact in facts))

    parameters = [inspect.Parameter("graph", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=standard)
                   for name, _, standard, _ in app.options]
    signature = call.__signature__ = inspect.Signature(parameters)
    call.__name__ = call.__qualname__ = app.name
    call.__doc__ = f"{app.summary}." + _NOTES.format(
        columns=", ".join(app.columns), facts=", ".join(app.facts),
        arguments="".join(f"    {name}: {text}.\n" for name, _, _, text in app.options))
    return call


functions = {app.name: _function(app) for app in _apps()}

"""Cuts the data of a whole graph to the rows of this rank's own nodes."""

import copy
import functools
import types
import warnings

import torch

from plait._edges.adjacency import fingerprint
from plait._edges.inputs import edges_of_adj_t
from plait._spread.local_piece import own_edges
from plait.graph import Graph
from plait.world import require_equal, world_size


def spread(data, *, partition=None, strategy=None, reorder=None, wire=None, strict=True):
    """Returns a copy of the data with the rows of this rank's own nodes.

    Collective; every rank passes the same data of the whole graph.

    Args:
        data: torch_geometric.data.Data, or another object with the attribute edge_index; or a
            plait.Graph, which may have a partition, a strategy, an order and a wire type of its own.
        partition, strategy, reorder, wire: as in plait.Graph. None: those of a plait.Graph, else "edges", "auto",
            "none" and "fp32".
        strict: as in plait.parallelize.

    Returns an object of the same type; for a plait.Graph, a namespace of its x, y and masks. Its
    edge_index is a plait.Graph, and so is adj_t of data whose edges are there. Tensors with one row per node
    have the rows of data.edge_index.vertices. edge_label_index and edge_label stay whole on every rank, as do
    others whose names end in label_index: plait.gather reads the rows of their nodes. edge_weight, and others
    named edge_* with one row per edge, have the rows of edges into own nodes; layers use edge_weight if it is
    passed to them. The weights of a plait.Graph and the weights in adj_t stay in it, and are always used.

    Raises NotImplementedError for attributes that list nodes, because they would need rows of other
    ranks, and ValueError, on every rank, if ranks pass different data.
    """
    return spread_by(data, (partition, strategy, reorder, wire), strict,
                     lambda graph: (partition or graph.partition, strategy or graph.strategy))


def spread_by(data, placing, strict, choose):
    """As spread(); `placing`: the partition, the strategy, the order and the wire type. If the partition or the
    strategy is None, on several ranks, by those that choose(graph) returns."""
    partition, strategy, reorder, wire = placing
    weight = edge_weight = of_matrix = None
    links = set()
    if isinstance(data, Graph):
        graph = data
        _require_open(graph, placing)
        partition, strategy, reorder, wire = (own or given for own, given in zip(data.asked, placing))
        fields = {name: getattr(data, name) for name in Graph._FIELDS}
        result = types.SimpleNamespace(**fields)
    elif isinstance(getattr(data, "edge_index", None), Graph):
        _require_open(data.edge_index, placing)
        return data
    else:
        result, fields = _copied(data)
        nodes = number_of_nodes(data)
        of_matrix = _take_matrix(fields)
        links = _links_of(fields, nodes)
        _refuse_others(result, fields, links, strict)
        weight = edge_weight = fields.pop("edge_weight", None)
        if of_matrix is not None and of_matrix.weight is not None:
            weight = of_matrix.weight
        graph = Graph(fields.pop("edge_index"), nodes, weight)
    require_equal("graphs", {"the partition": partition, "the strategy": strategy, "the order": reorder,
                             "the type of rows on the wire": wire})
    graph.place(partition or "edges", strategy or "auto", reorder or "none", wire or "fp32")
    if world_size() > 1 and None in (partition, strategy):
        graph.place(*choose(graph), graph.reorder, graph.wire)
    if edge_weight is not None:
        result.edge_weight = _of_own_edges(graph, edge_weight)
        if weight is edge_weight:
            graph.ask_for_weight(result.edge_weight)
    tensors = {name: value for name, value in fields.items() if isinstance(value, torch.Tensor)}
    if world_size() > 1:
        for name, value in tensors.items():
            if value.layout != torch.strided:
                raise NotImplementedError(f"data.{name} is sparse; give data.{name}.to_dense()")
        _require_same(tensors, links)
    for name, value in tensors.items():
        of_edges = name.startswith("edge_")
        if name not in links:
            setattr(result, name, _of_own_edges(graph, value) if of_edges else _own(graph, value))
    result.edge_index = graph
    if of_matrix is not None:
        result.adj_t = graph
    if "num_nodes" in fields or getattr(result, "num_nodes", graph.num_own) != graph.num_own:
        result.num_nodes = graph.num_own
    if type(type(result)) is type and isinstance(getattr(type(result), "num_edges", None), property):
        object.__setattr__(result, "__class__", _counting_class(type(result)))
    return result


def _require_open(graph, placing):
    """Raises ValueError for a partition, a strategy, an order or a wire type other than those that the graph has."""
    for what, own, given in zip(("partition", "strategy", "reorder", "wire"), graph.asked, placing):
        if own is not None and given not in (None, own):
            raise ValueError(f"{what} is {given!r}, but the plait.Graph has {own!r}; leave it out, or make another graph")


@functools.cache
def _counting_class(cls):
    """Returns a subclass of a class of data, of the same name, that counts the edges of a plait.Graph: those
    into own nodes, as edge_* have a row for each. Pickled data is of the class itself."""

    def num_edges(self):
        graph = self.edge_index
        return graph.num_own_edges if isinstance(graph, Graph) else cls.num_edges.fget(self)

    def plain_state(self, protocol):
        plain = copy.copy(self)
        object.__setattr__(plain, "__class__", cls)
        return plain.__reduce_ex__(protocol)

    return type(cls.__name__, (cls,), {"__module__": cls.__module__, "__reduce_ex__": plain_state,
                                       "num_edges": property(num_edges, doc=cls.num_edges.__doc__)})


def _copied(data):
    """Returns a shallow copy of the data, and its attributes by name."""
    if not hasattr(data, "edge_index"):
        raise TypeError(
            f"data is a {type(data).__name__} without edge_index; give a "
            "torch_geometric.data.Data, or a plait.Graph"
        )
    copied = copy.copy(data)
    return copied, dict(copied.to_dict() if hasattr(copied, "to_dict") else vars(copied))


def _take_matrix(fields):
    """Puts the edges of adj_t, if there are no others, in place of it among the attributes, and returns them."""
    if fields.get("edge_index") is not None:
        return None
    if fields.get("adj_t") is None:
        raise ValueError("data has no edge_index; set data.edge_index to a 2 x E tensor")
    edges = edges_of_adj_t(fields.pop("adj_t"))
    if bool((edges.index[0] == edges.index[1]).any()):
        warnings.warn("data.adj_t has loops, which count as those of an edge_index: GCNConv and others that add loops "
                      "keep them, where PyTorch Geometric's add another one to those of a sparse tensor", stacklevel=4)
    fields["edge_index"] = edges.index
    return edges


def _links_of(fields, nodes):
    """Returns the names of attributes that list links, as RandomLinkSplit makes them: pairs of nodes (2, M), and a
    label for each. Raises ValueError for ids out of range."""
    links = set()
    for name, value in fields.items():
        is_list = isinstance(value, torch.Tensor) and value.dim() == 2 and value.size(0) == 2
        if not (is_list and name.endswith("label_index") and value.dtype in (torch.int32, torch.int64)):
            continue
        least, most = (int(bound) for bound in value.aminmax()) if value.numel() else (0, 0)
        if least < 0 or most >= max(nodes, 1):
            raise ValueError(f"data.{name} has the id {least if least < 0 else most}, which is no node; ids are 0.."
                             f"{nodes - 1}")
        labels = fields.get(name.removesuffix("_index"))
        links.add(name)
        if isinstance(labels, torch.Tensor) and labels.shape[:1] == value.shape[1:]:
            links.add(name.removesuffix("_index"))
    return links


def _is_ambiguous(name, value, data, edges):
    """Returns whether rows may be of nodes or of edges, because there are equally many of both."""
    known = name in ("x", "y", "pos", "z", "batch", "original_ids") or name.startswith(("edge_", "node_"))
    return (not known and not name.endswith("_mask") and isinstance(value, torch.Tensor)
            and value.dim() > 0 and value.size(0) == edges == number_of_nodes(data))


def _lists_nodes(name, value, data, edges):
    """Returns whether an attribute may list nodes by their ids."""
    is_list = isinstance(value, torch.Tensor) and value.dim() == 1 and value.numel() > 1
    if not is_list or value.dtype not in (torch.int32, torch.int64) or name == "y":
        return False
    nodes = number_of_nodes(data)
    return value.numel() not in (nodes, edges) and int(value.min()) >= 0 and int(value.max()) < nodes


def number_of_nodes(data):
    """Returns the number of nodes of data that is not spread yet."""
    return data.num_nodes if hasattr(data, "num_nodes") else data.x.size(0)


def _number_of_edges(fields):
    index = fields.get("edge_index")
    return index.size(1) if isinstance(index, torch.Tensor) and index.dim() == 2 else None


def _refuse_others(data, fields, links, strict):
    """Removes attributes that need the whole graph, with a warning; raises if `strict`. Attributes
    edge_* with one row per edge are kept, and those named in `links`."""
    edges = _number_of_edges(fields)

    def is_kept(name, value):
        if value is None or name in ("edge_index", "edge_weight") or name in links:
            return True
        if "index" in name or "idx" in name or name.startswith("adj"):
            return False
        if name in ("batch", "ptr"):
            return not isinstance(value, torch.Tensor) or value.unique().numel() <= 1
        if not name.startswith("edge_"):
            return True
        return isinstance(value, torch.Tensor) and value.dim() > 0 and value.size(0) == edges

    others = [name for name, value in fields.items() if not is_kept(name, value)]
    others += [name for name, value in fields.items() if name not in others and name not in links
               and (_is_ambiguous(name, value, data, edges) or _lists_nodes(name, value, data, edges))]
    if not others:
        return
    text = (
        f"data has {', '.join(others)}, which a rank that has a part of the nodes cannot use; "
        "weights of edges go into data.edge_weight, lists of nodes become masks or stay outside of the data, "
        "where plait.gather reads their rows, lists of links (2, M) are kept as data.edge_label_index, and the "
        "rest must be deleted"
    )
    if strict:
        raise NotImplementedError(f"{text} (or left out, by strict=False)")
    warnings.warn(f"{text}; left out", stacklevel=4)
    for name in others:
        delattr(data, name)
        del fields[name]


def _require_same(tensors, links):
    """Raises ValueError, on every rank, unless all pass the same tensors."""
    described = {name: _described(value) for name, value in tensors.items()}
    of_links = {name: described.pop(name) for name in sorted(links)}
    require_equal("data", {**described, "the lists of links": ", ".join(of_links)})
    if links:
        require_equal("links (call torch_geometric.seed_everything before RandomLinkSplit draws them)", of_links)


def _described(tensor):
    return f"{tensor.dtype}{list(tensor.shape)} {fingerprint(tensor)}"


def _of_own_edges(graph, tensor):
    """Returns the rows of edges into own nodes, in the order of the whole graph's edges."""
    return tensor[own_edges(graph).to(tensor.device)]


def _own(graph, tensor):
    """Returns own rows of a tensor with one row per node; for masks of several splits, (splits,
    nodes), own columns; other tensors unchanged."""
    nodes = graph.num_nodes
    if tensor.dim() > 0 and tensor.size(0) == nodes:
        return graph.own(tensor)
    if tensor.dim() == 2 and tensor.size(1) == nodes and tensor.dtype == torch.bool:
        return graph.own(tensor.t()).t()
    return tensor

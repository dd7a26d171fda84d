"""Code that layers share: options of message passing, linear maps, and the graph argument."""

import math

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from plait._adjacency import adjacency
from plait._inputs import as_edges, as_tensor
from plait._learnt_weights import LearntAdjacency
from plait.graph import Graph
from plait.reduce import require_shared
from plait.world import world_size


class GlorotLinear(torch.nn.Linear):
    """x W^T with W drawn uniformly from +-sqrt(6 / (in + out)) (Glorot and Bengio, 2010)."""

    def reset_parameters(self):
        if self.weight.numel() > 0:
            glorot(self.weight)


class LazyGlorotLinear(torch.nn.LazyLinear):
    """A GlorotLinear whose input width is found at the first call."""

    cls_to_become = GlorotLinear

    def reset_parameters(self):
        if not self.has_uninitialized_params():
            GlorotLinear.reset_parameters(self)


def glorot(weight):
    bound = math.sqrt(6 / (weight.size(-2) + weight.size(-1)))
    torch.nn.init.uniform_(weight, -bound, bound)


def linear(in_channels, out_channels, bias):
    """Returns a torch.nn.Linear; with in_channels -1 the width is found at the first call."""
    if in_channels < 0:
        return torch.nn.LazyLinear(out_channels, bias=bias)
    return torch.nn.Linear(in_channels, out_channels, bias=bias)


def sum_of_products(x, lin, aggregate):
    """Returns aggregate(x W^T) + b for a linear map that is_plain. Rows are padded by columns of 0
    to a multiple of 16 bytes, at which products and sums are fastest, and the padding is cut off
    again."""
    weight, width = lin.weight, lin.weight.size(0)
    missing = -width % 4 if width > 2 else 0
    if missing:
        weight = torch.nn.functional.pad(weight, (0, 0, 0, missing))
    y = aggregate(torch.nn.functional.linear(x, weight))[:, :width]
    return y.contiguous() if lin.bias is None else y + lin.bias


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_plain(lin):
    """Returns whether a call of the linear map is just the product with its weight: it has no hooks
    (as pruning adds), no parametrization, and no wrapper in its place."""
    kinds = (torch.nn.Linear, GlorotLinear)
    return type(lin) in kinds and not any(getattr(lin, name) for name in _HOOKS)


def settle(lin, x):
    """Lets a lazy linear map become a plain one, of the width of x, so that its first product is
    computed in the same way as all later ones."""
    if isinstance(lin, LazyModuleMixin):
        lin(x[:0])


def glorot_linear(in_channels, out_channels):
    """Returns a GlorotLinear without bias; with in_channels -1 the width is found at the first
    call."""
    if in_channels < 0:
        return LazyGlorotLinear(out_channels, bias=False)
    return GlorotLinear(in_channels, out_channels, bias=False)


class GraphLayer(torch.nn.Module):
    """A layer of message passing from sources to targets."""

    # The options of PyTorch Geometric's MessagePassing, with the values that layers support.
    _MESSAGE_PASSING = {"aggr": ("add", "sum"), "flow": ("source_to_target",), "node_dim": (-2, 0)}

    _USES_WEIGHTS = False

    def _check_message_passing(self, options):
        for name, value in options.items():
            allowed = self._MESSAGE_PASSING.get(name, ())
            if value not in allowed:
                remedy = f"use {name}={allowed[0]!r}" if allowed else "leave it out"
                raise self._not_supported(f"{name}={value!r}", remedy)

    def _check_in_channels(self, in_channels):
        if not isinstance(in_channels, int):
            raise self._not_supported(
                f"in_channels={in_channels!r}", "use one width, and one x for sources and targets"
            )

    def _give_bias(self, width, wanted):
        bias = torch.nn.Parameter(torch.empty(width)) if wanted else None
        self.register_parameter("bias", bias)

    def _not_supported(self, option, remedy):
        return NotImplementedError(f"{type(self).__name__} does not support {option}; {remedy}")

    def _checked(self, x):
        """Returns x as a tensor of two dimensions."""
        if isinstance(x, (tuple, list)):
            raise ValueError(f"x is a {type(x).__name__}; give one tensor (N, in_channels)")
        x = as_tensor("x", x, "give one tensor (N, in_channels)")
        if x.dim() != 2:
            raise ValueError(f"x has shape {tuple(x.shape)}, but must have (N, in_channels)")
        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"x is on {x.device}; move it to the CPU or to a GPU of CUDA")
        wide = getattr(self, "in_channels", -1)
        if wide >= 0 and x.size(1) != wide:
            raise ValueError(
                f"x has {x.size(1)} columns, but this {type(self).__name__} has "
                f"in_channels={wide}; give x of that width, or make the layer with "
                f"in_channels={x.size(1)}"
            )
        return x

    def _check_size(self, size, num_nodes):
        if size is not None and tuple(size) != (num_nodes, num_nodes):
            raise self._not_supported(f"size={size!r}", "leave it out, and give all nodes one x")

    @torch.compiler.disable
    def _adjacency(self, x, edge_index, edge_weight=None, loop_weights=None):
        """Returns the graph of the layer's argument edge_index, for x (on several ranks, own rows)
        and on the device of x. With `loop_weights`, every node has one loop; its weight is the
        first of the two if edges have no weights, else the second."""
        require_shared(self)
        num_nodes, device = x.size(0), x.device
        edges = as_edges(edge_index, edge_weight)
        partition = None
        if isinstance(edge_index, Graph):
            edge_index.check_rows(num_nodes)
            num_nodes, partition = edges.num_nodes, edge_index.partition
        elif edges.num_nodes is not None and edges.num_nodes != num_nodes:
            raise ValueError(
                f"x has {num_nodes} rows, but the graph has {edges.num_nodes} nodes; give one row "
                "for each"
            )
        loop_weight = loop_weights and loop_weights[edges.weight is not None]
        if edges.weight is None or not (torch.is_grad_enabled() and edges.weight.requires_grad):
            return adjacency(edges.index, edges.weight, num_nodes, loop_weight, partition, device)
        if not self._USES_WEIGHTS:
            return adjacency(edges.index, None, num_nodes, loop_weight, partition, device)
        if world_size() > 1:
            raise self._not_supported("a gradient of edge_weight on several ranks", "detach it")
        return LearntAdjacency(edges.index, edges.weight, num_nodes, loop_weight)

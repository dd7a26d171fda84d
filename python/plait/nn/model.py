"""The models of `plait train`, made of the layers of this package."""

import dataclasses
import math
import numbers

import torch
from torch.nn import functional
from torch_geometric.nn.dense.linear import Linear

from plait._edges.inputs import as_tensor, whole_number
from plait.nn.gat_conv import GATConv
from plait.nn.gatv2_conv import GATv2Conv
from plait.nn.gcn_conv import GCNConv
from plait.nn.gin_conv import GINConv
from plait.nn.sage_conv import SAGEConv
from plait.nn.transformer_conv import TransformerConv


def _check_type(field, value):
    """Raises TypeError for a setting of another type, and ValueError for a number that no checkpoint can hold."""
    name = field.name
    if field.type is bool and not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; use True or False")
    if field.type is int:
        whole_number(name, value, 2**64 - 1 if name == "seed" else 2**63 - 1)
    if field.type is float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(f"{name} is {value!r}, not a number")
        if not math.isfinite(value):
            raise ValueError(f"{name} is {value}, not a finite number")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The settings of a model: the options of `plait train` under their names, and the widths of x
    (inputs) and of the scores (outputs)."""

    kind: str  # gcn, mlp, sage, gin, gat, gatv2 or transformer
    inputs: int
    outputs: int
    layers: int = 2
    hidden: int = 16
    dropout: float = 0.0  # on the input of every layer, and on attention
    norm: str = "none"  # batch, layer
    activation: str = "relu"  # elu
    residual: bool = False
    heads: int = 1
    output_heads: int = 1
    slope: float = 0.2
    aggregation: str = "mean"  # max, min
    seed: int = 0
    task: str = "single-label"  # multi-label
    pool: str = "none"  # only the program has models of sets of graphs
    normalize: str = "none"  # of x: rows (divided by their sum), unit (by their length)

    def __post_init__(self):
        allowed = {"kind": tuple(_CONVS), "norm": ("none", *_NORMS),
                   "activation": ("relu", "elu"), "aggregation": ("mean", "max", "min"),
                   "task": ("single-label", "multi-label"), "normalize": ("rows", "unit", "none")}
        if self.pool != "none":
            raise ValueError(f"pool is {self.pool!r}, of a model of sets of graphs, which only the program has: "
                             "use plait infer")
        for field in dataclasses.fields(self):
            _check_type(field, getattr(self, field.name))
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; use 0 or more")
        for name, words in allowed.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is {getattr(self, name)!r}; use {', '.join(words)}")
        for name in ("inputs", "outputs", "layers", "hidden", "heads", "output_heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; use 1 or more")
        if self.kind in _ATTENTION and self.layers > 1 and self.hidden % self.heads:
            raise ValueError(
                f"hidden={self.hidden} cannot be shared by {self.heads} heads; use a multiple"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; use 0 or more, and less than 1")

    def widths(self):
        """Returns the widths of x, of the output of each layer but the last, and of the scores."""
        return [self.inputs, *[self.hidden] * (self.layers - 1), self.outputs]


def normalized(x, normalize):
    """Returns the rows of x, (N, width), "rows": divided by their sum, "unit": by their Euclidean length, unless
    that is 0; "none": x itself."""
    if normalize == "none":
        return x
    x = as_tensor("x", x, "give one tensor (N, inputs)")
    if x.layout != torch.strided:
        raise ValueError("x is sparse, but its rows are to be normalised; give x.to_dense()")
    wide = x.double()
    size = wide.sum(1, keepdim=True) if normalize == "rows" else wide.square().sum(1, keepdim=True).sqrt()
    return x * torch.where(size == 0, 0, 1 / size).to(x.dtype)


class _BatchNorm(torch.nn.Module):
    """Batch norm whose parameters have the names of PyTorch Geometric's."""

    def __init__(self, width):
        super().__init__()
        self.module = torch.nn.BatchNorm1d(width)

    def forward(self, x):
        return self.module(x)


_NORMS = {"batch": _BatchNorm, "layer": torch.nn.LayerNorm}


class _Linear(torch.nn.Module):
    """A layer that does not use the graph."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = Linear(in_channels, out_channels, bias=False, weight_initializer="glorot")
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))

    def forward(self, x, graph):
        return self.lin(x) + self.bias


class _Perceptron(torch.nn.Module):
    """Two linear maps, with the model's norm and activation between them."""

    def __init__(self, config, in_channels, out_channels):
        super().__init__()
        self.lins = torch.nn.ModuleList([torch.nn.Linear(in_channels, out_channels),
                                         torch.nn.Linear(out_channels, out_channels)])
        self.norms = torch.nn.ModuleList([_NORMS[n](out_channels) for n in _norms_of(config)])
        self.activation = config.activation

    def forward(self, x):
        h = self.lins[0](x)
        for norm in self.norms:
            h = norm(h)
        return self.lins[1](getattr(functional, self.activation)(h))


def _norms_of(config):
    return [] if config.norm == "none" else [config.norm]


def _attention(config, in_channels, out_channels, is_last):
    conv, of_kind = _ATTENTION[config.kind]
    heads = config.output_heads if is_last else config.heads
    return conv(in_channels, out_channels if is_last else out_channels // heads, heads,
                concat=not is_last, dropout=config.dropout, **of_kind(config))


# Kind -> its layer, and a function of config that makes arguments which others lack.
_ATTENTION = {
    "gat": (GATConv, lambda config: {"negative_slope": config.slope}),
    "gatv2": (GATv2Conv, lambda config: {"negative_slope": config.slope}),
    "transformer": (TransformerConv, lambda config: {}),
}


# Kind -> function of (config, input width, output width, whether it is the last) that makes a
# layer.
_CONVS = {
    "gcn": lambda config, wide, out, is_last: GCNConv(wide, out),
    "mlp": lambda config, wide, out, is_last: _Linear(wide, out),
    "sage": lambda config, wide, out, is_last: SAGEConv(wide, out, config.aggregation),
    "gin": lambda config, wide, out, is_last: GINConv(_Perceptron(config, wide, out)),
    **dict.fromkeys(_ATTENTION, _attention),
}


class Model(torch.nn.Module):
    """A model that `plait train` trains; its weights have the names of a checkpoint.

    Args:
        config: a plait.nn.ModelConfig. Its `normalize` is applied to x in each call, as the program does.

    Dropout draws different random numbers than the program.
    """

    def __init__(self, config):
        super().__init__()
        if not isinstance(config, ModelConfig):
            raise TypeError(f"config is {config!r}; give a plait.nn.ModelConfig")
        self.config = config
        widths = config.widths()
        pairs = list(zip(widths, widths[1:]))
        self.convs = torch.nn.ModuleList(
            _CONVS[config.kind](config, wide, out, layer + 1 == config.layers)
            for layer, (wide, out) in enumerate(pairs))
        self.norms = torch.nn.ModuleList(
            _NORMS[norm](wide) for wide in widths[1:-1] for norm in _norms_of(config))
        self.residuals = torch.nn.ModuleDict({
            str(layer): torch.nn.Linear(wide, out, bias=False)
            for layer, (wide, out) in enumerate(pairs) if config.residual and wide != out})

    def forward(self, x, graph):
        """Args:
            x: (N, inputs), float32, on the CPU or a GPU, as the graph's file has it.
            graph: a plait.Graph, or any object that a layer accepts as edge_index.

        Returns (N, outputs): the scores of each node. Raises ValueError for x of another width.
        """
        if getattr(x, "shape", None) is None or len(x.shape) != 2 or x.shape[1] != self.config.inputs:
            given = f"a {type(x).__name__}" if getattr(x, "shape", None) is None else f"of shape {tuple(x.shape)}"
            raise ValueError(f"x is {given}, but the model reads (nodes, {self.config.inputs}) features")
        x = normalized(x, self.config.normalize)
        for layer, conv in enumerate(self.convs):
            x = functional.dropout(x, self.config.dropout, self.training)
            h = conv(x, graph)
            if self.config.residual:
                h = h + (self.residuals[str(layer)](x) if str(layer) in self.residuals else x)
            if layer + 1 == len(self.convs):
                return h
            if self.norms:
                h = self.norms[layer](h)
            x = getattr(functional, self.config.activation)(h)

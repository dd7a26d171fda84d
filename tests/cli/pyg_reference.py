"""PyG's models with the settings of plait train, in double precision: the oracle of its scores,
gradients and loss curves."""

import contextlib
import ctypes
import dataclasses

import torch
from torch.nn import functional
from torch_geometric.nn import MLP, GATConv, GATv2Conv, TransformerConv, global_add_pool, global_mean_pool, models

from gcn_reference import load_archive

torch.set_num_threads(1)  # these models are too small for more

_TRIM, _MAPPED = -1, -3  # of mallopt(), in <malloc.h>


@contextlib.contextmanager
def kept_memory():
    """Within this context, the C library keeps memory that a step frees for the next step. Else it maps large
    tensors anew each time, and their pages take as long as the step."""
    c = ctypes.CDLL(None)
    grown = {_TRIM: 64 << 20, _MAPPED: 32 << 20}  # the most to which the C library lets both grow by itself
    for name in grown:
        c.mallopt(name, 1 << 30)
    try:
        yield
    finally:
        for name, size in grown.items():
            c.mallopt(name, size)
        c.malloc_trim(0)


ATTENTION = {"gat": GATConv, "gatv2": GATv2Conv, "transformer": TransformerConv}  # kinds that have heads

NORMS = {"none": {}, "batch": {"norm": "batch_norm"},
         "layer": {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}}


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of plait train, of which all are given that the model reads."""

    model: str
    hidden: int
    layers: int = 3
    heads: int = 1
    output_heads: int = 1
    aggregation: str = "mean"
    norm: str = "none"
    activation: str = "relu"
    residual: bool = False
    pool: str = "none"

    def options(self):
        of_kinds = {"heads": ATTENTION, "output_heads": ATTENTION, "aggregation": {"sage"}}
        unread = {name for name, kinds in of_kinds.items() if self.model not in kinds}
        if self.pool == "none":
            unread |= {"pool"} | ({"hidden", "heads", "norm", "activation"} if self.layers == 1 else set())
        words = [[f"--{name.replace('_', '-')}", str(value)]
                 for name, value in dataclasses.asdict(self).items() if name not in {"residual", *unread}]
        return sum(words, []) + ["--residual"] * self.residual

    def pyg_model(self, inputs, classes):
        if self.pool != "none":
            return Pooled(self, inputs, classes).double()
        return self.vertex_model(inputs, classes).double()

    def vertex_model(self, inputs, classes):
        common = {"in_channels": inputs, "hidden_channels": self.hidden,
                  "num_layers": self.layers, "out_channels": classes, "act": self.activation,
                  **NORMS[self.norm]}
        match self.model:
            case "gcn":
                model = models.GCN(**common)
            case "sage":
                model = models.GraphSAGE(**common, aggr=self.aggregation)
            case "gin":
                model = models.GIN(**common)
            case _:
                model = models.GAT(**common, heads=self.heads)
                conv = ATTENTION[self.model]
                widths = [inputs, *[self.hidden] * (self.layers - 1)]
                for layer, width in enumerate(widths[:-1]):
                    model.convs[layer] = conv(width, self.hidden // self.heads, self.heads)
                model.convs[-1] = conv(widths[-1], classes, heads=self.output_heads, concat=False)
        return Residual(model, self, inputs, classes) if self.residual else model


class Residual(torch.nn.Module):
    """A model of PyG in which each layer's input is added to its output."""

    def __init__(self, model, settings, inputs, classes):
        super().__init__()
        self.convs, self.norms, self.act = model.convs, model.norms, model.act
        widths = [inputs, *[settings.hidden] * (settings.layers - 1), classes]
        self.residuals = torch.nn.ModuleDict({
            str(layer): torch.nn.Linear(wide, out, bias=False)
            for layer, (wide, out) in enumerate(zip(widths, widths[1:])) if wide != out})

    def forward(self, x, edge_index):
        for layer, (conv, normalise) in enumerate(zip(self.convs, self.norms)):
            projected = self.residuals[str(layer)](x) if str(layer) in self.residuals else x
            x = conv(x, edge_index) + projected
            if layer + 1 < len(self.convs):
                x = self.act(normalise(x))
        return x


class Pooled(torch.nn.Module):
    """Layers that are all followed by norm and activation, a pool over each graph, and PyG's MLP of
    two layers, as in its example mutag_gin.py."""

    def __init__(self, settings, inputs, classes):
        super().__init__()
        hidden = settings.hidden
        layers = {"gin": models.GIN, "gcn": models.GCN, "sage": models.GraphSAGE}[settings.model](
            inputs, hidden, settings.layers, act=settings.activation, jk="last",
            **NORMS[settings.norm])
        self.convs, self.norms, self.act = layers.convs, layers.norms, layers.act
        self.mlp = MLP([hidden, hidden, classes], norm=None, act=settings.activation)
        self.pool = {"sum": global_add_pool, "mean": global_mean_pool}[settings.pool]

    def forward(self, x, edge_index, graph_id, graphs):
        for conv, normalise in zip(self.convs, self.norms):
            x = self.act(normalise(conv(x, edge_index)))
        return self.mlp(self.pool(x, graph_id, size=graphs))


class Graph:
    """A graph archive as PyG takes it; weights of edges are left out. Vertices have several
    labels if y has two dimensions; it is a set of graphs if graph_id says so."""

    def __init__(self, archive):
        arrays = load_archive(archive)
        self.x = torch.tensor(arrays["x"])
        self.edge_index = torch.tensor(arrays["edge_index"].astype("int64"))
        self.y = torch.tensor(arrays["y"].astype("int64"))
        self.train = torch.tensor(arrays["train"])
        self.classes = self.y.shape[1] if self.y.dim() == 2 else int(self.y.max()) + 1
        self.set = ()
        if "graph_id" in arrays:
            self.set = (torch.tensor(arrays["graph_id"].astype("int64")), len(self.y))

    def model(self, settings, tensors):
        """Returns PyG's model with the weights and buffers of a checkpoint, which must have PyG's names."""
        model = settings.pyg_model(self.x.shape[1], self.classes)
        model.load_state_dict({name: torch.tensor(value) for name, value in tensors.items()
                               if not name.startswith("resume.")}, strict=True)
        return model

    def scores(self, model):
        return model(self.x, self.edge_index, *self.set)

    def loss(self, model):
        scores, y = self.scores(model)[self.train], self.y[self.train]
        if y.dim() == 2:
            return functional.binary_cross_entropy_with_logits(scores, y.to(scores.dtype))
        return functional.cross_entropy(scores, y)


def decayed(settings, name):
    """L2 acts on the layers; on the last one only with attention or if a head follows."""
    last = settings.layers - (0 if settings.model in ATTENTION or settings.pool != "none" else 1)
    return any(name.startswith(f"convs.{layer}.") for layer in range(last))


def train(graph, settings, model, *, epochs, rate, decay):
    """Returns the loss of every epoch."""
    named = list(model.named_parameters())
    adam = torch.optim.Adam([
        {"params": [p for name, p in named if decayed(settings, name) == wanted],
         "weight_decay": decay if wanted else 0.0} for wanted in (True, False)], lr=rate)
    losses = []
    model.train()
    for _ in range(epochs):
        adam.zero_grad()
        loss = graph.loss(model)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses

"""GraphSAGE."""

from torch.nn import functional

from plait.nn._layer import GraphLayer, is_plain, linear, settle, sum_of_products


class SAGEConv(GraphLayer):
    """Computes W_l (mean of the neighbours) + b + W_r x (Hamilton, Ying and Leskovec, NeurIPS 2017,
    where neighbours and node are concatenated instead of added).

    Arguments, parameter names and results are those of torch_geometric.nn.SAGEConv.

    Args:
        in_channels: width of x; -1: found at the first call.
        out_channels: width of the result.
        aggr: "mean" of the neighbours, their "max" or "min" column by column, or their "sum" ("add"). It is
            0 for nodes without edges.
        normalize: divide each row of the result by its Euclidean length.
        root_weight: False: omit W_r x.
        project: first map neighbours by relu(W x + b) of the same width (equation 3 of the paper).
        bias: whether to add b.

    Raises NotImplementedError for other aggregations and options of PyTorch Geometric.
    """

    _OPS = {"mean": "mean", "max": "max", "min": "min", "add": "sum", "sum": "sum"}

    def __init__(self, in_channels, out_channels, aggr="mean", normalize=False, root_weight=True,
                 project=False, bias=True, **kwargs):
        super().__init__()
        self._check_message_passing(kwargs)
        self._check_in_channels(in_channels)
        if not isinstance(aggr, str) or aggr not in self._OPS:
            raise self._not_supported(f"aggr={aggr!r}", "use 'mean', 'max', 'min' or 'sum'")
        if project and in_channels < 0:
            raise ValueError("project=True needs the width of x; give in_channels")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.aggr = aggr
        self.normalize = normalize
        self.root_weight = root_weight
        self.project = project
        if project:
            self.lin = linear(in_channels, in_channels, bias=True)
        self.lin_l = linear(in_channels, out_channels, bias=bias)
        if root_weight:
            self.lin_r = linear(in_channels, out_channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new weights."""
        for child in self.children():
            child.reset_parameters()

    def forward(self, x, edge_index, size=None):
        """Args:
            x: (N, in_channels), float32, on the CPU or a GPU.
            edge_index: as for GCNConv; edge weights are not used.

        Returns (N, out_channels), float32, differentiable by x and the parameters.
        """
        x = self._checked(x)
        self._check_size(size, x.size(0))
        graph = self._adjacency(x, edge_index)
        out = self._of_neighbours(self.lin(x).relu() if self.project else x, graph)
        if self.root_weight:
            out = out + self.lin_r(x)
        return functional.normalize(out, dim=-1) if self.normalize else out

    def _of_neighbours(self, x, graph):
        op, lin = self._OPS[self.aggr], self.lin_l
        settle(lin, x)
        # The mean of rows times W equals the mean of the products, so the narrower rows are summed.
        if op in ("max", "min") or not is_plain(lin) or lin.out_features > lin.in_features:
            return lin(graph.aggregate(x, op))
        return sum_of_products(x, lin, lambda rows: graph.aggregate(rows, op))

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, aggr={self.aggr}"

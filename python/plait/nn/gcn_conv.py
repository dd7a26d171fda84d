"""Graph convolution."""

import torch

from plait.nn._layer import GraphLayer, glorot_linear, is_plain, settle, sum_of_products


class GCNConv(GraphLayer):
    """Graph convolution, D^-1/2 (A + I) D^-1/2 X W^T + b (Kipf and Welling, ICLR 2017, equation 2).

    D is the diagonal of the row sums of A + I. A node that has a loop keeps it and gets no other.
    Arguments, parameter names and results are those of torch_geometric.nn.GCNConv.

    Args:
        in_channels: width of x; -1: found at the first call.
        out_channels: width of the result.
        improved: A + 2I instead of A + I. As in PyTorch Geometric 2.8, it has an effect only if
            edges have weights.
        cached: keep the normalised graph of the first call and use it from then on, whatever graph
            is passed. Rarely needed: see forward.
        add_self_loops: None: the value of `normalize`.
        normalize: False: the plain sum, X' = A X W^T + b, weighted if edges have weights.
        bias: whether to add b.

    Raises ValueError for add_self_loops without normalize, and NotImplementedError for other
    options of PyTorch Geometric's message passing.
    """

    _USES_WEIGHTS = True

    def __init__(
        self,
        in_channels,
        out_channels,
        improved=False,
        cached=False,
        add_self_loops=None,
        normalize=True,
        bias=True,
        **kwargs,
    ):
        super().__init__()
        self._check_message_passing(kwargs)
        self._check_in_channels(in_channels)
        if add_self_loops is None:
            add_self_loops = normalize
        if add_self_loops and not normalize:
            raise ValueError(
                "add_self_loops=True needs normalize=True; put the loops into edge_index"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.improved = improved
        self.cached = cached
        self.add_self_loops = add_self_loops
        self.normalize = normalize
        self.lin = glorot_linear(in_channels, out_channels)
        self._give_bias(out_channels, bias)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new weights, sets the bias to 0 and forgets the cached graph."""
        self.lin.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)
        self._cached_adjacency = None

    def forward(self, x, edge_index, edge_weight=None):
        """Args:
            x: (N, in_channels), float32, on the CPU or a GPU.
            edge_index: (2, E) integers, sources in row 0 and targets in row 1; or a plait.Graph of
                N nodes, or any object from which one can be made.
            edge_weight: (E,) float32; None with a plait.Graph, which has its own.

        Returns (N, out_channels), float32, differentiable by x, the parameters and edge_weight.

        The graph that is made from edge_index is kept as long as that tensor lives unchanged, so
        calls with the same tensors convert it once, in every layer. Writing to its memory behind
        torch's back, through NumPy or .data, is not noticed. If edge_weight requires a gradient,
        the graph is made at every call.
        """
        x = self._checked(x)
        settle(self.lin, x)
        found = self._cached_adjacency
        if found is None:
            found = self._adjacency(x, edge_index, edge_weight, self._loop_weights())
            if self.cached:
                self._cached_adjacency = found
        op = "gcn" if self.normalize else "weighted"
        # The narrower rows go through the aggregation.
        if self.out_channels > self.in_channels >= 0:
            out = self.lin(found.aggregate(x, op))
        elif is_plain(self.lin):
            out = sum_of_products(x, self.lin, lambda rows: found.aggregate(rows, op))
        else:
            out = found.aggregate(self.lin(x), op)
        return out if self.bias is None else out + self.bias

    def _loop_weights(self):
        return (1.0, 2.0 if self.improved else 1.0) if self.add_self_loops else None

    def __getstate__(self):
        # The C++ graph is not copied or pickled with the layer.
        return {**self.__dict__, "_cached_adjacency": None}

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}"

"""Graph attention."""

import torch

from plait.nn._layer import GraphLayer, glorot, glorot_linear


class GATConv(GraphLayer):
    """Attention over neighbours and the node itself (Velickovic et al., ICLR 2018).

    Head k of node i is the sum of a_e W_k x[j] over its edges e from j, where a_e is the softmax
    over the edges of i of leaky_relu(<att_src_k, W_k x[j]> + <att_dst_k, W_k x[i]>). Arguments,
    parameter names and results are those of torch_geometric.nn.GATConv.

    Args:
        in_channels: width of x; -1: found at the first call.
        out_channels: width of one head.
        heads: number of heads.
        concat: True: concatenate the heads, giving the width heads * out_channels. False: take
            their mean.
        negative_slope: slope of leaky_relu below 0.
        dropout: share of attention that is dropped in training. One number per call from torch's
            generator determines the dropped entries, so torch.manual_seed repeats them. PyTorch
            Geometric drops other entries. Parallel edges are dropped together.
        add_self_loops: give each node one loop instead of its own loops.
        bias: whether to add a bias.
        residual: add x, times a matrix.

    Raises NotImplementedError for edge_dim and other options of PyTorch Geometric.
    """

    def __init__(self, in_channels, out_channels, heads=1, concat=True, negative_slope=0.2,
                 dropout=0.0, add_self_loops=True, edge_dim=None, fill_value="mean", bias=True,
                 residual=False, **kwargs):
        super().__init__()
        self._check_message_passing(kwargs)
        self._check_in_channels(in_channels)
        if edge_dim is not None:
            raise self._not_supported(
                f"edge_dim={edge_dim!r}", "leave it out: attention is by nodes alone"
            )
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout is {dropout}; use 0 or more, and less than 1")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.heads = heads
        self.concat = concat
        self.negative_slope = negative_slope
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.residual = residual
        width = out_channels * (heads if concat else 1)
        self.lin = glorot_linear(in_channels, heads * out_channels)
        self.att_src = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = torch.nn.Parameter(torch.empty(1, heads, out_channels))
        if residual:
            self.res = glorot_linear(in_channels, width)
        else:
            self.register_parameter("res", None)
        self._give_bias(width, bias)
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new weights, and sets the bias to 0."""
        self.lin.reset_parameters()
        if self.res is not None:
            self.res.reset_parameters()
        glorot(self.att_src)
        glorot(self.att_dst)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x, edge_index, edge_attr=None, size=None, return_attention_weights=None):
        """Args:
            x: (N, in_channels), float32, on the CPU or a GPU.
            edge_index: as for GCNConv; edge weights are not used.

        Returns (N, heads * out_channels), or (N, out_channels) unless concat; float32,
        differentiable by x and the parameters.
        """
        x = self._checked(x)
        self._check_size(size, x.size(0))
        if edge_attr is not None:
            raise self._not_supported("edge_attr", "leave it out: attention is by nodes alone")
        if return_attention_weights:
            raise self._not_supported("return_attention_weights", "attention is not stored")
        loops = (1.0, 1.0) if self.add_self_loops else None
        graph = self._adjacency(x, edge_index, loop_weights=loops)
        h = self.lin(x)
        by_head = h.view(len(x), self.heads, self.out_channels)
        scores = [(by_head * score).sum(-1) for score in (self.att_src, self.att_dst)]
        y = graph.attend(h, torch.cat(scores, 1), self.negative_slope,
                         self.dropout if self.training else 0.0)
        if not self.concat:
            y = y.view(len(x), self.heads, self.out_channels).mean(1)
        if self.res is not None:
            y = y + self.res(x)
        return y if self.bias is None else y + self.bias

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"

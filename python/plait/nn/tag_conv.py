"""Topology-adaptive graph convolution."""

from torch_geometric.nn.conv.tag_conv import TAGConv as theirs

from plait.nn._fast_conv import FastConv
from plait.nn.gcn_conv import normalised

__all__ = ["TAGConv"]


class TAGConv(FastConv, theirs):
    """The sum over k = 0 .. K of W_k times GCN's sum, k times, without loops (Du et al., 2017), as
    torch_geometric.nn.TAGConv. `edge_index` as for GCNConv."""

    _uses_weights = True

    def _fast(self, x, edge_index, edge_weight=None):
        graph, op = normalised(self, x, edge_index, edge_weight)
        out = self.lins[0](x)
        for lin in self.lins[1:]:
            x = graph.reduce(x, op) if op else graph.aggregate(x, self.aggr_module)
            out = out + lin(x)
        return out if self.bias is None else out + self.bias

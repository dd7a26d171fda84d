"""Simplified graph convolution."""

from torch_geometric.nn.conv.sg_conv import SGConv as theirs

from plait.nn._fast_conv import FastConv
from plait.nn.gcn_conv import normalised

__all__ = ["SGConv"]


class SGConv(FastConv, theirs):
    """GCN's sum, K times, and one linear map (Wu et al., ICML 2019), as torch_geometric.nn.SGConv.
    `edge_index` as for GCNConv."""

    _uses_weights = True

    def _fast(self, x, edge_index, edge_weight=None):
        if self._cached_x is not None:
            return self.lin(self._cached_x.detach())
        graph, op = normalised(self, x, edge_index, edge_weight)
        for _ in range(self.K):
            x = graph.reduce(x, op)
        if self.cached and self.K > 0:
            self._cached_x = x
        return self.lin(x)

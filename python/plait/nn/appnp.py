"""Personalised propagation of predictions."""

from torch_geometric.nn.conv.appnp import APPNP as theirs

from plait.nn._fast_conv import FastConv
from plait.nn._slow import Slow
from plait.nn.gcn_conv import normalised

__all__ = ["APPNP"]


class APPNP(FastConv, theirs):
    """K times x' = (1 - alpha) GCN's sum of x' + alpha x (Gasteiger, Bojchevski and Guennemann, ICLR
    2019), as torch_geometric.nn.APPNP. `edge_index` as for GCNConv."""

    _uses_weights = True

    def _fast(self, x, edge_index, edge_weight=None):
        if self.dropout > 0 and self.training:
            raise Slow("dropout of edges")
        graph, op = normalised(self, x, edge_index, edge_weight)
        start = x
        for _ in range(self.K):
            x = graph.reduce(x, op) if op else graph.aggregate(x, self.aggr_module)
            x = (1 - self.alpha) * x + self.alpha * start
        return x

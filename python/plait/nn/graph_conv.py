"""Convolution with weights for the node and for its neighbours."""

from torch_geometric.nn.conv.graph_conv import GraphConv as theirs

from plait.nn._fast_conv import FastConv, pair_of
from plait.nn._linear import linear_of_neighbours
from plait.nn._neighbours import is_linear

__all__ = ["GraphConv"]


class GraphConv(FastConv, theirs):
    """W_1 x + W_2 (sum of the neighbours, weighted by edge_weight) + b (Morris et al., AAAI 2019), as
    torch_geometric.nn.GraphConv. `edge_index` as for GCNConv."""

    _uses_weights = True

    def _fast(self, x, edge_index, edge_weight=None, size=None):
        x, root = pair_of(x)
        graph = self._neighbours((x, root), edge_index, edge_weight, size)
        out = linear_of_neighbours(self.lin_rel, x, lambda rows: graph.aggregate(rows, self.aggr_module),
                                   is_linear(self.aggr_module), sums_first=True)
        return out if root is None else out + self.lin_root(root)

"""Graph isomorphism networks with features of edges."""

from torch_geometric.nn.conv.gin_conv import GINEConv as theirs

from plait._edges.values import relu_sum
from plait.nn._fast_conv import FastConv
from plait.nn._fast_steps import count_targets, features_of_edges
from plait.nn._slow import Slow

__all__ = ["GINEConv"]


class GINEConv(FastConv, theirs):
    """nn((1 + eps) x[i] + the sum of relu(x[j] + e)) (Hu et al., ICLR 2020), as torch_geometric.nn.GINEConv.
    The sum is computed by edge, without a row for each edge but the rows of the edges' features."""

    def _fast_propagate(self, edge_index, size, x, edge_attr):
        source, target = x
        if edge_attr is None:
            raise Slow("edge_attr", "edge_attr=None")
        ends = self._ends(edge_index, source, count_targets(source, target, size))
        of_edges = features_of_edges(edge_attr, edge_index)
        if self.lin is not None:
            of_edges = self.lin(of_edges)
        if of_edges.size(1) != source.size(1):
            raise Slow("edge_attr", "edge_attr of another width")  # one, or a mistake
        return relu_sum(ends, source, of_edges)

"""Dynamic graph attention."""

from torch.nn.functional import dropout
from torch_geometric.nn.conv.gatv2_conv import GATv2Conv as theirs

from plait._edges.values import leaky_scores, softmax, weighted_sum
from plait.nn._fast_conv import FastConv
from plait.nn._fast_steps import features_of_edges
from plait.nn._slow import Slow

__all__ = ["GATv2Conv"]


class GATv2Conv(FastConv, theirs):
    """Attention whose scores are <att_k, leaky_relu(W_l x[j] + W_r x[i] + W_e e)> (Brody et al., ICLR 2022),
    as torch_geometric.nn.GATv2Conv. Scores and sums are computed by edge, without a row for each."""

    def _fast_edge_updater(self, edge_index, size, x, edge_attr=None):
        source, target = x
        if self.att.shape != (1, self.heads, self.out_channels):
            raise Slow("att", f"att of shape {tuple(self.att.shape)}")
        ends = self._ends(edge_index, source, target.size(0))
        of_edges = None
        if edge_attr is not None:
            if self.lin_edge is None:
                raise Slow("edge_attr", "edge_attr without edge_dim")
            edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
            of_edges = self.lin_edge(features_of_edges(edge_attr, edge_index))
            of_edges = of_edges.view(-1, self.heads, self.out_channels)
        scores = leaky_scores(ends, source, target, of_edges, self.att, self.negative_slope)
        return dropout(softmax(ends, scores), self.dropout, self.training)

    def _fast_propagate(self, edge_index, size, x, alpha):
        return weighted_sum(self._ends(edge_index, x[0], x[1].size(0)), x[0], alpha)

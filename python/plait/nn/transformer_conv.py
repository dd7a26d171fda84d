"""Graph transformers."""

import math

from torch.nn.functional import dropout
from torch_geometric.nn.conv.transformer_conv import TransformerConv as theirs

from plait._edges.values import dot_scores, softmax, weighted_sum
from plait.nn._fast_conv import FastConv
from plait.nn._fast_steps import features_of_edges
from plait.nn._slow import Slow

__all__ = ["TransformerConv"]


class TransformerConv(FastConv, theirs):
    """Attention by products of queries and keys (Shi et al., IJCAI 2021; MGG, table 2), as
    torch_geometric.nn.TransformerConv. Products and sums are computed by edge, without a row for each."""

    def _fast_propagate(self, edge_index, size, query, key, value, edge_attr=None):
        # On a spread graph, rows that are read at sources come with the rows of targets.
        key, value = (rows[0] if isinstance(rows, tuple) else rows for rows in (key, value))
        if (edge_attr is None) != (self.lin_edge is None):
            raise Slow("edge_attr", "edge_attr without edge_dim, or edge_dim without edge_attr")
        ends = self._ends(edge_index, key, query.size(0))
        of_edges = None
        if edge_attr is not None:
            of_edges = self.lin_edge(features_of_edges(edge_attr, edge_index))
            of_edges = of_edges.view(-1, self.heads, self.out_channels)
        scores = dot_scores(ends, key, query / math.sqrt(self.out_channels), of_edges)
        self._alpha = softmax(ends, scores)
        alpha = dropout(self._alpha, self.dropout, self.training)
        return weighted_sum(ends, value, alpha, of_edges)

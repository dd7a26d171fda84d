"""Graph attention."""

import torch
from torch.nn.functional import dropout
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.conv.gat_conv import GATConv as theirs
from torch_geometric.nn.dense.linear import Linear

from plait._edges.values import leaky_scores, softmax, weighted_sum
from plait.nn._bare import is_bare
from plait.nn._fast_conv import FastConv
from plait.nn._fast_steps import count_targets, features_of_edges, pair_of
from plait.nn._slow import Slow

__all__ = ["GATConv"]


class GATConv(FastConv, theirs):
    """Attention over neighbours and the node itself (Velickovic et al., ICLR 2018), as
    torch_geometric.nn.GATConv.

    Head k of node i is the sum of a_e W_k x[j] over its edges e from j, where a_e is the softmax over the
    edges of i of leaky_relu(<att_src_k, W_k x[j]> + <att_dst_k, W_k x[i]>). One number per call from
    torch's generator determines the entries of attention that are dropped in training, so
    torch.manual_seed repeats them; PyTorch Geometric drops other entries. Parallel edges are dropped
    together. `edge_index` as for GCNConv; edge weights are not used.

    Features of edges, and attention weights that are returned, are computed by edge; entries are then
    dropped as PyTorch Geometric drops them.
    """

    def reason_against(self):
        if self.lin_edge is not None:
            return "features of edges"
        if not 0 <= self.dropout < 1:
            return "dropout"
        if type(self.aggr_module) is not SumAggregation:
            return f"aggr={self.aggr}"
        return super().reason_against()

    def _fast(self, x, edge_index, edge_attr=None, size=None, return_attention_weights=None):
        if return_attention_weights:
            raise Slow("return_attention_weights")
        rows = pair_of(x)
        if any(part is not None and part.dim() != 2 for part in rows):
            raise Slow("x of 3 dimensions")
        loops = (1.0, 1.0) if self.add_self_loops else None
        graph = self._neighbours(rows, edge_index, size=size, loop_weights=loops)
        h, of_targets = self._transformed(*rows)
        scores = [self._scores(h, self.att_src)]
        scores.append(torch.zeros_like(scores[0][:0]) if of_targets is None
                      else self._scores(of_targets, self.att_dst))
        y = graph.attend(h, scores, self.negative_slope, self.dropout if self.training else 0.0)
        if not self.concat:
            y = y.view(-1, self.heads, self.out_channels).mean(1)
        if self.res is not None and rows[1] is not None:
            y = y + self.res(rows[1])
        return y if self.bias is None else y + self.bias

    def _fast_edge_updater(self, edge_index, size, alpha, edge_attr=None):
        source, target = alpha
        targets = count_targets(source, target, size)
        ends = self._ends(edge_index, source, targets)
        if target is None:
            target = source.new_zeros(targets, self.heads)
        of_edges = self._scores_of_edges(edge_attr, edge_index)
        scores = leaky_scores(ends, source.unsqueeze(2), target.unsqueeze(2), of_edges, None,
                              self.negative_slope)
        return dropout(softmax(ends, scores), self.dropout, self.training)

    def _fast_propagate(self, edge_index, size, x, alpha):
        source, target = x
        ends = self._ends(edge_index, source, count_targets(source, target, size))
        return weighted_sum(ends, source, alpha)

    def _scores_of_edges(self, edge_attr, edge_index):
        """Returns (E, heads, 1), or None without features of edges."""
        if edge_attr is None or self.lin_edge is None:
            return None
        edge_attr = features_of_edges(edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr, edge_index)
        linear = type(self.lin_edge) in (torch.nn.Linear, Linear)
        shape = 1, self.heads, self.out_channels
        if not linear or self.att_edge.shape != shape or not is_bare(self.lin_edge) or self.lin_edge.bias is not None or (
                self.lin_edge.weight.size(1) != edge_attr.size(1)):
            h = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
            return (h * self.att_edge).sum(-1, keepdim=True)
        # The product of both weights first: no edge then needs a row of heads * out_channels.
        weight = self.lin_edge.weight.view(self.heads, self.out_channels, -1)
        weight = (weight * self.att_edge.view(self.heads, self.out_channels, 1)).sum(1)
        return (edge_attr @ weight.t()).unsqueeze(2)

    def _transformed(self, x, targets):
        """Returns the rows of sources and of targets times their weights."""
        if self.lin is not None:
            h = self.lin(x)
            return h, h if targets is x else None if targets is None else self.lin(targets)
        return self.lin_src(x), None if targets is None else self.lin_dst(targets)

    def _scores(self, h, weights):
        return (h.view(-1, self.heads, self.out_channels) * weights).sum(-1)

"""Graph attention."""

import torch
import torch_geometric.nn

from plait.nn._fast_conv import FastConv, pair_of
from plait.nn._slow import Slow

__all__ = ["GATConv"]


class GATConv(FastConv, torch_geometric.nn.GATConv):
    """Attention over neighbours and the node itself (Velickovic et al., ICLR 2018), as
    torch_geometric.nn.GATConv.

    Head k of node i is the sum of a_e W_k x[j] over its edges e from j, where a_e is the softmax over the
    edges of i of leaky_relu(<att_src_k, W_k x[j]> + <att_dst_k, W_k x[i]>). One number per call from
    torch's generator determines the entries of attention that are dropped in training, so
    torch.manual_seed repeats them; PyTorch Geometric drops other entries. Parallel edges are dropped
    together. `edge_index` as for GCNConv; edge weights are not used.
    """

    def reason_against(self):
        if self.lin_edge is not None:
            return "features of edges"
        if not 0 <= self.dropout < 1:
            return "dropout"
        if type(self.aggr_module) is not torch_geometric.nn.SumAggregation:
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

    def _transformed(self, x, targets):
        """Returns the rows of sources and of targets times their weights."""
        if self.lin is not None:
            h = self.lin(x)
            return h, h if targets is x else None if targets is None else self.lin(targets)
        return self.lin_src(x), None if targets is None else self.lin_dst(targets)

    def _scores(self, h, weights):
        return (h.view(-1, self.heads, self.out_channels) * weights).sum(-1)

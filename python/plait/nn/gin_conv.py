"""Graph isomorphism."""

from torch_geometric.nn.conv.gin_conv import GINConv as theirs

from plait.nn._fast_conv import FastConv, pair_of

__all__ = ["GINConv"]


class GINConv(FastConv, theirs):
    """nn((1 + eps) x + the sum of the neighbours) (Xu et al., ICLR 2019, equation 4.1), as
    torch_geometric.nn.GINConv. `edge_index` as for GCNConv; edge weights are not used."""

    def _fast(self, x, edge_index, size=None):
        x, root = pair_of(x)
        graph = self._neighbours((x, root), edge_index, size=size)
        out = graph.aggregate(x, self.aggr_module)
        return self.nn(out if root is None else out + (1 + self.eps) * root)

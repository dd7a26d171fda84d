"""GraphSAGE."""

from torch.nn import functional
from torch_geometric.nn.conv.sage_conv import SAGEConv as theirs

from plait.nn._fast_conv import FastConv, pair_of
from plait.nn._linear import linear_of_neighbours
from plait.nn._neighbours import is_linear

__all__ = ["SAGEConv"]


class SAGEConv(FastConv, theirs):
    """W_l (mean of the neighbours) + b + W_r x (Hamilton, Ying and Leskovec, NeurIPS 2017, where
    neighbours and node are concatenated instead of added), as torch_geometric.nn.SAGEConv.

    Sums, means, maxima, minima, variances and standard deviations are fast, and lists of them.
    `edge_index` as for GCNConv; edge weights are not used.
    """

    def _fast(self, x, edge_index, size=None):
        x, root = pair_of(x)
        graph = self._neighbours((x, root), edge_index, size=size)
        if self.project and hasattr(self, "lin"):
            x = self.lin(x).relu()
        out = linear_of_neighbours(self.lin_l, x, lambda rows: graph.aggregate(rows, self.aggr_module),
                                   is_linear(self.aggr_module), sums_first=True)
        if self.root_weight and root is not None:
            out = out + self.lin_r(root)
        return functional.normalize(out, dim=-1) if self.normalize else out

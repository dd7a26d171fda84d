"""Graph isomorphism."""

import torch

from plait.nn._layer import GraphLayer


class GINConv(GraphLayer):
    """Computes nn((1 + eps) x + the sum of the neighbours) (Xu et al., ICLR 2019, equation 4.1).

    Arguments, parameter names and results are those of torch_geometric.nn.GINConv.

    Args:
        nn: a module that maps (N, width) to (N, any width): a torch.nn.Sequential, an MLP.
        eps: initial value of eps.
        train_eps: whether eps is learnt.

    Raises NotImplementedError for other options of PyTorch Geometric's message passing.
    """

    def __init__(self, nn, eps=0.0, train_eps=False, **kwargs):
        super().__init__()
        self._check_message_passing(kwargs)
        self.nn = nn
        self.initial_eps = eps
        if train_eps:
            self.eps = torch.nn.Parameter(torch.empty(1))
        else:
            self.register_buffer("eps", torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new weights of nn, and sets eps to its initial value."""
        _reset(self.nn)
        with torch.no_grad():
            self.eps.fill_(self.initial_eps)

    def forward(self, x, edge_index, size=None):
        """Args:
            x: (N, width), float32, on the CPU or a GPU.
            edge_index: as for GCNConv; edge weights are not used.

        Returns the result of nn: N rows, differentiable by x and the parameters.
        """
        x = self._checked(x)
        self._check_size(size, x.size(0))
        graph = self._adjacency(x, edge_index)
        return self.nn(graph.aggregate(x, "sum") + (1 + self.eps) * x)


def _reset(module):
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()
        return
    for child in module.children() if hasattr(module, "children") else ():
        _reset(child)

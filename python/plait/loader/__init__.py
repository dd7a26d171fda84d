"""Loaders of PyTorch Geometric 2.8 that sample neighbours by Plait: mini-batch training without pyg-lib or
torch-sparse.

    from plait.loader import NeighborLoader    # instead of: from torch_geometric.loader import ...

Each class is derived from PyTorch Geometric's class of the same name, which keeps the arguments, the order
and the fields of batches; only the drawing of neighbours is Plait's (plait.loader.sampler.NeighborSampler).
"""

try:
    import torch_geometric.loader  # noqa: F401
except ModuleNotFoundError as error:
    if error.name.partition(".")[0] != "torch_geometric":
        raise
    raise ModuleNotFoundError("plait.loader needs PyTorch Geometric; pip install torch-geometric",
                              name=error.name) from None

from plait.loader.loaders import LinkNeighborLoader, NeighborLoader

__all__ = ["LinkNeighborLoader", "NeighborLoader"]

"""Layers with the signatures and state_dicts of PyTorch Geometric 2.8, one layer per file."""

from plait.nn.gat_conv import GATConv
from plait.nn.gcn_conv import GCNConv
from plait.nn.gin_conv import GINConv
from plait.nn.model import Model, ModelConfig
from plait.nn.sage_conv import SAGEConv

__all__ = ["GATConv", "GCNConv", "GINConv", "Model", "ModelConfig", "SAGEConv"]

"""Layers of PyTorch Geometric 2.8 with fast operations on graphs, one kind of layer per file.

Each class is derived from PyTorch Geometric's class of the same name, so that its arguments, state_dict,
hooks and errors are the same; see plait.nn._fast_conv. EmbeddingBag has the interface of PyTorch's.
"""

try:
    import torch_geometric.nn  # noqa: F401
except ModuleNotFoundError as error:
    if error.name.partition(".")[0] != "torch_geometric":
        raise
    raise ModuleNotFoundError("plait.nn needs PyTorch Geometric; pip install torch-geometric",
                              name=error.name) from None

from plait.nn._fast_conv import FastConv
from plait.nn.appnp import APPNP
from plait.nn.embedding_bag import EmbeddingBag, EmbeddingBags
from plait.nn.gat_conv import GATConv
from plait.nn.gatv2_conv import GATv2Conv
from plait.nn.gcn_conv import GCNConv
from plait.nn.gin_conv import GINConv
from plait.nn.gine_conv import GINEConv
from plait.nn.graph_conv import GraphConv
from plait.nn.model import Model, ModelConfig
from plait.nn.node2vec import Node2Vec
from plait.nn.sage_conv import SAGEConv
from plait.nn.sg_conv import SGConv
from plait.nn.tag_conv import TAGConv
from plait.nn.transformer_conv import TransformerConv

__all__ = ["APPNP", "EmbeddingBag", "EmbeddingBags", "FastConv", "GATConv", "GATv2Conv", "GCNConv", "GINConv",
           "GINEConv", "GraphConv", "Model", "ModelConfig", "Node2Vec", "SAGEConv", "SGConv", "TAGConv",
           "TransformerConv"]

import torch
from torch_geometric.nn.models.node2vec import Node2Vec as theirs

from plait.walks import RandomWalks


class Node2Vec(theirs):
    """Embeddings of nodes by random walks, as torch_geometric.nn.Node2Vec (Grover and Leskovec, KDD 2016), without
    pyg-lib: the arguments, the loader and the loss are the same. Walks are plait.RandomWalks.

    Raises ValueError for an id out of range, and for a context that is longer than a walk.
    """

    def __init__(self, edge_index: torch.Tensor, embedding_dim: int, walk_length: int, context_size: int,
                 walks_per_node: int = 1, p: float = 1.0, q: float = 1.0, num_negative_samples: int = 1,
                 num_nodes: int | None = None, sparse: bool = False):
        torch.nn.Module.__init__(self)
        if walk_length < context_size:
            raise ValueError(f"context_size is {context_size}, but walks have {walk_length} nodes; give at most as many")
        self.walks = RandomWalks(edge_index, num_nodes)
        self.num_nodes = self.walks.num_nodes
        self.EPS = 1e-15
        self.embedding_dim, self.walk_length, self.context_size = embedding_dim, walk_length - 1, context_size
        self.walks_per_node, self.p, self.q = walks_per_node, p, q
        self.num_negative_samples = num_negative_samples
        self.rowptr = self.col = None  # the walks hold the edges
        self.embedding = torch.nn.Embedding(self.num_nodes, embedding_dim, sparse=sparse)
        self.reset_parameters()

    def random_walk_fn(self, _, __, start, walk_length, p, q):
        return self.walks.walk(start, walk_length, p, q)

"""What Plait decides for a GCN of PyTorch Geometric on a graph, and why, for any number of ranks.

python examples/advise.py cora.npz 4
"""

import sys

from torch_geometric.nn import GCN

import plait

graph = plait.Graph.load(sys.argv[1])
model = GCN(graph.x.size(1), 16, 2, int(graph.y.max()) + 1)
print(plait.advise(model, graph, ranks=int(sys.argv[2])))

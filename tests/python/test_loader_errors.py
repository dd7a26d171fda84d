"""plait.loader: wrong arguments. Each error is one line that names the argument and the first wrong place;
where PyTorch Geometric itself checks, the error is its own."""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from loader_checks import graph
from plait.loader import LinkNeighborLoader, NeighborLoader


def with_weight(place=None, value=1.0, dtype=torch.float32):
    data = graph()
    data.weight = torch.ones(data.num_edges, dtype=dtype)
    if place is not None:
        data.weight[place] = value
    return data


def with_weight_of_graph():
    data = graph()
    data.weight = torch.ones(3)
    return data


def with_times(times):
    data = graph()
    data.moment = times
    return data


def with_edge(end, edge, node):
    data = graph()
    data.edge_index[end, edge] = node
    return data


WEIGHTS = "weights must be 0 or more, and as float32 neither infinite nor rounded to 0"
MOMENTS = torch.arange(60)
WRONG = {
    "input_nodes[2] is 60, outside 0..59; correct it": lambda: NeighborLoader(graph(), [2], [0, 1, 60]),
    "input_nodes[0] is -1, outside 0..59; correct it": lambda: NeighborLoader(graph(), [2], torch.tensor([-1])),
    "input_nodes has 90 values for 60 nodes; give one for each":
        lambda: NeighborLoader(graph(), [2], torch.arange(90) == 7),
    "input_nodes has 40 values for 60 nodes; give one for each":
        lambda: NeighborLoader(graph(), [2], np.ones(40, bool)),
    "input_nodes has shape (1, 3); give one dimension": lambda: NeighborLoader(graph(), [2], [[1, 2, 3]]),
    "input_nodes has shape (); give one dimension": lambda: NeighborLoader(graph(), [2], 3),
    "input_nodes holds torch.float32; use integers (torch.long)":
        lambda: NeighborLoader(graph(), [2], [1.5, 2]),
    "input_nodes[0] is 0, but there are no nodes; correct it":
        lambda: NeighborLoader(Data(num_nodes=0, edge_index=torch.empty(2, 0, dtype=torch.long)), [2], [0]),
    "edge_label_index[1, 1] is 60, outside 0..59; correct it":
        lambda: LinkNeighborLoader(graph(), [2], torch.tensor([[1, 2], [3, 60]])),
    "edge_label_index has shape (3, 2); give (2, number of edges)":
        lambda: LinkNeighborLoader(graph(), [2], torch.zeros(3, 2, dtype=torch.long)),
    "edge_label has 3 values for 2 edges; give one for each":
        lambda: LinkNeighborLoader(graph(), [2], torch.tensor([[1, 2], [3, 4]]), torch.ones(3)),
    "edge_index has shape (3, 2); give (2, number of edges)":
        lambda: NeighborLoader(Data(num_nodes=4, edge_index=torch.zeros(3, 2, dtype=torch.long)), [2]),
    "edge_index is a ndarray; give a tensor":
        lambda: NeighborLoader(Data(num_nodes=4, edge_index=np.zeros((2, 2), np.int64)), [2]),
    "moment is a ndarray; give a tensor": lambda: NeighborLoader(with_times(np.arange(60)), [2], time_attr="moment"),
    "input_time has one value for 60 input nodes; give one for each":
        lambda: NeighborLoader(with_times(MOMENTS), [2], time_attr="moment", input_time=torch.tensor(1)),
    "edge_index[0, 9] is 60, outside 0..59; correct it": lambda: NeighborLoader(with_edge(0, 9, 60), [2]),
    "edge_index[1, 4] is -3, outside 0..59; correct it": lambda: NeighborLoader(with_edge(1, 4, -3), [2]),
    "num_neighbors[1] is -2; give 0 to 16777216, or -1 for all neighbours":
        lambda: NeighborLoader(graph(), [2, -2]),
    f"num_neighbors[0] is {2**63}; give 0 to 16777216, or -1 for all neighbours":
        lambda: NeighborLoader(graph(), [2**63]),
    "num_neighbors is 5; give a list of integers, one for each hop": lambda: NeighborLoader(graph(), 5),
    "num_neighbors is [2.5]; give a list of integers, one for each hop": lambda: NeighborLoader(graph(), [2.5]),
    "temporal_strategy is 'first'; give 'uniform' or 'last'":
        lambda: NeighborLoader(graph(), [2], temporal_strategy="first"),
    "weight[7] is nan; " + WEIGHTS:
        lambda: NeighborLoader(with_weight(7, torch.nan), [2], weight_attr="weight"),
    "weight[8] is -0.5; " + WEIGHTS:
        lambda: NeighborLoader(with_weight(8, -0.5), [2], weight_attr="weight"),
    "weight[0] is inf; " + WEIGHTS:
        lambda: NeighborLoader(with_weight(0, torch.inf), [2], weight_attr="weight"),
    "weight[3] is 1e+39; " + WEIGHTS:
        lambda: NeighborLoader(with_weight(3, 1e39, torch.float64), [2], weight_attr="weight"),
    "weight[4] is 1e-60; " + WEIGHTS:
        lambda: NeighborLoader(with_weight(4, 1e-60, torch.float64), [2], weight_attr="weight"),
    "x has shape (60, 4); give one weight for each of 443 edges":
        lambda: NeighborLoader(graph(), [2], weight_attr="x"),
    "moment holds torch.float32; use integers (torch.long)":
        lambda: NeighborLoader(with_times(MOMENTS / 2), [2], time_attr="moment"),
    "moment has shape (60, 1); give one time for each of 60 nodes":
        lambda: NeighborLoader(with_times(MOMENTS[:, None]), [2], time_attr="moment"),
    "input_time has 5 values for 60 input nodes; give one for each":
        lambda: NeighborLoader(with_times(MOMENTS), [2], time_attr="moment", input_time=MOMENTS[:5]),
    "input_time holds torch.float32; use integers (torch.long)":
        lambda: NeighborLoader(with_times(MOMENTS), [2], time_attr="moment", input_time=MOMENTS / 2),
    "edge_label_time has 5 values for 443 edges; give one for each":
        lambda: LinkNeighborLoader(with_times(MOMENTS), [2], time_attr="moment", edge_label_time=MOMENTS[:5]),
    "moment is no attribute of the seeds, so their times are not known; give input_time":
        lambda: next(iter(NeighborLoader(with_times(torch.arange(443)), [2], time_attr="moment"))),
    # PyTorch Geometric's own:
    "Received conflicting 'input_time' and 'time_attr' arguments: 'input_time' is set while 'time_attr' is not "
    "set.": lambda: NeighborLoader(graph(), [2], input_time=MOMENTS),
    "Received conflicting 'edge_label_time' and 'time_attr' arguments: 'edge_label_time' is not set while "
    "'time_attr' is set. Both arguments must be provided for temporal sampling.":
        lambda: LinkNeighborLoader(with_times(MOMENTS), [2], time_attr="moment"),
    "The time attribute 'weight' is neither a node-level or edge-level attribute":
        lambda: NeighborLoader(with_weight_of_graph(), [2], time_attr="weight"),
    "the graph has no edges and no rows of nodes; set its num_nodes": lambda: NeighborLoader(Data(), [2]),
    "'all' is not a valid SubgraphType": lambda: NeighborLoader(graph(), [2], subgraph_type="all"),
    "'disjoint' sampling not supported for neighbor sampling with `subgraph_type='induced'`":
        lambda: NeighborLoader(graph(), [2], subgraph_type="induced", disjoint=True),
    "Expected a 'Data', 'HeteroData', or a tuple of 'FeatureStore' and 'GraphStore' (got '<class 'list'>')":
        lambda: NeighborLoader([1, 2], [2]),
    "'edge_label' needs to be undefined for 'triplet'-based negative sampling. Please use `src_index`, "
    "`dst_pos_index` and `neg_pos_index` of the returned mini-batch instead to differentiate between positive and "
    "negative samples.":
        lambda: LinkNeighborLoader(graph(), [2], edge_label=torch.ones(443), neg_sampling="triplet"),
}


@pytest.mark.parametrize("text", WRONG)
def test_mistakes(text):
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        WRONG[text]()


def test_edges_that_are_not_sorted():
    data = graph().sort(sort_by_row=False)
    data.edge_index[1, 5] = 40
    after = int(data.edge_index[1, 6])
    text = f"is_sorted=True, but edge_index[1, 6] is {after}, after 40; sort edges by target, or leave is_sorted out"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        NeighborLoader(data, [2], is_sorted=True)


def test_seeds_that_become_wrong():
    """The sampler itself checks its seeds, too: their place is that in the batch."""
    loader = NeighborLoader(graph(), [2], batch_size=4)
    loader.input_data.node[6] = 999
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match=r"seed 2 is 999, outside 0\.\.59"):
        next(batches)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="num_neighbors"):
        NeighborLoader(graph())
    with pytest.raises(TypeError, match="fanout"):
        NeighborLoader(graph(), [2], fanout=3)
    with pytest.raises(KeyError):
        NeighborLoader(graph(), [2], weight_attr="nothing")
    with pytest.raises(ValueError, match=r"^input_nodes are of type None; give \(type, ids\), with one of the types "):
        NeighborLoader(HeteroData(), [2])


def test_one_error_of_a_worker():
    loader = NeighborLoader(graph(), [2], batch_size=4, num_workers=2)
    loader.input_data.node[6] = 999
    with pytest.raises(ValueError, match="DataLoader worker process 1(?s:.*)seed 2 is 999"):
        list(loader)

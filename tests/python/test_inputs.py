"""Forms of graphs and features: each gives the same result as the same edges as a tensor."""

import contextlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
import torch_geometric.data
from torch_geometric import EdgeIndex

import plait
from edges import assert_close, random_edges
from layers import INPUTS, KINDS, make


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


EDGES = random_edges(12, weighted=True)
NODES = EDGES.num_nodes
# Parallel edges are entries of their own.
MATRIX = scipy.sparse.coo_array(
    (EDGES.weight.numpy(), (EDGES.index[1].numpy(), EDGES.index[0].numpy())), shape=(NODES, NODES))
TENSOR = torch.sparse_coo_tensor(EDGES.index.flip(0), EDGES.weight, (NODES, NODES))
DATA = torch_geometric.data.Data(edge_index=EDGES.index, edge_weight=EDGES.weight, num_nodes=NODES)

WEIGHTED = {
    "Data": DATA,
    "Data with adj_t": torch_geometric.data.Data(adj_t=TENSOR, num_nodes=NODES),
    "SciPy COO": MATRIX,
    "SciPy CSR of doubles": scipy.sparse.csr_matrix(MATRIX.astype(np.float64)),
    "SciPy CSC": MATRIX.tocsc(),
    "SciPy LIL": MATRIX.tolil(),
    "sparse COO tensor": TENSOR,
    "sparse CSR tensor": TENSOR.to_sparse_csr(),
    "sparse CSC tensor": TENSOR.to_sparse_csc(),
}
BARE = {
    "EdgeIndex": EdgeIndex(EDGES.index, sparse_size=(NODES, NODES)),
    "EdgeIndex without size": EdgeIndex(EDGES.index),
    "NumPy": EDGES.index.numpy(),
    "NumPy of 32 bit": EDGES.index.numpy().astype(np.int32),
    "NumPy without sign": EDGES.index.numpy().astype(np.uint32),
    "NumPy, transposed": np.ascontiguousarray(EDGES.index.numpy().T).T,
    "NumPy, backwards twice": EDGES.index.numpy()[::-1].copy()[::-1],
    "another library": OnlyDLPack(EDGES.index.numpy()),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_graphs_with_weights(name):
    source = WEIGHTED[name]
    x = torch.randn(NODES, INPUTS)
    wanted = MATRIX @ x.double().numpy()
    graph = plait.Graph(source)
    assert (graph.num_nodes, graph.is_weighted) == (NODES, True)
    assert_close(plait.aggregate(graph, x, "weighted"), wanted)
    assert_close(plait.aggregate(source, x, "weighted"), wanted)
    layer = make(plait, "gcn", normalize=False)
    assert_close(layer(x, source), layer(x, EDGES.index, EDGES.weight))
    refused = contextlib.nullcontext()
    if not isinstance(source, torch.Tensor):  # a tensor is treated as PyTorch Geometric treats it
        refused = pytest.raises(ValueError, match="has its own")
    with refused:
        layer(x, source, EDGES.weight)


@pytest.mark.parametrize("name", BARE)
def test_edge_indices(name):
    source = BARE[name]
    x = torch.randn(NODES, INPUTS)
    graph = plait.Graph(source, NODES, OnlyDLPack(EDGES.weight.numpy()))
    assert_close(plait.aggregate(graph, x, "weighted"), MATRIX @ x.double().numpy())
    layer = make(plait, "gcn")
    assert_close(layer(x, source, EDGES.weight), layer(x, EDGES.index, EDGES.weight))


def test_direction():
    """Entry (i, j) is an edge from j to i: the matrix is what x is multiplied by."""
    a = scipy.sparse.csr_array(([2.0], ([0], [2])), shape=(3, 3))
    graph = plait.Graph(a)
    assert torch.equal(graph.edge_index, torch.tensor([[2], [0]]))
    assert np.array_equal(plait.aggregate(graph, torch.eye(3), "weighted").numpy(), a.toarray())


def test_matrices_of_bools_have_no_weights():
    for a in (scipy.sparse.eye_array(3, dtype=bool), torch.eye(3, dtype=torch.bool).to_sparse()):
        graph = plait.Graph(a)
        assert (graph.num_nodes, graph.num_edges, graph.is_weighted) == (3, 3, False)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("source", ["Data", "SciPy COO", "EdgeIndex", "another library"])
def test_layers(name, source):
    layer = make(plait, name)
    x = np.random.default_rng(1).standard_normal((NODES, INPUTS)).astype(np.float32)
    taken = plait.Graph(EDGES.index, NODES, EDGES.weight if source in WEIGHTED else None)
    assert_close(layer(OnlyDLPack(x), {**WEIGHTED, **BARE}[source]), layer(torch.tensor(x), taken))


def test_edge_index_is_made_ready_once(monkeypatch):
    made = []
    make_one = plait._edges.adjacency._make
    monkeypatch.setattr(plait._edges.adjacency, "_make", lambda *a: made.append(1) or make_one(*a))
    index = EdgeIndex(EDGES.index.clone())
    data = torch_geometric.data.Data(edge_index=EDGES.index.clone(), num_nodes=NODES)
    x = torch.randn(NODES, INPUTS)
    for source in (index, data):
        for _ in range(3):
            make(plait, "gcn")(x, source)
    assert len(made) == 2


def test_fields_of_data():
    masks = torch.rand(NODES, 4) < 0.5
    data = torch_geometric.data.Data(
        x=torch.randn(NODES, 3), y=torch.randint(0, 4, (NODES,)), edge_index=EDGES.index,
        train_mask=masks[:, 0], test_mask=masks)
    graph = plait.Graph(data)
    assert graph.num_nodes == NODES and not graph.is_weighted
    assert graph.x is data.x and graph.y is data.y and graph.val_mask is None
    assert torch.equal(graph.train_mask, masks[:, 0])
    assert torch.equal(graph.test_mask, masks.t())  # one row per split, as Graph.load gives them
    assert plait.Graph(graph).x is data.x


def test_num_nodes_that_is_given_counts():
    assert plait.Graph(DATA, NODES + 5).num_nodes == NODES + 5
    assert plait.Graph(EdgeIndex([[0], [1]], sparse_size=(7, 7))).num_nodes == 7
    assert plait.Graph(EdgeIndex([[0], [1]])).num_nodes == 2
    data = torch_geometric.data.Data(edge_index=torch.tensor([[0], [1]]))
    assert plait.Graph(data).num_nodes == 2
    make(plait, "gcn")(torch.ones(3, INPUTS), data)  # it does not know how many there are
    with pytest.raises(ValueError, match="raise num_nodes"):
        plait.Graph(MATRIX, 1)


class SparseTensor:
    """A stand-in for torch_sparse's, which need not be there."""

    def __init__(self, values=None, shape=(3, 3)):
        self.coo = lambda: (torch.tensor([0, 2]), torch.tensor([1, 0]), values)
        self.sparse_sizes = lambda: shape


def test_a_matrix_of_torch_sparse():
    """Entry (i, j) is an edge from j to i. Layers leave it to PyTorch Geometric's own code."""
    for values in (None, torch.tensor([0.5, 2])):
        graph = plait.Graph(SparseTensor(values))
        assert graph.edge_index.tolist() == [[1, 0], [0, 2]] and graph.num_nodes == 3
        assert graph.edge_weight is values or torch.equal(graph.edge_weight, values)
        y = plait.aggregate(SparseTensor(values), torch.tensor([[1.0], [2], [3]]), "weighted")
        assert y.view(-1).tolist() == ([2, 0, 1] if values is None else [1, 0, 2])
    with pytest.raises(ValueError, match=r"of shape \(2, 3\); an adjacency is square"):
        plait.Graph(SparseTensor(shape=(2, 3)))
    with pytest.raises(ValueError, match="SparseTensor with rows of"):
        plait.Graph(SparseTensor(torch.ones(2, 4)))


@pytest.mark.parametrize("source,error,words", [
    (scipy.sparse.eye_array(2, 3), ValueError, "array of shape (2, 3); an adjacency is square"),
    (scipy.sparse.coo_array(np.ones(3)), ValueError, "shape (3,)"),
    (torch.ones(2, 3).to_sparse(), ValueError, "edge_index is a sparse tensor of shape (2, 3)"),
    (scipy.sparse.eye_array(2, dtype=complex), ValueError, "complex numbers"),
    (torch.ones(2, 2, 2).to_sparse(), ValueError, "3 sparse dimensions"),
    (torch.sparse_coo_tensor(size=(2, 2), device="meta"), ValueError, "is on meta"),
    (torch_geometric.data.HeteroData(), TypeError, "data.to_homogeneous()"),
    (torch_geometric.data.Data(x=torch.ones(2, 2)), ValueError, "data has no edge_index"),
    (np.array([["a"], ["b"]]), ValueError, "numpy.array("),
    (np.ones((2, 3)), ValueError, "edge_index holds Double; use integers"),
    ({0: [1]}, TypeError, "edge_index is a dict"),
    (None, TypeError, "edge_index is a NoneType"),
])
def test_what_is_refused(source, error, words):
    with pytest.raises(error) as caught:
        plait.Graph(source)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_aggregate_wants_to_know_the_number_of_nodes():
    with pytest.raises(TypeError, match="plait.Graph"):
        plait.aggregate(EdgeIndex([[0], [1]]), torch.ones(2, 1))
    y = plait.aggregate(EdgeIndex([[0], [1]], sparse_size=(2, 2)), np.ones((2, 1), np.float32))
    assert torch.equal(y, torch.tensor([[0.0], [1.0]]))
    with pytest.raises(TypeError, match="x is a list"):
        plait.aggregate(plait.Graph(EDGES.index), [[1.0]])


WITHOUT = """
import sys
sys.path.insert(0, sys.argv[1])
import plait, torch
graph = plait.Graph(torch.tensor([[0, 1], [1, 2]]))
plait.aggregate(graph, torch.ones(3, 2))
plait.parallelize(torch.nn.Linear(2, 2), graph)
assert not {"scipy", "torch_geometric", "safetensors"} & sys.modules.keys()
sys.modules["torch_geometric"] = None
for use in (lambda: plait.nn, lambda: plait.load_checkpoint):
    try:
        use()
    except ImportError as error:
        assert str(error) == "plait.nn needs PyTorch Geometric; pip install torch-geometric", error
    else:
        sys.exit("it was imported")
"""


def test_other_packages_are_not_needed():
    folder = pathlib.Path(plait.__file__).parents[1]
    subprocess.run([sys.executable, "-c", WITHOUT, folder], check=True, timeout=300)

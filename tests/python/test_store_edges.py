"""plait.store.GraphStore: each layout against a SciPy matrix of counts, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import EdgeAttr

from plait.store import GraphStore

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
LAYOUTS = ["coo", "csc", "csr"]


def edges(sources=9, targets=9, count=40, seed=0):
    """Returns (row, col), in no order, with loops and parallel edges."""
    random = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(n, (count,), generator=random) for n in (sources, targets))


def matrix(row, col, size):
    """Returns how often each edge is there: [source, target]."""
    ones = torch.ones(row.numel())
    return scipy.sparse.coo_matrix((ones, (row, col)), size).toarray()


def in_layout(index, size, layout):
    """Returns the edges in a layout."""
    row, col = index
    if layout == "coo":
        return row, col
    order = (col if layout == "csc" else row).argsort(stable=True)
    ends, nodes = ((col, size[1]) if layout == "csc" else (row, size[0]))
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), ends.bincount(minlength=nodes).cumsum(0)])
    return (row[order], offsets) if layout == "csc" else (offsets, col[order])


def matrix_of(index, size, layout):
    row, col = index
    if layout == "csc":
        col = torch.arange(size[1]).repeat_interleave(col.diff())
    elif layout == "csr":
        row = torch.arange(size[0]).repeat_interleave(row.diff())
    return matrix(row, col, size)


@pytest.mark.parametrize("asked", LAYOUTS)
@pytest.mark.parametrize("given", LAYOUTS)
@pytest.mark.parametrize("kind,size", [(None, (9, 9)), (CITES, (12, 12)), (WRITES, (9, 14)), (WRITES, (14, 9))])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_every_layout_from_every_layout(kind, size, given, asked, dtype):
    index = edges(9, 9)
    store = GraphStore()
    kept = tuple(each.to(dtype) for each in in_layout(index, size, given))
    assert store.put_edge_index(kept, edge_type=kind, layout=given, size=size)
    found = store.get_edge_index(edge_type=kind, layout=asked)
    assert (matrix_of(found, size, asked) == matrix(*index, size)).all()
    if given == asked:
        assert found[0] is kept[0] and found[1] is kept[1]
    attr, = store.get_all_edge_attrs()
    assert (attr.edge_type, attr.layout.value, attr.size) == (kind, given, size)


@pytest.mark.parametrize("given", LAYOUTS)
def test_conversions_of_all_types(given):
    store, sizes = GraphStore(), {CITES: (12, 12), WRITES: (9, 12)}
    for kind, size in sizes.items():
        store[EdgeAttr(kind, given, size=size)] = in_layout(edges(9, 12 if kind == WRITES else 9), size, given)
    for layout in LAYOUTS:
        row, col, _ = getattr(store, layout)()
        for kind, size in sizes.items():
            wanted = matrix(*edges(9, 12 if kind == WRITES else 9), size)
            assert (matrix_of((row[kind], col[kind]), size, layout) == wanted).all()
    row, col, _ = store.csc(store=True)
    assert {attr.layout.value for attr in store.get_all_edge_attrs()} == {given, "csc"}
    assert store.num_nodes("paper") == 12 and store.num_nodes("author") == 9 and store.num_nodes("topic") is None


def test_removing():
    store = GraphStore()
    for layout in ("coo", "csc"):
        store.put_edge_index(in_layout(edges(), (9, 9), layout), None, layout, size=(9, 9))
    assert store.remove_edge_index(None, "coo") and not store.remove_edge_index(None, "coo")
    assert [attr.layout.value for attr in store.get_all_edge_attrs()] == ["csc"]
    del store[EdgeAttr(None, "csc")]
    with pytest.raises(KeyError, match="edges of type None are not in the store, which has no edges"):
        store.get_edge_index(None, "coo")
    store.put_edge_index(edges(3, 3), None, "coo", size=(3, 3))  # of another size than before
    with pytest.raises(KeyError, match=r"edges of type \('paper', 'cites', 'paper'\) .*, which has None"):
        store.get_edge_index(CITES, "coo")


def test_replacing():
    store = GraphStore()
    store.put_edge_index(edges(), CITES, "coo", size=(9, 9))
    store.put_edge_index(edges(12, 12), CITES, "coo", size=(12, 12))
    assert store.num_nodes("paper") == 12


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_copies(twin):
    store = GraphStore()
    store.put_edge_index(edges(), CITES, "coo", size=(9, 9))
    assert torch.equal(torch.stack(twin(store).get_edge_index(CITES, "coo")), torch.stack(edges()))


def test_no_edges_and_no_nodes():
    none = torch.empty(0, dtype=torch.long)
    for size in ((0, 0), (4, 4)):
        store = GraphStore()
        store.put_edge_index((none, none), None, "coo", size=size)
        row, colptr = store.get_edge_index(None, "csc")
        assert row.numel() == 0 and colptr.tolist() == [0] * (size[1] + 1)


def put(row, col, layout, size=(9, 9), kind=None, **options):
    def call():
        store = GraphStore()
        store.put_edge_index(edges(9, 9), WRITES, "coo", size=(9, 10))
        store.put_edge_index((torch.tensor(row), torch.tensor(col)), kind, layout, size=size, **options)

    return call


OF = "edges of type None: "
WRONG = {
    OF + "row[1] is 9, outside 0..8; correct it": put([0, 9], [0, 0], "coo"),
    OF + "col[0] is -1, outside 0..8; correct it": put([0, 1], [-1, 0], "coo"),
    OF + "row has 2 ids, but col has 1; give one of each for an edge": put([0, 1], [0], "coo"),
    OF + "row holds torch.float32; use integers (torch.long)": put([0.5], [0], "coo"),
    "is_sorted=True, but " + OF + "col[2] is 1, after 2; sort edges by target, or leave is_sorted out":
        put([0, 0, 0], [0, 2, 1], "coo", is_sorted=True),
    OF + "the numbers of nodes are not known; give size=(sources, targets)": put([0], [0], "coo", None),
    OF + "both ends are nodes of one type, but size is (8, 9); give one number twice": put([0], [0], "coo", (8, 9)),
    **{OF + f"size is {size!r}; give (sources, targets), both 0 or more": put([0], [0], "coo", size)
       for size in ((-1, -1), (9,), (9, 9, 9), 9, "99", (9.0, 9), (2**63, 2**63), "")},
    "edges of type 5: give (source type, name, target type), or None": put([0], [0], "coo", kind=5),
    "edges of type 'abc': give (source type, name, target type), or None": put([0], [0], "coo", kind="abc"),
    OF + "col has 3 offsets for 9 nodes; give 10": put([0], [0, 1, 1], "csc"),
    OF + "col has offsets from 0 to 1; they must be from 0 to 2, the number of edges":
        put([0, 1], [0, 1, 1], "csc", (2, 2)),
    OF + "row has offsets from 1 to 2; they must be from 0 to 2, the number of edges":
        put([1, 1, 2], [0, 1], "csr", (2, 2)),
    OF + "row[2] is 1, after 2; offsets must not descend": put([0, 2, 1, 2], [0, 1], "csr", (3, 3)),
    OF + "the index has shapes [(1, 1), (1,)]; give (row, col), both of one dimension": put([[0]], [0], "coo"),
    "edges of type ('paper', 'cites', 'paper'): size is (9, 9), but of nodes of type 'paper' there are 10 by other "
    "edges; correct it": put([0], [0], "coo", kind=CITES),
}


@pytest.mark.parametrize("index", [None, 5, (torch.tensor([0]), None), ("a", "b")])
def test_wrong_index(index):
    with pytest.raises(ValueError, match=rf"^{OF}the index is not made of tensors \(.*\); give \(row, col\)$"):
        GraphStore().put_edge_index(index, None, "coo", size=(9, 9))


@pytest.mark.parametrize("size", [[9, 9], torch.tensor([9, 9]), np.array([9, 9])])
def test_forms_of_sizes(size):
    store = GraphStore()
    store.put_edge_index(edges(), None, "coo", size=size)
    assert store.get_all_edge_attrs()[0].size == (9, 9)


@pytest.mark.parametrize("message", WRONG)
def test_wrong(message):
    with pytest.raises(ValueError) as error:
        WRONG[message]()
    assert str(error.value) == message

"""plait.store.FeatureStore over tensors: each index against the tensor itself, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, TensorAttr

from plait.store import FeatureStore

SMALL = (torch.uint8, torch.int8, torch.int16, torch.uint16)
GROUPS = [None, "paper", ("paper", "cites", "paper"), (None, None)]


def tensor(rows=7, *rest, dtype=torch.float32):
    return torch.randint(100, (rows, *rest), generator=torch.Generator().manual_seed(rows)).to(dtype)


def store_of(value, group=None, name="x"):
    store = FeatureStore()
    assert store.put_tensor(value, group_name=group, attr_name=name, index=None)
    return store


@pytest.mark.parametrize("index", [
    slice(None), slice(2, 5), slice(-3, None), slice(None, None, 2), slice(6, 1, -2), slice(5, 5), slice(1, 5, -1),
    0, 6, np.int64(3), torch.tensor([3, 0, 3, 6]), torch.tensor([2], dtype=torch.int32), torch.arange(0),
    *(torch.tensor([1, 2, 1], dtype=dtype) for dtype in SMALL), np.array([1, 2, 1]), np.arange(7) > 4,
    torch.tensor([0, 1, 0, 0, 1, 1, 0]).bool()])
@pytest.mark.parametrize("value", [
    tensor(7, 3), tensor(7), tensor(7, 2, 2, dtype=torch.float64), tensor(7, 0), tensor(7, 1, dtype=torch.bool),
    tensor(7, 5, dtype=torch.bfloat16), tensor(3, 7).t()])
def test_an_index_means_the_rows_that_it_means_in_numpy(value, index):
    store = store_of(value)
    rows = np.arange(7)[index if isinstance(index, (slice, int, np.int64)) else np.asarray(index)]
    found = store.get_tensor(None, "x", index)
    assert torch.equal(found, value[torch.from_numpy(np.array(rows))]) and found.dtype == value.dtype
    assert store.get_tensor_size(None, "x", index) == tuple(found.shape)


@pytest.mark.parametrize("group", GROUPS)
def test_whole_tensors_are_those_that_were_put(group):
    value = tensor(7, 3)
    store = store_of(value, group)
    assert store.get_tensor(group, "x", None) is value and store[group, "x", None] is value
    assert store.get_tensor_size(group, "x") == (7, 3) and store.num_rows(group) == 7
    assert torch.equal(store.view(group_name=group).x[torch.tensor([4, 4])], value[[4, 4]])
    assert store.view(group, "x")() is value


def test_names_of_all_tensors():
    store = FeatureStore()
    for group in GROUPS:
        for name in ("x", "y"):
            store.put_tensor(tensor(), group, name, None)
    found = [(attr.group_name, attr.attr_name) for attr in store.get_all_tensor_attrs()]
    assert found == [(group, name) for group in GROUPS[:3] for name in ("x", "y")]
    assert not any(attr.is_set("index") for attr in store.get_all_tensor_attrs())
    assert TensorAttr("paper", "x") in store.get_all_tensor_attrs()


def test_several_tensors_at_once():
    store = store_of(tensor(7, 3))
    store.put_tensor(tensor(7), None, "y", None)
    ids = torch.tensor([5, 1])
    x, y = store.multi_get_tensor([TensorAttr(None, "x", ids), TensorAttr(None, "y", ids)])
    assert torch.equal(x, tensor(7, 3)[ids]) and torch.equal(y, tensor(7)[ids])


@pytest.mark.parametrize("index,place", [
    (torch.tensor([4, 1]), [4, 1]), *((torch.tensor([1, 2, 1], dtype=dtype), [1, 2, 1]) for dtype in SMALL), (slice(2, 6, 3), [2, 5]), (torch.arange(7) > 4, [5, 6]), (3, 3)])
@pytest.mark.parametrize("write", ["put_tensor", "update_tensor"])
def test_rows_are_written(index, place, write):
    store, wanted = store_of(tensor(7, 3)), tensor(7, 3)
    wanted[place] = torch.zeros_like(wanted[place])
    assert getattr(store, write)(torch.zeros_like(wanted[place]), None, "x", index)
    assert torch.equal(store[None, "x", None], wanted)


def test_replacing_and_removing():
    store = store_of(tensor(7, 3))
    assert store.update_tensor(tensor(9, 2), None, "x", None)  # the only one of its group: any number of rows
    assert store.get_tensor_size(None, "x") == (9, 2)
    assert store.put_tensor(np.ones((9, 1), np.float32), None, "z", None)
    assert torch.equal(store[None, "z", None], torch.ones(9, 1))
    assert store.remove_tensor(None, "x", None) and not store.remove_tensor(None, "x", None)
    assert store.get_tensor_size(None, "x") is None and store.num_rows(None) == 9
    del store[None, "z"]
    assert store.get_all_tensor_attrs() == [] and store.num_rows(None) is None


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_copies(twin):
    store = twin(store_of(tensor(7, 3)))
    assert torch.equal(store[None, "x", slice(2)], tensor(7, 3)[:2])
    store[None, "x", 0] = torch.zeros(3)
    assert store[None, "x", 0].tolist() == [0, 0, 0]


def get(index, group=None):
    return lambda: store_of(tensor(7, 3), group).get_tensor(group, "x", index)


def put(value, name="x", index=None):
    return lambda: store_of(tensor(7, 3)).put_tensor(value, None, name, index)


WRONG = {
    "'x': index[2] is 7, outside 0..6; correct it": get(torch.tensor([0, 6, 7, -1])),
    "'x' of 'paper': index[0] is -1, outside 0..6; correct it": get(torch.tensor([-1]), "paper"),
    "'x': the index is 7, outside 0..6; correct it": get(7),
    "'x': the index is -1, outside 0..6; correct it": get(-1),
    "'x': the index has 6 bools for 7 rows; give one for each": get(torch.ones(6).bool()),
    "'x': index holds torch.float32; use integers (torch.long)": get(torch.ones(2)),
    "'x': the index has shape (1, 2); give one dimension": get(torch.tensor([[1, 2]])),
    "'x': the index is 8, outside 0..6; correct it": get(torch.tensor(8)),
    "rows of 'x' have shape (2, 2); give (2, 3)": put(torch.ones(2, 2), index=torch.tensor([1, 2])),
    "rows of 'x' have shape (1, 3); give (3,)": put(torch.ones(1, 3), index=1),
    "'x': index[1] is 9, outside 0..6; correct it": put(torch.ones(2, 3), index=torch.tensor([1, 9])),
    "'y' has 6 rows, but other tensors of the group have 7; give as many": put(torch.ones(6), "y"),
    "'y' is not there, so no rows of it can be written; put it whole first, with index=None":
        put(torch.ones(2), "y", slice(2)),
    "'y' is one number; give a tensor with one row for each node or edge": put(torch.tensor(1.0), "y"),
    "'y' is sparse; use .to_dense()": put(torch.eye(7).to_sparse(), "y"),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong(message):
    with pytest.raises(ValueError) as error:
        WRONG[message]()
    assert str(error.value) == message


def test_wrong_types_and_names():
    with pytest.raises(TypeError, match=r"^'x': the index is a float; give None, an integer, a slice, or a tensor "):
        get(1.5)()
    for index, kind in (("ids", "str"), ([None], "list"), (True, "bool")):
        with pytest.raises(TypeError, match=rf"^'x': the index is a {kind}; give None, an integer, a slice, or a tensor "):
            get(index)()
    store = store_of(tensor(7, 3), "paper")
    for call in (lambda: store.get_tensor("author", "x", None), lambda: store.update_tensor(tensor(), "author", "x", 1)):
        with pytest.raises(KeyError) as error:
            call()
        assert error.value.args == ("'x' of 'author' is not in the store, which has 'x' of 'paper'",)
    with pytest.raises(KeyError, match="which has nothing"):
        FeatureStore().get_tensor(None, "x", None)
    with pytest.raises(ValueError, match="not fully specified"):
        store.update_tensor(tensor(), "paper", "x")


def test_a_failed_change_changes_nothing():
    store = store_of(tensor(7, 3))
    store.put_tensor(tensor(7), None, "y", None)
    for call in (lambda: store.update_tensor(tensor(6), None, "y", None), lambda: store.put_tensor(tensor(6), None, "z",
                                                                                                 None)):
        with pytest.raises(ValueError):
            call()
    assert torch.equal(store[None, "y", None], tensor(7)) and store.get_tensor_size(None, "z") is None


def test_the_same_as_data():
    """torch_geometric.data.Data is a feature store too."""
    data, store = Data(x=tensor(7, 3)), store_of(tensor(7, 3))
    for index in (None, slice(1, 4), torch.tensor([2, 2]), 5):
        assert torch.equal(data.get_tensor("x", index), store[None, "x", index])

"""plait.store.FeatureStore: rows of nodes and edges by name."""

import dataclasses

import torch
import torch_geometric.data

from plait._library import ops
from plait.store._index import checked_index, shape_of

# The group of edges of a graph without types; that of its nodes is None.
EDGES = (None, None)

_ROWS_AT_ONCE = 2**18


@dataclasses.dataclass
class _RowsAttr(torch_geometric.data.TensorAttr):
    """As TensorAttr, whose comparison of an index with its mark for none fails for an array."""

    def is_set(self, key):
        return getattr(self, key) is not type(self).index


class FeatureStore(torch_geometric.data.FeatureStore):
    """Tensors by group and name, as torch_geometric.data.FeatureStore: `store[group, name, index]`.

    A group is a type of nodes (None in a graph without types) or a tuple, of edges. All tensors of a group have
    as many rows.

    Args:
        file: the result of plait.store.load. None: the store is empty.
        device: where tensors of the file are, with all features. None: the CPU, and features stay in the file.

    `put_tensor` with index None keeps the tensor itself, not a copy; with another index it writes these rows of
    a tensor that is there. Features of a file cannot be written; `remove_tensor` takes them out of the store, so
    that batches do not have them, and leaves the file as it is.

    An index is None (all rows), an integer, a slice, or a tensor or list of ids or of bools, one for each row.
    Rows are on the device where their tensor is, rows of a file on the CPU.

    Raises KeyError for a group and name that the store does not have, and ValueError for an index out of range,
    which it names, and for tensors of another shape than asked for.
    """

    def __init__(self, file=None, device=None):
        super().__init__(_RowsAttr)
        self._columns = {}
        if file is None:
            return
        if file.width > 0:
            x = _FileColumn("'x'", file)
            self._columns[None, "x"] = x if device is None else _TensorColumn(x.name, x.copy_to(device))
        for group, tensors in ((None, file.of_nodes), (EDGES, file.of_edges)):
            for name, tensor in tensors.items():
                self._keep(tensor.to(device), self._tensor_attr_cls(group, name, None))

    @property
    def gpus(self):
        """The GPUs on which tensors are."""
        return {column.device for column in self._columns.values() if column.device.type == "cuda"}

    def num_rows(self, group):
        """Returns the number of rows of a group's tensors; None if it has no tensors."""
        return next((column.shape[0] for (of, _), column in self._columns.items() if of == group), None)

    def get_all_tensor_attrs(self):
        """Returns the group and name of each tensor. Those of edges without types are left out, as in
        torch_geometric.data.Data: loaders would read them by the ids of nodes."""
        return [torch_geometric.data.TensorAttr(group, name) for group, name in self._columns if group != EDGES]

    def update_tensor(self, tensor, *args, **kwargs):
        """Replaces a tensor, or with an index rows of it."""
        attr = self._tensor_attr_cls.cast(*args, **kwargs)
        column = self._column(attr)
        if not attr.is_fully_specified():
            return super().update_tensor(tensor, attr)  # tells what is missing
        if attr.index is None and not column.is_in_file:
            self._keep(tensor, attr)
        else:
            column.write(attr.index, tensor)
        return True

    def _put_tensor(self, tensor, attr):
        column = self._columns.get((attr.group_name, attr.attr_name))
        if column is not None and (attr.index is not None or column.is_in_file):
            column.write(attr.index, tensor)
        elif attr.index is not None:
            raise ValueError(f"{name_of(attr)} is not there, so no rows of it can be written; put it whole first, "
                             "with index=None")
        else:
            self._keep(tensor, attr)
        return True

    def _keep(self, tensor, attr):
        tensor, name, key = torch.as_tensor(tensor), name_of(attr), (attr.group_name, attr.attr_name)
        if tensor.layout != torch.strided:
            raise ValueError(f"{name} is sparse; use .to_dense()")
        if tensor.dim() == 0:
            raise ValueError(f"{name} is one number; give a tensor with one row for each node or edge")
        others = {column.shape[0] for other, column in self._columns.items() if other[0] == key[0] and other != key}
        if others and tensor.size(0) not in others:
            raise ValueError(f"{name} has {tensor.size(0)} rows, but other tensors of the group have {others.pop()}; "
                             "give as many")
        self._columns[key] = _TensorColumn(name, tensor)

    def _get_tensor(self, attr):
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs):
        # Ids that tensors share, as the ids of a batch, are checked once, and copied once to each device.
        checked, there, found = {}, {}, []
        for attr in attrs:
            column = self._column(attr)
            key = id(attr.index), column.shape[0]
            if key not in checked:
                checked[key] = checked_index(column.name, attr.index, column.shape[0])
            ids = checked[key]
            if isinstance(ids, torch.Tensor):
                place = *key, column.device
                ids = there[place] = there.get(place, ids).to(column.device)
            found.append(column.rows(ids))
        return found

    def _remove_tensor(self, attr):
        return self._columns.pop((attr.group_name, attr.attr_name), None) is not None

    def _get_tensor_size(self, attr):
        column = self._columns.get((attr.group_name, attr.attr_name))
        if column is None:
            return None
        return shape_of(checked_index(column.name, attr.index, column.shape[0]), column.shape)

    def _column(self, attr):
        column = self._columns.get((attr.group_name, attr.attr_name))
        if column is None:
            there = ", ".join(each.name for each in self._columns.values()) or "nothing"
            raise KeyError(f"{name_of(attr)} is not in the store, which has {there}")
        return column


class _Column:
    """A tensor of the store, with its name for messages, its shape, and the device where its rows are."""

    def rows(self, ids):
        """Returns the rows of ids that checked_index() gave, which are on the column's device."""
        if isinstance(ids, int):
            return self.gather(torch.tensor([ids], device=self.device))[0]
        return self.whole() if ids is None else self.gather(ids)


class _TensorColumn(_Column):
    """A tensor in memory."""

    is_in_file = False

    def __init__(self, name, tensor):
        self.name, self._tensor = name, tensor
        self.shape, self.device = tuple(tensor.shape), tensor.device

    def whole(self):
        return self._tensor

    def gather(self, ids):
        return self._tensor.index_select(0, ids)

    def write(self, index, rows):
        ids, rows = checked_index(self.name, index, self.shape[0]), torch.as_tensor(rows)
        wanted = shape_of(ids, self.shape)
        if tuple(rows.shape) != wanted:
            raise ValueError(f"rows of {self.name} have shape {tuple(rows.shape)}; give {wanted}")
        self._tensor[slice(None) if ids is None else ids] = rows.to(self._tensor)


class _FileColumn(_Column):
    """The features of a graph file."""

    is_in_file, device = True, torch.device("cpu")

    def __init__(self, name, file):
        self.name, self._file = name, file
        self.shape = file.num_nodes, file.width

    def whole(self):
        return self.gather(torch.arange(self.shape[0]))

    def copy_to(self, device):
        """Returns all rows on a device. Some rows at a time, so that the host holds few of them."""
        if torch.device(device).type == "cpu":
            rows, width = self.shape
            ops.require_memory(rows * width * torch.float32.itemsize, f"a copy of {self.name}")
        copy = torch.empty(self.shape, device=device, dtype=torch.float32)
        for ids in torch.arange(self.shape[0]).split(_ROWS_AT_ONCE):
            copy[ids[0]:ids[-1] + 1] = self.gather(ids)
        return copy

    def gather(self, ids):
        return self._file.gather(ids)

    def write(self, index, rows):
        raise ValueError(f"{self.name} is in a file, which is not written; remove it from the store first, or take "
                         "another name")


def name_of(attr):
    """Returns the words for a tensor in messages."""
    of = "" if attr.group_name is None else f" of {attr.group_name!r}"
    return f"{attr.attr_name!r}{of}"

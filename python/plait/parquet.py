"""Reads and writes graphs as Parquet tables, through pyarrow.

    python -m plait.parquet edges.parquet --nodes nodes.parquet -o graph.plait
    graph = plait.parquet.read("edges.parquet", nodes="nodes.parquet")

A table of edges has one row per edge: integer columns `source` and `target`, and optionally
`weight`. A table of nodes has one row per node, in order of ids or with a column `id`. Its columns
are `label`, an integer, empty where unknown; `split`, one of train, val and test, or empty; and
features, which are one column `x` of lists of equal length, or all other columns of numbers, in the
order of the file. Options name the edge columns if they have other names. Only columns that are
used are read.
"""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

_SPLITS = ("train", "val", "test")
_OWN_COLUMNS = ("id", "label", "split")


@dataclasses.dataclass(frozen=True)
class EdgeColumns:
    """Names of the columns of a table of edges; no weights are read if weight is None."""

    source: str = "source"
    target: str = "target"
    weight: str | None = None


def _pyarrow():
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("plait: Parquet needs the package pyarrow; pip install pyarrow") from None
    return pyarrow


def _free_memory():
    """Returns the bytes that programs can still get, or None where the system does not say."""
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


class _Table:
    """Columns of a file, as NumPy arrays. Errors are ValueErrors that name the file, OSErrors if it cannot be read,
    and MemoryErrors: a few bytes of a file can stand for any number of equal values."""

    def __init__(self, path):
        pyarrow = _pyarrow()
        self.path = path
        if isinstance(path, (str, os.PathLike)):
            open(path, "rb").close()  # whose errors are Python's own
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (OSError, pyarrow.ArrowException) as error:
            raise ValueError(f"{path}: {' '.join(str(error).split())}") from None
        self._types = pyarrow.types
        self.schema = self._file.schema_arrow
        self.rows = self._file.metadata.num_rows

    def column(self, name):
        if name not in self.schema.names:
            raise ValueError(
                f"{self.path}: there is no column {name}; it has {', '.join(self.schema.names)}"
            )
        self._require_memory(name)
        return self._file.read(columns=[name]).column(0).combine_chunks()

    def _require_memory(self, name):
        groups = (self._file.metadata.row_group(i) for i in range(self._file.metadata.num_row_groups))
        columns = (group.column(i) for group in groups for i in range(group.num_columns))
        values = sum(column.num_values for column in columns if column.path_in_schema.split(".")[0] == name)
        needed, free = 16 * values, _free_memory()  # as it is read, and as it is returned
        if free is not None and needed > free:
            raise MemoryError(f"{self.path}: column {name} has {values} values, which need {needed / 2**30:.1f} "
                              f"GiB, but only {free / 2**30:.1f} GiB is free")

    def integers(self, name, missing=None):
        """Returns int64; empty entries become `missing`, or are refused if it is None."""
        column = self.column(name)
        if not self._types.is_integer(column.type):
            raise ValueError(f"{self.path}: column {name} holds {column.type}, not integers")
        if column.null_count > 0:
            if missing is None:
                row = column.is_null().to_numpy(zero_copy_only=False).argmax()
                raise ValueError(f"{self.path}: column {name} is empty in row {row}")
            column = column.fill_null(missing)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype == np.uint64 and values.size > 0 and values.max() >= 2**63:
            raise ValueError(f"{self.path}: column {name}: {values.max()} is above {2**63 - 1}")
        return values.astype(np.int64, copy=False)

    def floats(self, name):
        """Returns float32; the caller must refuse values that are empty or not finite."""
        column = self.column(name)
        if not self._is_number(column.type):
            raise ValueError(f"{self.path}: column {name} holds {column.type}, not numbers")
        return column.to_numpy(zero_copy_only=False).astype(np.float32)

    def lists(self, name):
        """Returns float32 of one row per entry, from a column of lists that are all as long as the
        first."""
        column = self.column(name)
        values = column.flatten()
        width = len(values) // max(len(column), 1)
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(lengths != width)
        if wrong.size > 0:
            raise ValueError(
                f"{self.path}: column {name} has {lengths[wrong[0]]} numbers in row {wrong[0]}, "
                f"but {len(values)} in {len(column)} rows; each row needs as many"
            )
        return values.to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(column), width)

    def features(self):
        """Returns all features, or None."""
        if "x" in self.schema.names and self._is_list(self.schema.field("x").type):
            return self.lists("x")
        names = [field.name for field in self.schema
                 if field.name not in _OWN_COLUMNS and self._is_number(field.type)]
        return np.stack([self.floats(name) for name in names], axis=1) if names else None

    def _is_number(self, of):
        return self._types.is_integer(of) or self._types.is_floating(of)

    def _is_list(self, of):
        types = self._types
        a_list = types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of)
        return a_list and self._is_number(of.value_type)


def _splits(table):
    column = table.column("split")
    words = np.array(["" if word is None else word for word in column.to_pylist()], dtype=object)
    unknown = np.flatnonzero(~np.isin(words, ("", *_SPLITS)))
    if unknown.size > 0:
        raise ValueError(
            f"{table.path}: column split is {words[unknown[0]]!r} in row {unknown[0]}; it is one of "
            f"{', '.join(_SPLITS)}, or empty"
        )
    return {f"{split}_masks": (words == split)[None] for split in _SPLITS}


def _node_arrays(path):
    """Returns the arrays of a table of nodes, in order of ids."""
    table = _Table(path)
    arrays = {}
    if (features := table.features()) is not None:
        arrays["x"] = features
    if "label" in table.schema.names:
        arrays["y"] = table.integers("label", missing=-1)
    if "split" in table.schema.names:
        arrays |= _splits(table)
    arrays.setdefault("y", np.full(table.rows, -1))  # gives the number of nodes
    if "id" in table.schema.names:
        ids = table.integers("id")
        order = np.argsort(ids, kind="stable")
        if not np.array_equal(ids[order], np.arange(table.rows)):
            raise ValueError(
                f"{path}: column id must hold each of 0 .. {table.rows - 1} once, in any order"
            )
        arrays = {name: a[..., order] if name.endswith("_masks") else a[order]
                  for name, a in arrays.items()}
    return arrays


def read_arrays(edges, nodes=None, columns=EdgeColumns()):
    """Returns the arrays of a graph archive (docs/formats.md) from a table of edges and one of
    nodes."""
    table = _Table(edges)
    arrays = {"edge_index": np.stack([table.integers(columns.source),
                                      table.integers(columns.target)])}
    if columns.weight is not None:
        arrays["edge_weight"] = table.floats(columns.weight)
    return arrays | (_node_arrays(nodes) if nodes is not None else {})


def read(edges, nodes=None, columns=EdgeColumns()):
    """Returns a plait.Graph with the attributes that plait.Graph.load sets.

    Raises ValueError that names the file, column and row if a table differs from the description in
    the module's docstring, OSError if a file cannot be read, MemoryError if a column does not fit in memory,
    and ImportError without pyarrow.
    """
    import torch

    from plait.graph import Graph

    arrays = {name: torch.from_numpy(np.require(array, requirements="CW"))
              for name, array in read_arrays(edges, nodes, columns).items()}
    nodes_there = len(arrays["y"]) if nodes is not None else None
    graph = Graph(arrays["edge_index"], nodes_there, arrays.get("edge_weight"))
    graph.x = arrays.get("x")
    graph.y = arrays.get("y")
    for split in _SPLITS:
        masks = arrays.get(f"{split}_masks")
        setattr(graph, f"{split}_mask", None if masks is None else masks[0])
    return graph


def write(graph, edges, nodes=None):
    """Writes a plait.Graph of at most one split: its edges to `edges` and, if `nodes` names a file,
    x as lists, labels and the split to `nodes`."""
    pyarrow = _pyarrow()
    source, target = graph.edge_index.numpy()
    table = {"source": source, "target": target}
    if graph.edge_weight is not None:
        table["weight"] = graph.edge_weight.numpy()
    _write_whole(pyarrow.table(table), edges)
    if nodes is None:
        return
    table = {"id": np.arange(graph.num_nodes)}
    if graph.x is not None:
        flat = pyarrow.array(np.ascontiguousarray(graph.x.numpy()).reshape(-1))
        table["x"] = pyarrow.FixedSizeListArray.from_arrays(flat, graph.x.size(1))
    if graph.y is not None:
        labels = graph.y.numpy()
        table["label"] = pyarrow.array(labels, mask=labels < 0)
    masks = {split: getattr(graph, f"{split}_mask") for split in _SPLITS}
    if any(mask is not None for mask in masks.values()):
        table["split"] = _split_words(masks, graph.num_nodes)
    _write_whole(pyarrow.table(table), nodes)


def _write_whole(table, path):
    """Writes a file that appears under its name when it is complete; of a link, the file that it leads to
    is replaced, unless the link is another user's."""
    if os.path.islink(path) and os.lstat(path).st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"{path}: cannot be written: it is a link of another user; give another name")
    target = pathlib.Path(path).resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: cannot be written: there is no folder {target.parent}; make it first")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".plait-") as scratch:
        fresh = pathlib.Path(scratch) / "table"
        _pyarrow().parquet.write_table(table, fresh)
        os.replace(fresh, target)


def _split_words(masks, num_nodes):
    words = np.full(num_nodes, None, dtype=object)
    for split, mask in masks.items():
        if mask is None:
            continue
        if mask.dim() != 1:
            raise ValueError(f"{split}_mask has {len(mask)} splits, but a table of nodes holds one")
        words[mask.numpy()] = split
    return words


def main(arguments=None):
    from plait.datasets import DatasetError, find_program

    parser = argparse.ArgumentParser(
        prog="python -m plait.parquet", description="Converts a graph in Parquet files.")
    parser.add_argument("edges", help="table of edges")
    parser.add_argument("--nodes", help="table of nodes: features, labels, splits")
    parser.add_argument("--source", default="source", help="column of sources (%(default)s)")
    parser.add_argument("--target", default="target", help="column of targets (%(default)s)")
    parser.add_argument("--weight", help="column of weights; without, none are read")
    parser.add_argument("-o", "--out", required=True,
                        help="file to write: .plait, or another that plait writes")
    options = parser.parse_args(arguments)
    try:
        columns = EdgeColumns(options.source, options.target, options.weight)
        arrays = read_arrays(options.edges, options.nodes, columns)
        program = find_program()
    except (ValueError, OSError, ImportError, DatasetError) as error:
        print(f"plait: {error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"plait: {error}", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="plait-") as scratch:
        archive = pathlib.Path(scratch) / "graph.npz"
        np.savez(archive, **arrays)
        return subprocess.run([program, "convert", str(archive), options.out],
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

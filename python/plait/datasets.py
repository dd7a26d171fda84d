"""Converts datasets that PyTorch Geometric's or OGB's own classes can download to files of Plait.

    python -m plait.datasets Cora -o cora.plait
    python -m plait.datasets --list

The class downloads into --root and keeps its files there. The graph, its weights, features, labels
and splits are then passed to `plait convert` as arrays; the sets of graphs of TU Dortmund become one file. The packages are imported only when a
dataset needs them: torch-geometric, and ogb for names that begin with ogbn.
"""

import argparse
import dataclasses
import difflib
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import numpy as np


class DatasetError(Exception):
    """An error that the user can correct, in one line."""


@dataclasses.dataclass(frozen=True)
class Source:
    """The source of a dataset: a class, and its arguments other than `root`."""

    module: str
    type: str
    arguments: dict

    @property
    def package(self):
        return self.module.split(".")[0].replace("_", "-")

    def load(self, root):
        """Returns the dataset; downloads it to `root` unless it is there."""
        try:
            module = importlib.import_module(self.module)
        except ImportError as error:
            raise DatasetError(
                f"it needs the package {self.package}: {_one_line(error)}; pip install "
                f"{self.package}") from None
        return getattr(module, self.type)(root=str(root), **self.arguments)

    def graph_of(self, dataset):
        """Returns the dataset's only graph, or all graphs of a set as one."""
        if self.type != "TUDataset":
            return dataset[0]
        from torch_geometric.data import Batch
        return Batch.from_data_list([*dataset])


def _pyg(type_, argument, names):
    """Describes a class of several datasets: their common names -> the value of `argument`."""
    return {name: Source("torch_geometric.datasets", type_, {argument: value} if argument else {})
            for name, value in names.items()}


DATASETS = {
    **_pyg("Planetoid", "name", {n: n for n in ("Cora", "Citeseer", "Pubmed")}),
    **_pyg("CitationFull", "name", {f"CitationFull-{n}": n for n in
                                    ("Cora", "Cora_ML", "CiteSeer", "DBLP", "PubMed")}),
    **_pyg("Amazon", "name", {f"Amazon-{n}": n for n in ("Computers", "Photo")}),
    **_pyg("Coauthor", "name", {f"Coauthor-{n}": n for n in ("CS", "Physics")}),
    **_pyg("WebKB", "name", {n: n for n in ("Cornell", "Texas", "Wisconsin")}),
    **_pyg("WikipediaNetwork", "name", {n.capitalize(): n for n in ("chameleon", "squirrel")}),
    **_pyg("HeterophilousGraphDataset", "name",
           {n: n for n in ("Roman-empire", "Amazon-ratings", "Minesweeper", "Tolokers",
                           "Questions")}),
    **_pyg("GitHub", None, {"GitHub": None}),
    **_pyg("FacebookPagePage", None, {"FacebookPagePage": None}),
    **_pyg("LastFMAsia", None, {"LastFMAsia": None}),
    **_pyg("DeezerEurope", None, {"DeezerEurope": None}),
    **_pyg("Actor", None, {"Actor": None}),
    **_pyg("WikiCS", None, {"WikiCS": None}),
    **_pyg("Flickr", None, {"Flickr": None}),
    **_pyg("Yelp", None, {"Yelp": None}),
    **_pyg("AmazonProducts", None, {"AmazonProducts": None}),
    **_pyg("Reddit", None, {"Reddit": None}),
    **_pyg("Reddit2", None, {"Reddit2": None}),
    **{name: Source("torch_geometric.datasets", "TUDataset", {"name": name, "use_node_attr": True})
       for name in ("MUTAG", "PTC_MR", "NCI1", "NCI109", "PROTEINS", "ENZYMES", "DD", "COLLAB", "IMDB-BINARY",
                    "IMDB-MULTI", "REDDIT-BINARY", "REDDIT-MULTI-5K", "Mutagenicity", "FRANKENSTEIN")},
    **{name: Source("ogb.nodeproppred", "PygNodePropPredDataset", {"name": name})
       for name in ("ogbn-arxiv", "ogbn-products", "ogbn-proteins", "ogbn-papers100M")},
}


def _one_line(error):
    return " ".join(str(error).split())


def find(name):
    """Returns a dataset's exact name and its source; `name` may have any case."""
    by_lower_case = {known.lower(): known for known in DATASETS}
    if name.lower() in by_lower_case:
        known = by_lower_case[name.lower()]
        return known, DATASETS[known]
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.4)
    hint = " or ".join(by_lower_case[n] for n in near) or "one of --list"
    raise DatasetError(f"it is unknown; did you mean {hint}?")


def _array(tensor, dtype=None):
    array = tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else np.asarray(tensor)
    return array if dtype is None else np.ascontiguousarray(array, dtype=dtype)


def _features(x):
    """Returns x as a dense array or, if at least three of four entries are 0, as sparse arrays."""
    x = _array(x.to_dense() if hasattr(x, "to_dense") else x, np.float32)
    if x.ndim != 2 or x.size == 0:
        return {}
    rows, columns = np.nonzero(x)
    if 4 * len(rows) > x.size:
        return {"x": x}
    counts = np.bincount(rows, minlength=len(x))
    return {"x_data": x[rows, columns], "x_indices": columns.astype(np.int32),
            "x_indptr": np.concatenate([[0], np.cumsum(counts)]), "x_shape": np.array(x.shape)}


def _labels(y, examples):
    """Returns one class per node or graph, -1 for none, or 0 or 1 for each class if nodes have several
    labels; of other labels nothing, and warns."""
    y = _array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and len(y) == examples and np.isin(y, (0, 1)).all():
        return {"y": y.astype(np.uint8)}
    if y.shape != (examples,):
        print(f"plait: warning: labels of shape {y.shape} are left out: {examples} nodes need one each, "
              "or 0 or 1 for each class", file=sys.stderr)
        return {}
    known = np.isfinite(y)
    return {"y": np.where(known, y, -1).astype(np.int64)}


def _means_of_edges(values, edge_index, nodes):
    """Returns for each node the mean over its incoming edges, as OGB's examples do for ogbn-proteins."""
    values, target = _array(values, np.float32), _array(edge_index)[1]
    count = np.maximum(np.bincount(target, minlength=nodes), 1)
    return np.stack([np.bincount(target, column, nodes) / count for column in values.T], 1).astype(np.float32)


def _splits(data, dataset):
    if hasattr(dataset, "get_idx_split"):
        parts = dataset.get_idx_split()
        names = {"train": "train", "val": "valid", "test": "test"}
        return {ours: _array(parts[theirs], np.int64) for ours, theirs in names.items()}
    masks = {part: getattr(data, f"{part}_mask", None) for part in ("train", "val", "test")}
    masks = {part: _array(mask, bool) for part, mask in masks.items() if mask is not None}
    splits = max((m.shape[1] for m in masks.values() if m.ndim == 2), default=1)
    # A mask without splits, such as WikiCS' test mask, applies to all splits.
    return {f"{part}_masks": np.broadcast_to(m.T, (splits, len(m))) for part, m in masks.items()}


def arrays_of(data, dataset):
    """Returns the arrays of a graph archive, under the names of docs/formats.md."""
    nodes = int(data.num_nodes)
    arrays = {"edge_index": _array(data.edge_index, np.int64)}
    weight = getattr(data, "edge_weight", None)
    if weight is not None:
        arrays["edge_weight"] = _array(weight, np.float32)
    of_edges = getattr(data, "edge_attr", None)
    if getattr(data, "x", None) is not None:
        arrays |= _features(data.x)
    elif of_edges is not None and of_edges.dim() == 2:
        print("plait: features of nodes are the means of the features of their edges, as there are no others",
              file=sys.stderr)
        arrays["x"] = _means_of_edges(of_edges, data.edge_index, nodes)
    batch = getattr(data, "batch", None)
    if batch is not None:
        arrays["graph_id"] = _array(batch, np.int64)
    if getattr(data, "y", None) is not None:
        arrays |= _labels(data.y, nodes if batch is None else int(batch.max()) + 1)
    arrays |= _splits(data, dataset)
    if not arrays.keys() & {"x", "x_shape", "y"}:
        arrays["y"] = np.full(nodes, -1)  # gives the number of nodes
    return arrays


def find_program():
    """Returns the path of the program plait: PLAIT_PROGRAM, the one beside this Python, or the
    first on PATH."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "plait"
    named = os.environ.get("PLAIT_PROGRAM")
    program = named or (str(beside) if beside.exists() else shutil.which("plait"))
    if program is None or not os.path.exists(program):
        raise DatasetError(f"the program plait was not found{f' at {named}' if named else ''}; put "
                           "it on PATH, or name it in PLAIT_PROGRAM")
    return program


def fetch(name, out, root):
    """Downloads the dataset under `root`, unless it is there, and writes it to `out`."""
    name, source = find(name)
    program = find_program()
    try:
        # PyG's classes would put files of the same name into a common folder.
        dataset = source.load(root if source.package == "ogb" else pathlib.Path(root) / name)
        data = source.graph_of(dataset)
    except DatasetError:
        raise
    except Exception as error:  # of the package, its files or the network
        raise DatasetError(f"{source.type} could not load it: {type(error).__name__}: "
                           f"{_one_line(error)}") from None
    folder = pathlib.Path(out).resolve().parent
    if not folder.is_dir():
        raise DatasetError(f"there is no folder {folder}; make it first")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".plait-") as scratch:
        archive = pathlib.Path(scratch) / f"{name}.npz"
        np.savez(archive, **arrays_of(data, dataset))
        done = subprocess.run([program, "convert", str(archive), str(out)], check=False)
    return done.returncode


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m plait.datasets",
        description="Gets a dataset of PyTorch Geometric or OGB and converts it.")
    parser.add_argument("name", nargs="?", help="see --list")
    parser.add_argument("-o", "--out", help="file to write: .plait, or another that plait writes")
    parser.add_argument("--root", default="dataset", help="where downloads are kept (%(default)s)")
    parser.add_argument("--list", action="store_true", help="list the names")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(DATASETS))
        return 0
    if options.name is None or options.out is None:
        parser.error("give a name and -o FILE.plait, or --list")
    try:
        return fetch(options.name, options.out, options.root)
    except DatasetError as error:
        print(f"plait: {options.name}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Stores of PyTorch Geometric 2.8 for features and edges: over a graph file that stays where it is, and over
tensors.

    features, edges = plait.store.load("products.plait")
    train = features[None, "train_mask", None]    # group None: the nodes of a graph without types
    loader = plait.loader.NeighborLoader((features, edges), [15, 10], input_nodes=train, batch_size=1024)

A .plait file is mapped, not copied: a batch takes the rows of features that it needs from it. Opening verifies
the file, which reads it once. On several ranks of a host, all read the same mapped pages.

`FeatureStore` and `GraphStore` are derived from PyTorch Geometric's classes of these names, so that its samplers
and loaders read them, and plait.loader's.
"""

try:
    import torch_geometric.data  # noqa: F401
except ModuleNotFoundError as error:
    if error.name.partition(".")[0] != "torch_geometric":
        raise
    raise ModuleNotFoundError("plait.store needs PyTorch Geometric; pip install torch-geometric",
                              name=error.name) from None

from plait._devices import checked_device
from plait._files import reading_options
from plait.store._file import GraphFile
from plait.store.edges import GraphStore
from plait.store.features import FeatureStore

__all__ = ["FeatureStore", "GraphStore", "load"]


def load(path, device=None, *, vertices=None, directed=False, first_line="auto"):
    """Returns the FeatureStore and the GraphStore of a graph file, of any format of docs/formats.md.

    Args:
        path: the file.
        device: "cuda", "cuda:N" or "cpu", to which all tensors but the edges are then copied, so that batches are
            gathered there: for features that fit into the memory of a GPU. Give loaders the same device. None: as
            below.
        vertices, directed, first_line: as plait.Graph.load takes them.

    Features of a .plait file stay in the file; files of other formats are read into memory. Nodes of a file that
    `plait reorder` wrote have the ids from before: its edges are sorted by them in memory, its features stay.

    Attributes of nodes, in group None:
        x: (N, width), float32, whatever its form in the file. Rows of sparse features come dense.
        y: (N,), int64, -1 where unknown; or (N, classes) of 0 and 1.
        train_mask, val_mask, test_mask: (N,), bool; (N, K) if there are K > 1 splits.
        original_ids: (N,), int64.
    Of edges, in group (None, None):
        edge_weight: (E,), float32, in the order of the edges: by target, then by source.

    The edges are of type None. They are copied in the layout "csc" when a loader first asks for them, which takes
    8 bytes per node and edge, and are then shared by all loaders of the store.

    Raises ValueError that names the file and the place if the content is wrong, or if the file holds a set of
    graphs, OSError, such as FileNotFoundError, if the file cannot be read, and RuntimeError if it does not fit in
    memory.
    """
    file = GraphFile(path, reading_options(vertices, directed, first_line))
    return FeatureStore(file, None if device is None else checked_device(device)), GraphStore(file)

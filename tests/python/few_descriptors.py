"""Ranks of which some run out of descriptors: spreading a graph raises on all, until they are back."""

import contextlib
import os
import resource

import pytest
import torch

import plait
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

EDGES = torch.randint(0, 50, (2, 300), generator=torch.Generator().manual_seed(0))


@contextlib.contextmanager
def descriptors_left(count):
    """Within it, this process can open `count` descriptors more."""
    before, held = resource.getrlimit(resource.RLIMIT_NOFILE), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    for descriptor in held[:count]:
        os.close(descriptor)
    try:
        yield
    finally:
        for descriptor in held[count:]:
            os.close(descriptor)
        with contextlib.suppress(ValueError):  # only root may raise it
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


def spread():
    torch.manual_seed(0)
    data = Data(x=torch.ones(50, 4), edge_index=EDGES.clone())
    model, data = plait.parallelize(GCNConv(4, 4), data)
    return plait.sum(model(data.x, data.edge_index).sum().reshape(1)).item()


for who, left in (({0}, 0), ({1}, 3), ({0, 1}, 1)):
    with descriptors_left(left) if plait.rank() in who else contextlib.nullcontext():
        with pytest.raises(RuntimeError, match=f"rank {min(who)}: .*too many open files.*ulimit -n"):
            spread()
print(f"{spread():.3f}")

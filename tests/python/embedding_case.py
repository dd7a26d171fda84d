"""Bags, gradients and comparisons of the checks of embedding tables: embedding_checks.py and embedding_refusals.py.
On the CPU, or, with EMBEDDINGS_ON=gpu, on the GPU of each rank."""

import os

import torch

import plait

DEVICE = plait.device() if os.environ.get("EMBEDDINGS_ON") == "gpu" else torch.device("cpu")
SPLITS = ("replicated", "table", "columns", "rows", None)
NARROW = (torch.bfloat16, torch.float16)


def close(found, wanted):
    """Numbers of a narrow type may differ from float32 ones by what rounding to that type costs, and no more."""
    rtol = torch.finfo(found.dtype).eps / 2 + 1e-4 if found.dtype in NARROW else 1e-4
    assert torch.allclose(found.float(), wanted.float(), rtol=rtol, atol=1e-5), (found, wanted)


def bags_of(rank, rows, per_table, seed=0, without=()):
    """Returns ids, offsets and weights of a rank, table by table; a quarter of the bags are empty, and all bags of
    the tables `without` ids."""
    random = torch.Generator(DEVICE).manual_seed(1000 * seed + rank)
    sizes = torch.randint(0, 4, (len(rows), per_table), generator=random)
    for t in without:
        sizes[t] = 0
    ids = [torch.randint(n, (int(size.sum()),), generator=random) for n, size in zip(rows, sizes)]
    ends = sizes.flatten().cumsum(0)
    return torch.cat(ids), ends - sizes.flatten(), torch.rand(int(ends[-1]) if len(ends) else 0, generator=random)


def table_bags(bags, t, tables):
    """Returns the ids, offsets and weights of one table's bags."""
    ids, offsets, weights = bags
    per_table = len(offsets) // tables
    ends = torch.cat([offsets, torch.tensor([len(ids)])])
    first, last = int(ends[t * per_table]), int(ends[(t + 1) * per_table])
    return ids[first:last], offsets[t * per_table:(t + 1) * per_table] - first, weights[first:last]


def samples(rank):
    """The last of several ranks has no samples."""
    return 0 if plait.world_size() > 1 and rank == plait.world_size() - 1 else 11 + 3 * rank


def whole_tables(layer, count):
    with torch.no_grad():
        return [layer.full_weight(t) for t in range(count)]


def gradient_of(rank, per_table, tables, width):
    random = torch.Generator(DEVICE).manual_seed(rank + 77)
    return torch.randn(per_table, tables, width, generator=random)


def own_part(layer, t, whole):
    """Returns this rank's piece of a whole gradient."""
    copied = torch.empty_like(layer.weights[t], dtype=torch.float32)
    layer._tables.load(t, copied, whole)
    return copied


def run(checks):
    """Runs checks as one of the ranks."""
    torch.set_default_device(DEVICE)
    for check in checks:
        torch.manual_seed(3)
        check()

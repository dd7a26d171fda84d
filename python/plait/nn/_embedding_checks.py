"""Checks of the arguments of plait.nn.EmbeddingBag and EmbeddingBags, and their forms for C++."""

import contextlib
import dataclasses

import torch

from plait._library import ops
from plait.world import world_size

TYPES = (torch.float32, torch.bfloat16, torch.float16)


def names(types):
    return ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in types))


@dataclasses.dataclass
class Bags:
    """The bags that C++ takes: int64 ids and offsets, perhaps weights, or the text of the fault."""

    tensors: list
    with_end: bool = False
    fault: str = ""
    weights: torch.Tensor = None  # as given, which may want gradients
    wants: bool = False  # a step backward will follow


@contextlib.contextmanager
def on_all_or_none():
    """Collective. What fails in the block on one rank is an error on every rank, so that none waits for another."""
    own = None
    try:
        yield
    except Exception as error:
        own = error
    failure = "" if own is None else str(own) or type(own).__name__
    failure = ops.first_failure(failure) if world_size() > 1 else failure
    if failure:
        raise own or ValueError(failure)


def checked_tables(rows, width, rules, padding, splits, ids, samples, device):
    """Returns the arguments that torch.classes.plait.Embeddings is made of."""
    given, rows = rows, _as_list(rows)
    if rows is None:
        raise ValueError(f"num_embeddings is {given!r}; give a list with the rows of each table")
    padding = list(padding) if isinstance(padding, (list, tuple)) else [padding] * len(rows)
    device = _checked_device(device)
    if device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f"tables on {device} are not supported; use the CPU or a GPU")
    rules = _rules(*rules)
    _check_sizes(rows, width, padding, splits)
    rows, width = [int(n) for n in rows], int(width)
    padding = [_checked_padding(p, n) for p, n in zip(padding, rows, strict=True)]
    if splits is None:
        given, ids = ids, [1.0] * len(rows) if ids is None else _as_list(ids)
        if ids is None or len(ids) != len(rows) or not all(
                _is_number(i) and 0 <= i < float("inf") for i in ids) or (
                not _is_whole(samples) or not 1 <= samples < 2**63):
            raise ValueError(f"ids_per_sample is {given!r} and samples {samples!r}; give a number of 0 or more for "
                             f"each of {len(rows)} tables, and at least one sample")
        splits, owners = ops.choose_embedding_splits(rows, width, [float(i) for i in ids], int(samples), world_size())
    else:
        owners = _owners(splits, rows)
    return list(zip(rows, splits, owners, padding)), width, rules, device


def _rules(mode, by_frequency, max_norm, norm_type):
    """Returns what C++ takes; without max_norm, norms are not limited."""
    if mode == "max" and by_frequency:
        raise ValueError("scale_grad_by_freq is not defined for mode 'max'; leave it out")
    if not isinstance(mode, str):
        raise ValueError(f"mode is {mode!r}; use sum, mean or max")
    max_norm = float("inf") if max_norm is None else max_norm
    if not _is_number(max_norm) or not _is_number(norm_type) or not max_norm >= 0 or not norm_type > 0:
        raise ValueError(f"max_norm is {max_norm!r} and norm_type {norm_type!r}; give a norm of 0 or more, and a type "
                         "above 0")
    return mode, bool(by_frequency), float(max_norm), float(norm_type)


def _checked_device(device):
    """Returns the device; for None, PyTorch's default; with a number."""
    try:
        device = None if device is None else torch.device(device)
    except (TypeError, RuntimeError):
        raise ValueError(f"device is {device!r}; use the CPU or a GPU") from None
    return torch.empty(0, device=device).device


def _as_list(value):
    """Returns the items of a list or another sequence; None for a text, and for what has no items."""
    try:
        return None if isinstance(value, str) else list(value)
    except TypeError:
        return None


def _is_number(value):
    return hasattr(value, "__float__")


def _is_whole(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _check_sizes(rows, width, padding, splits):
    for count in (*rows, width):
        if not _is_whole(count) or not 0 <= count < 2**32:
            raise ValueError(f"tables of {rows} rows and {width} columns; give whole numbers below 2^32")
    if not rows:
        raise ValueError("there are no embedding tables; give the rows of at least one")
    if len(padding) != len(rows):
        raise ValueError(f"there are {len(padding)} padding_idx for {len(rows)} tables; give one, or one for each")
    if not all(p is None or _is_whole(p) for p in padding):
        raise ValueError(f"padding_idx is {padding}; give ids")
    if splits is not None and (_as_list(splits) is None or not all(isinstance(split, str) for split in splits)):
        raise ValueError(f"splits is {splits!r}; give a list with one name for each table")


def _checked_padding(padding, rows):
    if padding is None:
        return -1
    if not -rows <= padding < rows:
        raise ValueError(f"padding_idx {padding} is outside of the table's {rows} rows")
    return int(padding) % rows


def _owners(splits, rows):
    """Returns the owner of each table that is not divided: they are dealt out to ranks by size."""
    if len(splits) != len(rows):
        raise ValueError(f"there are {len(splits)} splits for {len(rows)} tables")
    owners, load = [0] * len(rows), [0] * world_size()
    for t in sorted(range(len(rows)), key=lambda t: -rows[t]):
        if splits[t] == "table":
            owners[t] = load.index(min(load))
            load[owners[t]] += rows[t]
    return owners


def checked_bags(ids, offsets, weights, mode, with_end, pieces):
    """Returns Bags; raises ValueError for tensors that cannot be bags, but does not look into them."""
    device = pieces[0].device
    _check_integers("ids", ids, device)
    if ids.dim() == 2:
        if offsets is not None or len(pieces) > 1:
            raise ValueError("ids have two dimensions, of which each row is a bag; leave out offsets, and give "
                             "them to one table")
        size = ids.size(1)
        offsets = (torch.arange(0, len(ids) * size, size, device=device) if size > 0 else
                   torch.zeros(len(ids), dtype=torch.int64, device=device))
        with_end = False
    elif ids.dim() != 1:
        raise ValueError(f"ids have shape {tuple(ids.shape)}; use one dimension with offsets, or two")
    _check_integers("offsets", offsets, device)
    if offsets.dim() != 1:
        raise ValueError(f"offsets have shape {tuple(offsets.shape)}, but must have one dimension")
    tensors = [ids.reshape(-1).long().contiguous(), offsets.long().contiguous()]
    if weights is not None:
        weights = _checked_weights(weights, ids, mode, pieces[0].dtype)
        tensors.append(weights.detach().float())
    return Bags(tensors, with_end, weights=weights)


def _check_integers(name, value, device):
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"{name} must be a tensor of integers, but there is a {type(value).__name__}")
    if value.dtype not in (torch.int64, torch.int32) or value.layout != torch.strided:
        raise ValueError(f"{name} are {value.dtype}; use a dense tensor of int64 or int32")
    if value.device != device:
        raise ValueError(f"{name} are on {value.device}, but the tables on {device}")


def _checked_weights(weights, ids, mode, dtype):
    if mode != "sum":
        raise ValueError(f"per_sample_weights need mode 'sum', not {mode!r}")
    if not isinstance(weights, torch.Tensor):
        raise ValueError(f"per_sample_weights must be a tensor, but there is a {type(weights).__name__}")
    if weights.shape != ids.shape or weights.dtype not in (torch.float32, dtype) or weights.device != ids.device:
        allowed = " or ".join(dict.fromkeys(["float32", names([dtype])]))
        raise ValueError(f"per_sample_weights are {weights.dtype} of shape {tuple(weights.shape)} on "
                         f"{weights.device}; use one {allowed} on {ids.device} for each of {ids.numel()} ids")
    return weights.flatten().contiguous()

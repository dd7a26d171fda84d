"""Embedding tables over ranks, with the interface of torch.nn.EmbeddingBag.

    tables = plait.nn.EmbeddingBags([10**6, 300, 5000], 64, mode="sum", sparse=True)
    out = tables(ids, offsets)  # (samples, 3, 64)

Every rank calls the layers, forward and backward, in the same order, each with its own samples: any
number of them, also none. A rank holds a piece of each table (`split`), sums the rows of its pieces for
all ranks, and sends one row per bag instead of one per id. Gradients are sums over the samples of all
ranks, as if one process had computed the sum of all ranks' losses.

    split        each rank has
    replicated   the whole table
    table        the whole table, or nothing of it
    columns      some columns of all rows
    rows         some rows, which are dealt out by hash
"""

import contextlib
import dataclasses

import torch
from torch.autograd.function import once_differentiable

from plait._library import ops
from plait.reduce import sums_over_ranks
from plait.world import world_size


class EmbeddingBag(torch.nn.Module):
    """As torch.nn.EmbeddingBag, with the table spread over ranks; on one rank, with the same results.

    Args:
        num_embeddings, embedding_dim, mode, sparse, include_last_offset, padding_idx: as PyTorch's.
            With mode "max", NaN is greater than all numbers, and gradients may be sparse.
        scale_grad_by_freq: divides the gradient of a row by the number of ids in the bags of all ranks that name
            it, as torch.nn.Embedding does in a batch with the samples of all ranks; also with sparse gradients.
        _weight: (num_embeddings, embedding_dim), the same on every rank, of which each takes its piece.
        split: "replicated", "table" (rank 0 has it), "columns" or "rows". None: replicated if
            the table is small, else rows.
        max_norm, norm_type: rows that bags of any rank name, but for padding_idx, are changed in place before they
            are read: their norm becomes at most max_norm. norm_type is above 0, or infinite.
        device, dtype: the CPU or this rank's GPU (plait.device()), and float32, bfloat16 or float16. Sums, and
            sums of gradients, are taken in float32 and rounded once, to dtype. Gradients stay float32 after
            weight.grad_dtype = torch.float32.

    weight: this rank's piece, which optimisers of PyTorch and of plait.optim change. It begins with
    normal numbers that follow torch.manual_seed() on rank 0 and do not depend on the number of ranks.
    full_weight() returns the whole table.

    Collective, as is forward(). Raises NotImplementedError for arguments that are not supported, and
    ValueError, on every rank, for ids or offsets that are wrong on one.
    """

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None,
                 device=None, dtype=None, *, split=None):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        splits = None if split is None else [split]
        self._tables = _Tables([num_embeddings], embedding_dim, (mode, scale_grad_by_freq, max_norm, norm_type),
                               sparse, include_last_offset, [padding_idx], splits, device=device, whole=_weight)
        self.padding_idx = self._tables.padding_idx(0)
        if dtype is None and _weight is not None:
            dtype = _weight.dtype
        [self.weight] = self._tables.parameters(dtype)
        self.reset_parameters() if _weight is None else self.load_full_weight(_weight)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        """Returns a layer with the rows of `embeddings`, a matrix that is the same on every rank; options
        as those of the class. `freeze`: the weight gets no gradient."""
        layer = cls(*embeddings.shape, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self):
        """Collective. Draws new weights; the row of padding_idx becomes 0."""
        self._tables.draw([self.weight])

    def full_weight(self):
        """Collective. Returns the whole table, (num_embeddings, embedding_dim), on every rank."""
        return self._tables.whole(0, self.weight)

    def load_full_weight(self, weight):
        """Takes this rank's piece of a whole table, which is the same on every rank."""
        self._tables.load(0, self.weight, weight)

    def forward(self, input, offsets=None, per_sample_weights=None):
        """Returns the sums, means or maxima of bags, (bags, embedding_dim): of the rows of `input`, if that has
        two dimensions and offsets is None; or of input[offsets[k]:offsets[k + 1]]. per_sample_weights: one
        per id, with mode "sum"; they may want gradients. A step backward must follow on all ranks or on none."""
        return self._tables.pool(input, offsets, per_sample_weights, [self.weight], flat=True)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {self._tables.describe()}"


class EmbeddingBags(torch.nn.Module):
    """Many tables of one width, in one call.

    Args:
        num_embeddings: the rows of each table.
        embedding_dim, mode, sparse, include_last_offset: as of EmbeddingBag, for all tables.
        padding_idx: an id for all tables, or one (or None) for each.
        splits: one name per table, or None: chosen by the tables' sizes and by `ids_per_sample`.
        ids_per_sample: how many ids a sample has in each table, on average; None: one.
        samples: of each rank in a step, about; tables of fewer rows are replicated if they are chosen so.
        scale_grad_by_freq, max_norm, norm_type, device, dtype: as of EmbeddingBag. Ids of one table do not count
            for another.

    weights: by table this rank's piece. full_weight(t) returns a whole table. Errors as EmbeddingBag.
    """

    def __init__(self, num_embeddings, embedding_dim, mode="mean", sparse=False, include_last_offset=False,
                 padding_idx=None, splits=None, ids_per_sample=None, samples=2048, device=None, dtype=None,
                 scale_grad_by_freq=False, max_norm=None, norm_type=2.0):
        super().__init__()
        self._tables = _Tables(num_embeddings, embedding_dim, (mode, scale_grad_by_freq, max_norm, norm_type),
                               sparse, include_last_offset, padding_idx, splits, ids_per_sample, samples, device)
        self.num_embeddings, self.embedding_dim = self._tables.rows, embedding_dim
        self.weights = torch.nn.ParameterList(self._tables.parameters(dtype))
        self._names = [*self.weights._parameters]
        self.reset_parameters()

    def reset_parameters(self):
        """Collective. Draws new weights; rows of padding become 0."""
        self._tables.draw(self.weights)

    def full_weight(self, table):
        """Collective. Returns a whole table on every rank."""
        return self._tables.whole(table, self.weights[table])

    def load_full_weight(self, table, weight):
        """Takes this rank's piece of a whole table, which is the same on every rank."""
        self._tables.load(table, self.weights[table], weight)

    def forward(self, ids, offsets, per_sample_weights=None):
        """Returns (samples, tables, embedding_dim).

        Args:
            ids: of all bags, table by table: first those of table 0 of all samples.
            offsets: where each bag begins in `ids`: tables * samples numbers (and the end, if
                include_last_offset), in the same order.
            per_sample_weights: as of EmbeddingBag.
        """
        # Iterating over a ParameterList looks each of its parameters up by name, which costs as much as a small step.
        parameters = self.weights._parameters
        in_order = [*parameters] == self._names  # else some are no parameters, or were made anew
        pieces = [*parameters.values()] if in_order else list(self.weights)
        return self._tables.pool(ids, offsets, per_sample_weights, pieces)

    def extra_repr(self):
        return f"{len(self.num_embeddings)} tables, {self.embedding_dim}, {self._tables.describe()}"


def _rules(mode, by_frequency, max_norm, norm_type):
    """Returns what C++ takes; without max_norm, norms are not limited."""
    if mode == "max" and by_frequency:
        raise ValueError("scale_grad_by_freq is not defined for mode 'max'; leave it out")
    max_norm, norm_type = float("inf") if max_norm is None else float(max_norm), float(norm_type)
    if not max_norm >= 0 or not norm_type > 0:
        raise ValueError(f"max_norm is {max_norm} and norm_type {norm_type}; give a norm of 0 or more, and a type "
                         "above 0")
    return mode, bool(by_frequency), max_norm, norm_type


@dataclasses.dataclass
class _Bags:
    """What C++ takes: int64 ids and offsets, perhaps weights, or the text of what is wrong."""

    tensors: list
    with_end: bool = False
    fault: str = ""
    weights: torch.Tensor = None  # as given, which may want gradients
    wants: bool = False  # a step backward will follow


class _Tables:
    """The tables of a layer over ranks. Copies, and layers that are loaded from a file, join the ranks
    anew."""

    def __init__(self, rows, width, rules, sparse, with_end, padding, splits, ids=None, samples=2048, device=None,
                 whole=None):
        with _on_all_or_none():
            self._made_of = _checked_tables(rows, width, rules, padding, splits, ids, samples, device)
            if whole is not None:
                self._check_whole(0, whole)
        self._settings = (self._made_of[2][0], sparse, with_end)
        self._join()

    @property
    def rows(self):
        return [rows for rows, *_ in self._made_of[0]]

    def parameters(self, dtype):
        """Collective. Returns parameters for this rank's pieces, whose numbers are not set."""
        with _on_all_or_none():
            dtype = dtype or torch.get_default_dtype()
            if dtype not in _TYPES:
                raise NotImplementedError(f"tables of {dtype} are not supported; use one of {_names(_TYPES)}")
            if self.device.type == "cpu":
                self._require_memory(dtype)
            return [torch.nn.Parameter(torch.empty(rows, columns, device=self.device, dtype=dtype))
                    for rows, _, columns in self._pieces]

    def _require_memory(self, dtype):
        """Raises RuntimeError if the pieces of all ranks, which share the host's memory, do not fit there."""
        tables, width, *_ = self._made_of
        numbers = width * sum(rows * (world_size() if split == "replicated" else 1) for rows, split, *_ in tables)
        ops.require_memory(min(numbers * dtype.itemsize, 2**63 - 1), "memory for embedding tables")

    def _join(self):
        self._handle = torch.classes.plait.Embeddings(*self._made_of)
        self._pieces = [self._handle.piece(t) for t in range(len(self._made_of[0]))]

    def __getstate__(self):
        return self._made_of, self._settings

    def __setstate__(self, state):
        self._made_of, self._settings = state
        self._join()

    def __deepcopy__(self, memo):
        copied = object.__new__(_Tables)
        copied.__setstate__(self.__getstate__())
        return copied

    def describe(self):
        (mode, by_frequency, max_norm, norm_type), sparse = self._made_of[2], self._settings[1]
        limits = f", max_norm={max_norm}, norm_type={norm_type}" if self._limits_norms else ""
        scales = ", scale_grad_by_freq=True" if by_frequency else ""
        return f"mode={mode!r}, sparse={sparse}{limits}{scales}, splits={[split for _, split, *_ in self._made_of[0]]}"

    def padding_idx(self, table):
        padding = self._made_of[0][table][3]
        return None if padding < 0 else padding

    @property
    def device(self):
        return self._made_of[3]

    @property
    def _limits_norms(self):
        return self._made_of[2][2] < float("inf")

    @torch.no_grad()
    def draw(self, pieces):
        seed = torch.randint(2**62, (1,), device="cpu")
        if world_size() > 1:
            ops.broadcast_(seed, 0)
        for t, piece in enumerate(pieces):
            ids = self._handle.ids(t).to(self.device)
            ops.fill_normal_(piece.data, ids, int(seed), t, self._pieces[t][1])
            piece[ids == self._made_of[0][t][3]] = 0

    def whole(self, table, piece):
        return self._handle.whole(table, piece.detach()).to(self.device)

    def _check_whole(self, table, weight):
        rows, width = self._made_of[0][table][0], self._made_of[1]
        if tuple(weight.shape) != (rows, width):
            raise ValueError(f"the weight has shape {tuple(weight.shape)}, but the table is ({rows}, {width})")

    @torch.no_grad()
    def load(self, table, piece, weight):
        self._check_whole(table, weight)
        _, first, columns = self._pieces[table]
        piece.copy_(weight[self._handle.ids(table).to(weight.device), first:first + columns])

    def pool(self, ids, offsets, weights, pieces, flat=False):
        """Returns the sums, (samples, tables, width); `flat`: of one table, (samples, width)."""
        mode, _, with_end = self._settings
        try:
            if len(pieces) != len(self._pieces):
                raise ValueError(f"there are {len(pieces)} weights for {len(self._pieces)} tables")
            for piece, (rows, _, columns) in zip(pieces, self._pieces, strict=True):
                if not isinstance(piece, torch.Tensor):
                    raise ValueError(f"a weight is {piece}; give this rank's piece, ({rows}, {columns})")
                if piece.shape != (rows, columns):
                    raise ValueError(f"a weight has shape {tuple(piece.shape)}, but this rank's piece is ({rows}, "
                                     f"{columns})")
                if piece.device != self.device:
                    raise ValueError(f"the weights are on {piece.device}, but the tables were made on "
                                     f"{self.device}; make them there, by device=...")
                if piece.dtype not in _TYPES or piece.dtype != pieces[0].dtype:
                    raise ValueError(f"the weights are {_names({p.dtype for p in pieces})}; use one of "
                                     f"{_names(_TYPES)} for all")
            if self._limits_norms and not all(piece.is_contiguous() for piece in pieces):
                raise ValueError("the weights have gaps, but max_norm changes them in place; make them contiguous")
            bags = _bags(ids, offsets, weights, mode, with_end, pieces)
        except (ValueError, RuntimeError) as error:
            bags = self.faulty(error)
        if bags.fault:
            return self.sums(bags, [], flat)[0]  # throws, as on all ranks
        needing = pieces if bags.weights is None else [bags.weights, *pieces]
        bags.wants = torch.is_grad_enabled() and any(t.requires_grad for t in needing)
        if not bags.wants:  # saves what autograd costs, which is most of a small step
            return self.sums(bags, pieces, flat)[0]
        return _Sums.apply(self, bags, flat, bags.weights, *pieces)

    def faulty(self, error):
        """Returns bags with an error of this rank, which all ranks then throw."""
        none = torch.empty(0, dtype=torch.int64, device=self.device)
        return _Bags([none, none], fault=str(error))

    # The two directions, for _Sums.
    def sums(self, bags, pieces, flat):
        rows = [] if bags.fault else _rows(pieces)
        out, places, number = self._handle.forward(bags.tensors, bags.with_end, bags.fault, rows, bags.wants)
        if self._limits_norms:
            torch.autograd.graph.increment_version([piece for piece in pieces if not piece.is_inference()])
        out = out.to(pieces[0].dtype)
        return out.squeeze_(1) if flat else out, places, number

    def gradients(self, bags, number, gradients, pieces):
        return self._handle.backward(bags.tensors, bags.with_end, bags.fault, number, gradients, _rows(pieces),
                                     self._settings[1])


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(context, tables, bags, flat, weights, *pieces):
        out, places, context.number = tables.sums(bags, pieces, flat)
        context.tables, context.with_end = tables, bags.with_end
        # Gradients of weights, perhaps another rank's, need the pieces as they are now; of inference tensors nobody
        # knows whether they change.
        known = not any(piece.is_inference() for piece in pieces)
        context.pieces = [(piece.detach(), piece._version) for piece in pieces] if known else []
        context.save_for_backward(*bags.tensors, places)
        return out

    @staticmethod
    @once_differentiable
    def backward(context, gradient):
        weighs, *wanted = context.needs_input_grad[3:]
        same = all(piece._version == version for piece, version in context.pieces)
        pieces = [piece for piece, _ in context.pieces] if same else []
        try:
            *tensors, places = context.saved_tensors
            bags = _Bags(tensors, context.with_end)
            if weighs and not pieces:
                raise ValueError("gradients of per_sample_weights need the tables as they were in forward(), but "
                                 "they were modified by an inplace operation, or are inference tensors")
        except (RuntimeError, ValueError) as error:  # ids or tables that were changed since
            bags, weighs, places = context.tables.faulty(error), False, torch.empty(0, dtype=torch.int32)
        of_weights = [torch.empty_like(bags.tensors[2])] if weighs else []
        of_tables = context.tables.gradients(bags, context.number,
                                             [gradient.float().contiguous(), places, *of_weights], pieces)
        # Autograd rounds these to the types of the weights, or to their grad_dtype.
        return None, None, None, *(of_weights or [None]), *(g if w else None for g, w in zip(of_tables, wanted))


sums_over_ranks(_Sums)


_TYPES = (torch.float32, torch.bfloat16, torch.float16)


def _names(types):
    return ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in types))


@contextlib.contextmanager
def _on_all_or_none():
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


def _checked_tables(rows, width, rules, padding, splits, ids, samples, device):
    """Returns what torch.classes.plait.Embeddings is made of."""
    rows = list(rows)
    padding = list(padding) if isinstance(padding, (list, tuple)) else [padding] * len(rows)
    device = torch.empty(0, device=device).device  # None: PyTorch's default, and with a number
    if device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f"tables on {device} are not supported; use the CPU or a GPU")
    rules = _rules(*rules)
    _check_sizes(rows, width, padding, splits)
    rows, width = [int(n) for n in rows], int(width)
    padding = [_checked_padding(p, n) for p, n in zip(padding, rows, strict=True)]
    if splits is None:
        ids = [1.0] * len(rows) if ids is None else [float(i) for i in ids]
        if len(ids) != len(rows) or not all(0 <= i < float("inf") for i in ids) or (
                not hasattr(samples, "__index__") or not 1 <= samples < 2**63):
            raise ValueError(f"ids_per_sample is {ids} and samples {samples}; give a number of 0 or more for each "
                             f"of {len(rows)} tables, and at least one sample")
        splits, owners = ops.choose_embedding_splits(rows, width, ids, samples, world_size())
    else:
        owners = _owners(splits, rows)
    return list(zip(rows, splits, owners, padding)), width, rules, device


def _check_sizes(rows, width, padding, splits):
    for count in (*rows, width):
        if not hasattr(count, "__index__") or not 0 <= count < 2**32:
            raise ValueError(f"tables of {rows} rows and {width} columns; give whole numbers below 2^32")
    if not rows:
        raise ValueError("there are no embedding tables; give the rows of at least one")
    if len(padding) != len(rows):
        raise ValueError(f"there are {len(padding)} padding_idx for {len(rows)} tables; give one, or one for each")
    if not all(p is None or isinstance(p, int) for p in padding):
        raise ValueError(f"padding_idx is {padding}; give ids")
    if splits is not None and (isinstance(splits, str) or not all(isinstance(split, str) for split in splits)):
        raise ValueError(f"splits is {splits!r}; give a list with one name for each table")


def _checked_padding(padding, rows):
    if padding is None:
        return -1
    if not -rows <= padding < rows:
        raise ValueError(f"padding_idx {padding} is outside of the table's {rows} rows")
    return padding % rows


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


def _bags(ids, offsets, weights, mode, with_end, pieces):
    """Returns _Bags; raises ValueError for tensors that cannot be bags, but does not look into them."""
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
    return _Bags(tensors, with_end, weights=weights)


def _rows(pieces):
    return [piece.contiguous() for piece in pieces]


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
        allowed = " or ".join(dict.fromkeys(["float32", _names([dtype])]))
        raise ValueError(f"per_sample_weights are {weights.dtype} of shape {tuple(weights.shape)} on "
                         f"{weights.device}; use one {allowed} on {ids.device} for each of {ids.numel()} ids")
    return weights.flatten().contiguous()

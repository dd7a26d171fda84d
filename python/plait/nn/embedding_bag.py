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

import torch

from plait.nn._embedding_checks import on_all_or_none
from plait.nn._embedding_tables import Tables


class _OwnPieces(torch.nn.Module):
    """A layer whose state_dict tells, in its metadata, which pieces it has: another rank's have the same shape."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]]["pieces"] = self._tables.pieces()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        own = self._tables.pieces()
        for given, piece in zip(local_metadata.get("pieces", own), own):
            if given != piece:  # told at once, before the weights of a part of this layer are loaded
                raise RuntimeError(f"{prefix or 'the state'} has the piece '{given}', but this rank has '{piece}'; load "
                                   "each rank's own state, or whole tables with load_full_weight()")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)


class EmbeddingBag(_OwnPieces):
    """As torch.nn.EmbeddingBag, with the table spread over ranks; on one rank, with the same results, except for
    max_norm.

    Args:
        num_embeddings, embedding_dim, mode, sparse, include_last_offset, padding_idx: as PyTorch's.
            With mode "max", NaN is greater than all numbers, and gradients may be sparse.
        scale_grad_by_freq: divides the gradient of a row by the number of ids in the bags of all ranks that name
            it, as torch.nn.Embedding does in a batch with the samples of all ranks; also with sparse gradients.
        _weight: (num_embeddings, embedding_dim), the same on every rank; each rank takes its piece of it.
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
        self._tables = Tables([num_embeddings], embedding_dim, (mode, scale_grad_by_freq, max_norm, norm_type),
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
        with on_all_or_none():
            if not isinstance(embeddings, torch.Tensor) or embeddings.dim() != 2:
                raise ValueError("embeddings must be a tensor with one row for each id")
        layer = cls(*embeddings.shape, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self):
        """Collective. Draws new weights; the row of padding_idx becomes 0."""
        self._tables.draw([self.weight])

    def full_weight(self):
        """Collective. Returns the whole table, (num_embeddings, embedding_dim), on every rank; of a replicated
        table, a copy of this rank's rows, which are those of all ranks unless code has changed them on one."""
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


class EmbeddingBags(_OwnPieces):
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
        self._tables = Tables(num_embeddings, embedding_dim, (mode, scale_grad_by_freq, max_norm, norm_type),
                               sparse, include_last_offset, padding_idx, splits, ids_per_sample, samples, device)
        self.num_embeddings, self.embedding_dim = self._tables.rows, embedding_dim
        self.weights = torch.nn.ParameterList(self._tables.parameters(dtype))
        self._names = [*self.weights._parameters]
        self.reset_parameters()

    def reset_parameters(self):
        """Collective. Draws new weights; rows of padding become 0."""
        self._tables.draw(self.weights)

    def full_weight(self, table):
        """Collective. Returns a whole table on every rank, as EmbeddingBag does."""
        return self._tables.whole(table, self.weights[table])

    def load_full_weight(self, table, weight):
        """Takes this rank's piece of a whole table, which is the same on every rank."""
        self._tables.load(table, self.weights[table], weight)

    def forward(self, ids, offsets, per_sample_weights=None):
        """Returns (samples, tables, embedding_dim).

        Args:
            ids: the ids of all bags, table by table: first the ids of table 0 of all samples.
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

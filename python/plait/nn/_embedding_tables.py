"""The tables of plait.nn.EmbeddingBag and EmbeddingBags over ranks, forward and backward."""

import torch
from torch.autograd.function import once_differentiable

from plait._library import ops
from plait.nn._embedding_checks import TYPES, Bags, checked_bags, checked_tables, names, on_all_or_none
from plait.reduce import sums_over_ranks
from plait.world import rank, require_ranks, world_size


class Tables:
    """The tables of a layer over ranks. Copies, and layers that are loaded from a file, join the ranks
    anew."""

    def __init__(self, rows, width, rules, sparse, with_end, padding, splits, ids=None, samples=2048, device=None,
                 whole=None):
        with on_all_or_none():
            self._made_of = checked_tables(rows, width, rules, padding, splits, ids, samples, device)
            if whole is not None:
                self._check_whole(0, whole)
        self._settings = (self._made_of[2][0], sparse, with_end)
        self._join()

    @property
    def rows(self):
        return [rows for rows, *_ in self._made_of[0]]

    def parameters(self, dtype):
        """Collective. Returns parameters for this rank's pieces, whose numbers are not set."""
        with on_all_or_none():
            dtype = dtype or torch.get_default_dtype()
            if dtype not in TYPES:
                raise NotImplementedError(f"tables of {dtype} are not supported; use one of {names(TYPES)}")
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
        self._place = rank(), world_size()  # the ranks are joined
        self._handle = torch.classes.plait.Embeddings(*self._made_of)
        self._pieces = [self._handle.piece(t) for t in range(len(self._made_of[0]))]

    def _require_ranks(self):
        """Raises RuntimeError unless this process works with the ranks that have the other pieces."""
        require_ranks(self._place[1], "embedding tables were made")

    def __getstate__(self):
        return self._made_of, self._settings

    def __setstate__(self, state):
        self._made_of, self._settings = state
        self._join()

    def __deepcopy__(self, memo):
        copied = object.__new__(Tables)
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

    def pieces(self):
        """Returns values that tell this rank's pieces from other ranks' pieces. A whole table is one, however it came
        here."""
        tables, width, *_ = self._made_of
        rank, ranks = self._place
        return ["whole table" if (rows, width) == (own, columns) else f"{split} of rank {rank} of {ranks}"
                for (rows, split, *_), (own, _, columns) in zip(tables, self._pieces, strict=True)]

    @property
    def device(self):
        return self._made_of[3]

    @property
    def _limits_norms(self):
        return self._made_of[2][2] < float("inf")

    @torch.no_grad()
    def draw(self, pieces):
        self._require_ranks()
        seed = torch.randint(2**62, (1,), device="cpu")
        if self._place[1] > 1:
            ops.broadcast_(seed, 0)
        for t, piece in enumerate(pieces):
            ids = self._handle.ids(t).to(self.device)
            ops.fill_normal_(piece.data, ids, int(seed), t, self._pieces[t][1])
            piece[ids == self._made_of[0][t][3]] = 0

    def whole(self, table, piece):
        self._require_ranks()
        return self._handle.whole(table, piece.detach()).to(self.device)

    def _check_whole(self, table, weight):
        if not isinstance(weight, torch.Tensor):
            raise ValueError(f"the weight is a {type(weight).__name__}; give a tensor")
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
        self._require_ranks()
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
                if piece.dtype not in TYPES or piece.dtype != pieces[0].dtype:
                    raise ValueError(f"the weights are {names({p.dtype for p in pieces})}; use one of "
                                     f"{names(TYPES)} for all")
            if self._limits_norms and not all(piece.is_contiguous() for piece in pieces):
                raise ValueError("the weights have gaps, but max_norm changes them in place; make them contiguous")
            bags = checked_bags(ids, offsets, weights, mode, with_end, pieces)
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
        return Bags([none, none], fault=str(error))

    # The two directions, for _Sums.
    def sums(self, bags, pieces, flat):
        rows = [] if bags.fault else _rows(pieces)
        out, places, number = self._handle.forward(bags.tensors, bags.with_end, bags.fault, rows, bags.wants)
        if self._limits_norms:
            torch.autograd.graph.increment_version([piece for piece in pieces if not piece.is_inference()])
        out = out.to(pieces[0].dtype)
        return out.squeeze_(1) if flat else out, places, number

    def gradients(self, bags, number, gradients, pieces):
        self._require_ranks()
        return self._handle.backward(bags.tensors, bags.with_end, bags.fault, number, gradients, _rows(pieces),
                                     self._settings[1])


def _rows(pieces):
    return [piece.contiguous() for piece in pieces]


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
            bags = Bags(tensors, context.with_end)
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

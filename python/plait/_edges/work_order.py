"""The order in which operations on a renumbered graph take rows; callers keep the order of ids."""

import torch


class _Permuted(torch.autograd.Function):
    """Rows in another order: a gather in both directions, whose gradient adds nothing up."""

    @staticmethod
    def forward(ctx, rows, places, inverse):
        ctx.save_for_backward(places, inverse)
        return rows.index_select(0, places)

    @staticmethod
    def backward(ctx, gradient):
        places, inverse = ctx.saved_tensors
        return _Permuted.apply(gradient, inverse, places), None, None


class WorkOrder:
    """Maps rows between the order of ids, in which callers have them, and that of the work.

    Args:
        ids: the ids of this rank's own nodes in the order of the work, int64, on the CPU.

    Attributes:
        ids: the same, ascending.
    """

    def __init__(self, ids):
        with torch.inference_mode(False):  # gradients need the places
            self.ids, leaving = ids.clone().sort()
            entering = torch.empty_like(leaving)
            entering[leaving] = torch.arange(len(leaving))
        self._places = {torch.device("cpu"): (entering, leaving)}

    def enter(self, rows):
        """Returns rows in the order of the work, from rows in the order of ids; differentiable. Raises ValueError
        unless there is one for each of the nodes, as operations on a graph that has no order do."""
        if rows.dim() == 0 or rows.size(0) != len(self.ids):
            raise ValueError(f"x has shape {list(rows.shape)}, but must have one row for each of {len(self.ids)} nodes")
        entering, leaving = self._on(rows.device)
        return _Permuted.apply(rows, entering, leaving)

    def leave(self, rows):
        """Returns rows in the order of ids, from rows in the order of the work; differentiable."""
        entering, leaving = self._on(rows.device)
        return _Permuted.apply(rows, leaving, entering)

    def _on(self, device):
        if device not in self._places:
            with torch.inference_mode(False):
                self._places[device] = tuple(p.to(device) for p in self._places[torch.device("cpu")])
        return self._places[device]

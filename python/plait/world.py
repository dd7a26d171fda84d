"""The ranks that work on one graph, and what they do together.

Ranks are the processes that torchrun, mpirun or srun has started; a process that was started by
itself is rank 0 of 1. They are joined at the first use. Every function here but `rank`,
`world_size`, `device` and `check` is collective: all ranks call it, in the same order.
"""

import atexit
import sys

import torch

from plait._library import ops


def rank():
    """Which rank this process is, from 0."""
    return _joined()[0]


def world_size():
    """How many ranks there are."""
    return _joined()[1]


def device():
    """Where this rank's model and data belong, as a torch.device: its GPU (by its local rank, or the
    only one that the process sees), or the CPU of a machine without. Nothing is moved there."""
    return torch.device(ops.device())


def check():
    """Raises RuntimeError if a rank is lost, so that what was read before may be of a step that was
    not done. Every operation does so by itself; a replay of torch.cuda.graph does not. Not
    collective."""
    loss = ops.loss()
    if loss:
        raise RuntimeError(loss)


_place = None


def _joined():
    """(rank, world size). Joins, once; from then on an error that ends this process is told to the
    other ranks at once."""
    global _place
    if _place is None:
        _place = ops.rank(), ops.world_size()
        if _place[1] > 1:
            sys.excepthook = _telling(sys.excepthook)
            atexit.register(_finish)
    return _place


def _finish():
    """What this rank's GPU still has to give to others leaves it before the process ends."""
    for device in _summing:
        torch.cuda.synchronize(device)


def _telling(hook):
    """An excepthook that leaves the world, after `hook` has told of the error. An error that comes
    of the loss of another rank is told in one line."""

    def told(kind, error, traceback):
        loss = ops.loss()
        if loss and loss in str(error):
            print(f"plait: {loss}", file=sys.stderr, flush=True)
        else:
            hook(kind, error, traceback)
            sys.stderr.flush()
        first_line = str(error).partition("\n")[0]
        ops.fail(f"{kind.__name__}: {first_line}" if first_line else kind.__name__)

    return told


def require_equal(what, mine):
    """Raises ValueError, the same on every rank, unless all ranks give dictionaries of equal texts:
    "ranks pass different WHAT: KEY is 3 on rank 0, but 4 on rank 2"."""
    if world_size() == 1:
        return
    found = ops.first_difference([*mine], [str(value) for value in mine.values()])
    if found:
        raise ValueError(f"ranks pass different {what}: {found}; give every rank the same")


def all_reduce(values):
    """The sum of a float32 or float64 tensor over ranks, where it is, the same bits on each; no
    gradients. All ranks pass as many elements, all on the CPU or all on their GPUs. On a GPU it is
    enqueued, and becomes NaN if a rank is lost."""
    total = values.detach().clone(memory_format=torch.contiguous_format)
    if total.is_cuda and total.device not in _summing:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("plait.sum and plait.mean are captured before they have run; do a few "
                               "steps before capturing")
        _summing.add(total.device)
    ops.all_reduce_sum_(total)
    return total


_summing = set()  # GPUs on which sums were taken

"""The ranks that work on one graph, and their collective operations.

Ranks are the processes that torchrun, mpirun or srun has started; a process that was started by
itself is rank 0 of 1. They are joined at the first use. Every function here except `rank`,
`world_size`, `device` and `check` is collective: all ranks call it, in the same order.
"""

import atexit
import builtins
import sys

import torch

from plait._library import ops


def rank():
    """Returns the number of this process, from 0."""
    return _joined()[0]


def world_size():
    """Returns the number of ranks."""
    return _joined()[1]


def device():
    """Returns the torch.device for this rank's model and data: its GPU (by its local rank, or the
    only one that the process sees), or the CPU on a machine without GPUs. It moves nothing."""
    return torch.device(ops.device())


def check():
    """Raises RuntimeError if a rank is lost; values that were read before may then belong to a step
    that was not completed. Every operation checks this by itself; a replay of torch.cuda.graph
    does not. Not collective."""
    loss = ops.loss()
    if loss:
        raise RuntimeError(loss)


_place = None
_failed = False  # an error has ended this process's part


def _joined():
    """Returns (rank, world size). The first call joins the ranks; from then on an error that ends
    this process is reported to the other ranks at once."""
    global _place
    if _place is None:
        _place = ops.rank(), ops.world_size()
        if _place[1] > 1:
            sys.excepthook = _telling(sys.excepthook)
            atexit.register(_finish)
    return _place


def _finish():
    """Waits until this rank's GPU has sent its data to other ranks, before the process ends, unless it has failed."""
    for device in () if _failed else _summing:
        torch.cuda.synchronize(device)


def _telling(hook):
    """Returns an excepthook that leaves the world after `hook` has reported the error. An error
    caused by the loss of another rank is reported in one line."""

    def told(kind, error, traceback):
        global _failed
        _failed, loss = True, ops.loss()
        if loss and loss in str(error):
            print(f"plait: {loss}", file=sys.stderr, flush=True)
        else:
            hook(kind, error, traceback)
            sys.stderr.flush()
        first_line = str(error).partition("\n")[0]
        ops.fail(f"{kind.__name__}: {first_line}" if first_line else kind.__name__)

    return told


def require_equal(what, mine):
    """Raises ValueError, the same on every rank, unless all ranks pass dictionaries of equal texts:
    "ranks pass different WHAT: KEY is 3 on rank 0, but 4 on rank 2"."""
    if world_size() == 1:
        return
    found = ops.first_difference([*mine], [str(value) for value in mine.values()])
    if found:
        raise ValueError(f"ranks pass different {what}: {found}; give every rank the same")


def agree(call, count=0, sum=0.0):
    """Returns the sums over ranks of an int64 `count`, exact, and a float64 `sum`, the same bits on
    each, by one small exchange between hosts. Raises ValueError, the same on every rank, unless all ranks give the
    same text, which says what they are about to do together."""
    _joined()
    counts, sums = ops.agree(call, count, sum)
    return builtins.sum(counts), builtins.sum(sums)


def counts_of_ranks(call, count):
    """Returns the count that each rank gives, in order; otherwise as agree()."""
    _joined()
    counts, _ = ops.agree(call, count, 0.0)
    return counts


def all_reduce(values, what):
    """Returns the sum over ranks of a float32 or float64 tensor, on the tensor's device and with the
    same bits on each rank; no gradients. All ranks pass equally many elements, all on the CPU or all
    on their GPUs, and the purpose `what`; else each raises the same ValueError when a sum of this
    kind and length is first taken. They do not compare if `what` is "", because they have just agreed
    on it. On a GPU the sum is enqueued, and becomes NaN if a rank is lost."""
    total = values.detach().clone(memory_format=torch.contiguous_format)
    if total.is_cuda and total.device not in _summing:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("plait.sum and plait.mean are captured before they have run; do a few "
                               "steps before capturing")
        _summing.add(total.device)
    ops.all_reduce_sum_(total, what)
    return total


_summing = set()  # GPUs on which sums were taken

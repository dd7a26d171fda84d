"""The ranks that work on one graph, and their collective operations.

Ranks are the processes that torchrun, mpirun or srun has started, or those of the default process group of
torch.distributed. They are joined at the first use. A process that was started by itself works alone, as
rank 0 of 1, until there is such a group. Every function here except `rank`, `world_size`, `device`, `check`
and `alone` is collective: all ranks call it, in the same order.
"""

import atexit
import builtins
import multiprocessing.util
import os
import sys
import threading

import torch

from plait import _group
from plait._edges.inputs import whole_number
from plait._library import ops


def rank():
    """Returns the number of this process, from 0."""
    return _here()[0]


def world_size():
    """Returns the number of ranks."""
    return _here()[1]


def device():
    """Returns the torch.device for this process's model and data: its GPU (by its local rank, or the
    only one that the process sees), or the CPU on a machine without GPUs. It moves nothing."""
    group = _group.default_group()
    return torch.device(ops.device(-1 if group is None and _place is None else
                                   _place[0] if group is None else _group.place_in(group)[0]))


def check():
    """Raises RuntimeError if a rank is lost; values that were read before may then belong to a step
    that was not completed. Every operation checks this by itself; a replay of torch.cuda.graph
    does not. Not collective."""
    loss = ops.loss()
    if loss:
        raise RuntimeError(loss)


def init(group=None, *, rank=None, world_size=None, address=None):
    """Joins the ranks now, instead of at the first use, and says which ones. Collective. A process joins once.

    Args:
        group: a process group of torch.distributed that this process belongs to. Its members become the ranks,
            with their numbers in the group. None: the ranks that Plait would join at the first use.
        rank, world_size, address: without a group and a launcher, the number of this process, the number of
            all, and "HOST:PORT", where rank 0 listens. All three, or none.

    Raises ValueError for a place that makes no sense, and RuntimeError if this process has joined other ranks,
    or works alone (plait.alone()).
    """
    given = rank, world_size, address
    if any(value is not None for value in given) and (group is not None or None in given):
        raise ValueError("plait.init takes a group, or rank, world_size and address together")
    place = None if address is None else _place_given(*given)
    if _alone:
        raise RuntimeError("plait.init joins other ranks, but this process works alone here (plait.alone())")
    if group is None and address is None:
        _here()
        return
    with _lock:
        place, source = (place, address) if group is None else (_group.place_in(group), group.group_name)
        if _place is not None:
            same = source == _source or _source is None and group is _group.default_group()
            if not same or place != _place:
                raise RuntimeError(f"this process is rank {_place[0]} of {_place[1]} already, and a process joins "
                                   "ranks once; call plait.init before anything else of Plait")
        elif group is not None and place[1] > 1:
            _joined_as(_group.join(group), source)
        else:
            host, _, port = (address or "127.0.0.1:1").rpartition(":")
            ops.join_at_store(*place, host, int(port), "")
            _joined_as(place, source)


def _place_given(rank, size, address):
    try:
        rank, size = whole_number("rank", rank), whole_number("world_size", size)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not 0 <= rank < size:
        raise ValueError(f"rank is {rank}, but must be in 0..{size - 1}, as world_size is {size}")
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f'address is {address!r}, but must be "HOST:PORT", with the port that rank 0 listens at')
    return rank, size


class alone:
    """Lets this process work by itself: from the call on it is rank 0 of 1, and joins no other processes. It is
    for processes that each have a graph or batches of their own, as under DistributedDataParallel.

        plait.alone()       # from here on

        with plait.alone():  # here alone: whole graphs on one rank of several
            ...

    It holds for all threads of the process. Not collective.
    """

    def __init__(self):
        self._holds = False
        self.__enter__()

    def __enter__(self):
        global _alone
        with _lock:
            if not self._holds:
                self._holds = True
                _alone += 1
                ops.work_alone(True)
        return self

    def __exit__(self, *error):
        global _alone
        with _lock:
            if self._holds:
                self._holds = False
                _alone -= 1
                if not _alone:
                    ops.work_alone(_place is None and _looked is not None)


_lock = threading.RLock()  # guards the variables below
_place = None  # (rank, world size), once this process has joined
_source = None  # the group or the address with which this process has joined; None: the launcher
_alone = 0  # the number of alone() that hold
_looked = None  # the process and the default group for which there was nobody to join
_failed = False  # an error has ended this process's part


def _here():
    """Returns (rank, world size); joins the ranks if there are any that have not been joined."""
    if _alone:
        return 0, 1
    if _place is not None:
        return _place
    if _looked is not None and torch.compiler.is_compiling():
        return 0, 1
    return _found()


def ranks_now():
    """Returns the world size without joining."""
    return 1 if _alone or _place is None else _place[1]


def _found():
    global _looked
    now = os.getpid(), id(_group.default_group())
    if _looked == now:
        return 0, 1
    with _lock:
        if _place is None:
            if torch.utils.data.get_worker_info() is None:  # a loader's worker is no rank
                _join_found()
            if _place is None:
                ops.work_alone(True)
                _looked = now
        return _place or (0, 1)


def _join_found():
    """Joins the ranks of the launcher or of the default process group, if there are several."""
    named, group = ops.named_world(), _group.default_group()
    launched = tuple(named[:2]) if named and named[1] > 1 else None
    if group is not None:
        place = _group.place_in(group)
        if launched not in (None, place):
            raise ValueError(
                f"this process is rank {place[0]} of {place[1]} of torch.distributed's default group, but rank "
                f"{launched[0]} of {launched[1]} in the environment; call plait.init(torch.distributed.group.WORLD) "
                "for the former, or plait.alone() to work by itself")
        # A launcher that keeps a store knows most of lost ranks. Else rank 0 would listen where the group does.
        if place[1] > 1 and not (launched and named[2]):
            return _joined_as(_group.join(group), group.group_name)
    if launched:
        ops.join_named()
        _joined_as(launched, None)


def _joined_as(place, source):
    """From now on an error that ends this process is reported to the other ranks at once."""
    global _place, _source
    _place, _source = place, source
    if place[1] > 1:
        sys.excepthook = _telling(sys.excepthook)
        atexit.register(_finish)
        if multiprocessing.parent_process() is not None:  # may end by _exit(), which calls nothing else
            multiprocessing.util.Finalize(None, _leave, exitpriority=-1000)


def _finish():
    """Waits until this rank's GPU has sent its data to other ranks, before the process ends, unless it has failed."""
    for device in () if _failed else _summing:
        torch.cuda.synchronize(device)


def _leave():
    """Leaves the other ranks at the end of a process of multiprocessing, by its error if it has one."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, SystemExit) and error.code in (None, 0):
        _finish()
        ops.leave()
    elif isinstance(error, SystemExit):
        ops.fail(f"exit code {error.code if isinstance(error.code, int) else 1}")
    else:
        _fail(error)


def _fail(error):
    first_line = str(error).partition("\n")[0]
    ops.fail(f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__)


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
        _fail(error)

    return told


def require_ranks(ranks, what):
    """Raises RuntimeError unless as many ranks work together here as where `what` was made."""
    now = world_size()
    if now == ranks:
        return
    if now == 1:
        raise RuntimeError(f"{what} on {ranks} ranks, but here this process works alone; leave plait.alone() before")
    raise RuntimeError(f"{what} where this process worked alone, but here {now} ranks work together; make it anew "
                       "outside of plait.alone()")


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
    return tuple(map(builtins.sum, numbers_of_ranks(call, count, sum)))


def numbers_of_ranks(call, count, other):
    """Returns the int64 `count` that each rank gives, in order, and the float64 `other`; else as agree()."""
    _here()
    return ops.agree(call, count, other)


def counts_of_ranks(call, count):
    """Returns the count that each rank gives, in order; otherwise as agree()."""
    counts, _ = numbers_of_ranks(call, count, 0.0)
    return counts


def all_reduce(values, what):
    """Returns the sum over ranks of a float32 or float64 tensor, on the tensor's device and with the
    same bits on each rank; no gradients. All ranks pass equally many elements, all on the CPU or all
    on their GPUs, and the purpose `what`; else each raises the same ValueError when a sum of this
    kind and length is first taken. They do not compare if `what` is "", because they have just agreed
    on it. On a GPU the sum is enqueued, and becomes NaN if a rank is lost."""
    _here()
    total = values.detach().clone(memory_format=torch.contiguous_format)
    if total.is_cuda and total.device not in _summing:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("plait.sum and plait.mean are captured before they have run; do a few "
                               "steps before capturing")
        _summing.add(total.device)
    ops.all_reduce_sum_(total, what)
    return total


_summing = set()  # GPUs on which sums were taken

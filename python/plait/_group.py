"""Finds and joins the ranks of a process group of torch.distributed.

They meet through the group's store, of whatever kind it is, so that no collective of the group runs and its
backend does not matter. Rank 0 opens a store of Plait's own, and tells its address, its port and its secret
there. From then on Plait does not need the group, which may be destroyed.
"""

import datetime
import json
import os
import sys

import torch.distributed as dist

from plait._library import ops

_REMEDY = "all ranks must use Plait, or call plait.alone() where each works by itself"
_SILENT, _PATIENT = 5, 55  # seconds of waiting for rank 0, before and after a line that says so


def default_group():
    """Returns the default process group, or None."""
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def place_in(group):
    """Returns (rank, number of ranks) of this process in a group. Raises TypeError and ValueError if it has no
    place there."""
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is not in the group; call plait.init in its members alone")
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(f"group must be a process group of torch.distributed, not of type {type(group).__name__}")
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this process is not in the group; call plait.init in its members alone")
    return rank, dist.get_world_size(group)


def join(group):
    """Joins the ranks of a group of several, and returns its (rank, number of ranks)."""
    rank, size = place_in(group)
    store = _store_of(group)
    # Programs that use one store after the other count: the n-th of each rank belong together.
    key = f"plait/{store.add(f'plait/turn/{rank}', 1)}"
    if rank == 0:
        there = _opened(store, key)
    else:
        there = _told(store, key, rank)
    try:
        ops.join_at_store(rank, size, *there)
    except RuntimeError as error:
        if "have not joined" in str(error):
            raise RuntimeError(f"{error}; {_REMEDY}") from None
        raise
    return rank, size


def _store_of(group):
    store = dist.distributed_c10d._world.pg_map[group][1]
    if store is None:
        raise RuntimeError(f"a process group of the backend {dist.get_backend(group)} has no store, through which "
                           'the ranks could meet; use plait.init(rank=..., world_size=..., address="HOST:PORT")')
    return store


def _host_of(store):
    """Returns a host that all ranks reach, and a port there: that of the group's store, if it has one; and
    whether it may be another host than this one."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    if isinstance(store, dist.TCPStore):
        return store.host, store.port, True
    host = os.environ.get("MASTER_ADDR")
    return host or "127.0.0.1", 9, bool(host)


def _opened(store, key):
    host, port, is_known = _host_of(store)
    try:
        address, port, secret = ops.open_store(host, port)
    except (RuntimeError, ValueError) as error:
        store.set(key, json.dumps({"error": str(error)}))
        raise
    told = {"address": address, "port": port, "secret": secret, "host": None if is_known else ops.host_identity()}
    store.set(key, json.dumps(told))
    return address, port, secret


def _told(store, key, rank):
    """Returns the facts that rank 0 has told about its store."""
    try:
        store.wait([key], datetime.timedelta(seconds=_SILENT))
    except RuntimeError:
        if rank == 1:
            print("plait: rank 1 waits for rank 0, which has not joined yet", file=sys.stderr, flush=True)
        try:
            store.wait([key], datetime.timedelta(seconds=_PATIENT))
        except RuntimeError:
            raise RuntimeError(
                f"rank {rank}: rank 0 of the process group has not joined within {_SILENT + _PATIENT} s; "
                f"{_REMEDY}") from None
    told = json.loads(store.get(key))
    if "error" in told:
        raise RuntimeError(f"rank {rank}: rank 0 cannot open a store: {told['error']}")
    if told["host"] not in (None, ops.host_identity()):
        raise RuntimeError(f"rank {rank} is on another host than rank 0, whose address the group's store does not "
                           "tell; set MASTER_ADDR on each rank to an address of rank 0's host")
    return told["address"], told["port"], told["secret"]

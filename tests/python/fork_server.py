"""Starts Python programs as forks of one process that has imported what they need, which takes seconds.

Reads a line of JSON for each program from stdin: number, argv, environment, and the paths to which stdout
and stderr go. Writes a line [number, "started", process id], and [number, "ended", exit code] (the negative
number of a signal). Ends when stdin does.
"""

import json
import os
import runpy
import select
import signal
import sys


def start(request):
    """Returns the process id of the child; in the child, returns 0 with everything as the program wants
    it."""
    pid = os.fork()
    if pid:
        return pid
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream, path in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(path, os.O_RDONLY if stream == 0 else os.O_WRONLY)
        os.dup2(opened, stream)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    return 0


def tell(*message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def serve():
    """Starts what is asked for; returns in each child, and when nothing more will be asked for."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    numbers, text = {}, b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            pid = 1
            while numbers and pid:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid:
                    tell(numbers.pop(pid), "ended", os.waitstatus_to_exitcode(status))
        if 0 in ready:
            got = os.read(0, 1 << 20)
            if not got:
                return None
            *lines, text = (text + got).split(b"\n")
            for line in lines:
                request = json.loads(line)
                pid = start(request)
                if pid == 0:
                    os.close(woken)
                    os.close(waking)
                    return request["argv"][0]
                numbers[pid] = request["number"]
                tell(request["number"], "started", pid)


if __name__ == "__main__":
    import pytest  # noqa: F401
    import torch_geometric.nn  # noqa: F401

    import plait.nn  # noqa: F401

    program = serve()
    if program:
        runpy.run_path(program, run_name="__main__")

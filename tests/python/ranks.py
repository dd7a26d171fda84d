"""Runs Python programs as ranks of one world, started as torchrun does but faster."""

import functools
import itertools
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import torch

from built_package import FOLDER

HERE = pathlib.Path(__file__).resolve().parent
_LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def environment(**variables):
    env = {k: v for k, v in os.environ.items() if k not in _LAUNCHED}
    paths = [p for p in (FOLDER, str(HERE), env.get("PYTHONPATH")) if p]
    # What the user of this machine has measured decides nothing.
    return env | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "PLAIT_ROUTES": "",
                  "PLAIT_MACHINES": ""} | variables


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class _Forked:
    """A process that the fork server has started."""

    def __init__(self):
        self.events = queue.SimpleQueue()
        self.pid = self.code = None

    def wait(self, limit):
        """Returns the exit code; raises queue.Empty if it does not come within the limit."""
        end = time.monotonic() + limit
        while self.code is None:
            what, number = self.events.get(timeout=max(0, end - time.monotonic()))
            if what == "started":
                self.pid = number
            else:
                self.code = number
        return self.code

    def kill(self):
        if self.code is None:
            try:
                self.wait(0)
            except queue.Empty:
                if self.pid:
                    os.kill(self.pid, signal.SIGKILL)


class _ForkServer:
    """See fork_server.py. It ends with this process."""

    def __init__(self):
        self._process = subprocess.Popen([sys.executable, HERE / "fork_server.py"], env=environment(),
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers, self._children = itertools.count(), {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self._process.stdout:
            number, what, value = json.loads(line)
            self._children[number].events.put((what, value))

    def start(self, argv, env, out, err):
        number, child = next(self._numbers), _Forked()
        self._children[number] = child
        request = {"number": number, "argv": argv, "environment": env, "out": out, "err": err}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return child


@functools.cache
def _starter():
    """Returns the function that starts a program. CUDA does not work in forks of a process that knows it."""
    return _start if torch.cuda.is_available() else _ForkServer().start


def _start(argv, env, out, err):
    with open(out, "w") as stdout, open(err, "w") as stderr:
        return subprocess.Popen([sys.executable, *argv], env=env, stdout=stdout, stderr=stderr)


class Processes:
    """One process of a program for each environment."""

    def __init__(self, program, environments):
        self.processes, self.files = [], []
        for env in environments:
            # Files: a full pipe would stop a process while another is read.
            files = [tempfile.NamedTemporaryFile("w+") for _ in range(2)]
            self.files.append(files)
            names = (file.name for file in files)
            self.processes.append(_starter()([*map(str, program)], env, *names))

    def results(self, limit=240):
        """Returns exit code, stdout and stderr of each process. All must end within the limit."""
        end = time.monotonic() + limit
        try:
            codes = [p.wait(max(0, end - time.monotonic())) for p in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        for file in (f for files in self.files for f in files):
            file.seek(0)
        return [(c, out.read(), err.read()) for c, (out, err) in zip(codes, self.files)]

    def succeed(self, limit=240):
        """Returns stdout of each process."""
        results = self.results(limit)
        assert all(code == 0 for code, *_ in results), "\n".join(
            f"rank {rank}: exit code {code}\n{errors}" for rank, (code, _, errors) in enumerate(results))
        return [output for _, output, _ in results]


class Ranks(Processes):
    """`ranks` processes of one program; rank 0 keeps the store."""

    def __init__(self, ranks, *program, timeout_ms=120000, **variables):
        port = free_port()
        super().__init__(program, [environment(
            RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            PLAIT_TIMEOUT_MS=str(timeout_ms), **variables) for rank in range(ranks)])


def alone(*program, **variables):
    """Starts one process of a program, without a launcher."""
    return Processes(program, [environment(**variables)])

"""Runs Python programs as ranks of one world, started as torchrun does but faster."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from built_package import FOLDER

HERE = pathlib.Path(__file__).resolve().parent
_LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def environment(**variables):
    env = {k: v for k, v in os.environ.items() if k not in _LAUNCHED}
    paths = [p for p in (FOLDER, str(HERE), env.get("PYTHONPATH")) if p]
    return env | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"} | variables


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ranks:
    """`ranks` processes of one program; rank 0 keeps the store."""

    def __init__(self, ranks, *program, timeout_ms=120000, **variables):
        port = free_port()
        self.processes, self.files = [], []
        for rank in range(ranks):
            env = environment(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=str(port), PLAIT_TIMEOUT_MS=str(timeout_ms), **variables)
            # Files: a full pipe would stop a rank while another is read.
            files = [tempfile.TemporaryFile("w+") for _ in range(2)]
            self.files.append(files)
            self.processes.append(subprocess.Popen(
                [sys.executable, *map(str, program)], env=env, stdout=files[0], stderr=files[1]))

    def results(self, limit=240):
        """Returns exit code, stdout and stderr of each rank. All must end within the limit."""
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
        """Returns stdout of each rank."""
        results = self.results(limit)
        for code, _, errors in results:
            assert code == 0, errors
        return [output for _, output, _ in results]

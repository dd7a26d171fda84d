"""Runs the program as a user would: another process, its output and its exit code, and a limit on
its time. The variables of launchers that this test itself may run under are taken out."""

import dataclasses
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import time

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("PLAIT_PROGRAM", str(CHECKOUT / "build/bin/plait"))
LAUNCHER_VARIABLES = ("PLAIT_", "OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MASTER_", "RANK",
                      "WORLD_SIZE", "LOCAL_RANK", "OMP_NUM_THREADS")

RIGHT, FAILED, USAGE, DOES_NOT_FIT, INTERRUPTED = 0, 1, 2, 4, 130


def environment(**settings):
    """Makes threads that wait sleep, so that tests side by side do not hold each other up. What the user
    of this machine has measured (plait tune, plait doctor --measure) decides nothing."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_VARIABLES)}
    return kept | {"OMP_WAIT_POLICY": "passive", "PLAIT_ROUTES": "", "PLAIT_MACHINES": ""} | settings


@dataclasses.dataclass
class Result:
    """The output and the exit code of one run."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.err.splitlines()

    @property
    def json(self):
        """Returns the object that --json ends stdout with."""
        return json.loads(self.out.splitlines()[-1])


HANGS = 300  # seconds that only a hang needs, however busy the machine is


def result_of(process, timeout=HANGS):
    """Waits for a process that start() has started."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Result(process.returncode, out, err)


def start(*arguments, command=(PROGRAM,), env=None, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen([*map(str, command), *map(str, arguments)], text=True,
                            env=env or environment(), **(pipes | options))


def contents(folder):
    """Returns every file under a folder, with a digest: pytest would spell out bytes that differ."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Plait:
    """The program, with a folder whose content a failing run must leave as it was."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments, timeout=HANGS, **options):
        return result_of(start(*arguments, **options), timeout)

    def ok(self, *arguments, **options):
        """Does a run that must succeed, without a word on stderr."""
        result = self(*arguments, **options)
        assert (result.code, result.err) == (RIGHT, ""), result
        return result

    def json(self, *arguments, **options):
        return self.ok(*arguments, "--json", **options).json

    def fails(self, code, *arguments, names=(), **options):
        """Does a run that must fail with one line that holds all of `names`, and must make, change or
        leave no file."""
        before = contents(self.folder)
        result = self(*arguments, **options)
        assert result.code == code, result
        check_one_line(result, names)
        assert contents(self.folder) == before
        return result


def check_one_line(result, names):
    assert len(result.lines) == 1, result
    assert result.err.startswith("plait: ") and result.err.endswith("\n"), result
    for name in names:
        assert str(name) in result.err, (name, result)


# --- ranks without a launcher ---


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_ranks(*ranks):
    """Starts one process for each pair of arguments and variables, as ranks of one world."""
    port = str(free_port())
    processes = []
    for rank, (arguments, variables) in enumerate(ranks):
        world = {"RANK": str(rank), "WORLD_SIZE": str(len(ranks)), "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        processes.append(start(*arguments, env=environment(**world, **variables)))
    return processes


def run_by_hand(arguments, *settings):
    """Runs the same arguments on one rank for each dictionary of variables."""
    return [result_of(p) for p in start_ranks(*[(arguments, variables) for variables in settings])]


# --- processes of a run ---


def ended(process_id):
    """Returns whether a process is gone, or only waits for its parent to notice."""
    try:
        stat = pathlib.Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def ranks_of(launcher):
    """Returns the processes that a launcher has started, by rank."""
    ranks = {}
    for task in pathlib.Path(f"/proc/{launcher}/task").iterdir():
        for child in _text_of(task / "children").split():
            name = _text_of(pathlib.Path(f"/proc/{child}/comm")).strip()
            if name.startswith("plait rank "):
                ranks[int(name.removeprefix("plait rank "))] = int(child)
    return ranks


def _text_of(file):
    """Returns what a file of a process or a thread says; nothing if that has ended."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_until(condition, seconds, what):
    """Polls; returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, f"{what}: not within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began

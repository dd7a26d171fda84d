"""A rank or the launcher that dies or stops: the run ends within the timeout, with the rank's
number, and leaves nothing."""

import os
import pathlib
import signal
import time

import pytest
import safetensors.numpy

import program
from program import FAILED

RANKS = 3
TIMEOUT, SLACK = 5, 1
COOPERATIVE = ("--sampled", "--cooperative", "--fanout", "3,3", "--batch", "32")  # threads of ranks wait for each other


class Run:
    """Training that would go on for hours, once it is past its first epochs."""

    def __init__(self, folder, graph, *options):
        self.folder, self.checkpoint = folder, folder / "c.safetensors"
        self.shared_memory = set(os.listdir("/dev/shm"))
        self.process = program.start("train", graph, "--ranks", RANKS, "--epochs", 9999999,
                                     "--checkpoint", self.checkpoint, "--checkpoint-every", 2,
                                     *options, cwd=folder)
        program.wait_until(self.checkpoint.exists, program.HANGS, "a checkpoint")
        time.sleep(0.6)  # until others have heard what each does
        self.ranks = program.ranks_of(self.process.pid)
        assert sorted(self.ranks) == list(range(RANKS))

    def result(self):
        """Returns the end of the run, and the seconds until then."""
        began = time.monotonic()
        result = program.result_of(self.process)
        return result, time.monotonic() - began

    def check_nothing_is_left(self):
        program.wait_until(lambda: all(map(program.ended, self.ranks.values())), program.HANGS,
                           "ranks ended")
        assert set(os.listdir("/dev/shm")) <= self.shared_memory
        assert list(program.contents(self.folder)) == [self.checkpoint]
        assert safetensors.numpy.load_file(self.checkpoint)  # whole

    def stop(self):
        """Ends all processes that the test has started, however far it has come."""
        for process in [self.process.pid, *self.ranks.values()]:
            if not program.ended(process):
                os.kill(process, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def start(tmp_path, communities):
    runs = []

    def start_run(*options):
        runs.append(Run(tmp_path, communities, *options))
        return runs[-1]

    yield start_run
    for run in runs:
        run.stop()


def check_lines(result, lost):
    """Every rank that is left names the lost rank and its work: each in one line, no other."""
    assert result.code == FAILED, result
    assert 1 <= len(result.lines) <= RANKS - 1, result
    for line in result.lines:
        assert line.startswith("plait: rank ") and f"rank {lost} " in line, result
        assert not line.startswith(f"plait: rank {lost}: "), result
    assert any("epoch" in line for line in result.lines), result
    assert result.out == ""


@pytest.mark.parametrize("lost", range(RANKS))
@pytest.mark.parametrize("options", [("--strategy", "bulk"), ("--strategy", "get"), COOPERATIVE])
def test_killed_rank(start, lost, options):
    run = start(*options)
    os.kill(run.ranks[lost], signal.SIGKILL)
    result, seconds = run.result()
    check_lines(result, lost)
    assert "signal 9" in result.err
    assert seconds < TIMEOUT + SLACK
    run.check_nothing_is_left()


@pytest.mark.parametrize("lost", [0, 2])
@pytest.mark.parametrize("options", [(), COOPERATIVE])
def test_stopped_rank(start, lost, options):
    run = start(*options)
    os.kill(run.ranks[lost], signal.SIGSTOP)
    result, seconds = run.result()
    check_lines(result, lost)
    assert "has not answered" in result.err
    assert seconds < TIMEOUT + SLACK
    run.check_nothing_is_left()


def test_timeout_is_a_setting(start):
    run = start("--timeout", 1.5)
    os.kill(run.ranks[1], signal.SIGSTOP)
    result, seconds = run.result()
    check_lines(result, 1)
    assert 0.5 < seconds < 1.5 + SLACK
    run.check_nothing_is_left()


def test_killed_launcher(start):
    """The kernel ends the ranks with it."""
    run = start()
    run.process.kill()
    program.wait_until(lambda: all(map(program.ended, run.ranks.values())), TIMEOUT + SLACK,
                       "the ranks have ended")
    run.check_nothing_is_left()


def test_suspended_job_goes_on(start):
    """All processes stopped, as by Ctrl-Z, for longer than the timeout: nobody is lost."""
    run = start("--timeout", 1)
    everyone = [run.process.pid, *run.ranks.values()]
    for process in everyone:
        os.kill(process, signal.SIGSTOP)
    time.sleep(2)
    before = run.checkpoint.stat().st_mtime_ns
    for process in reversed(everyone):
        os.kill(process, signal.SIGCONT)
    program.wait_until(lambda: run.checkpoint.stat().st_mtime_ns > before, program.HANGS,
                       "training goes on")
    time.sleep(1.5)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    result, _ = run.result()
    assert result.code == program.INTERRUPTED
    program.check_one_line(result, ["interrupted"])
    run.check_nothing_is_left()


def test_nothing_has_a_name(start):
    """The symmetric heap is anonymous: no file in a file system stands for it."""
    run = start()
    maps = pathlib.Path(f"/proc/{run.ranks[0]}/maps").read_text()
    assert "memfd:" in maps and "/dev/shm" not in maps
    assert set(os.listdir("/dev/shm")) <= run.shared_memory

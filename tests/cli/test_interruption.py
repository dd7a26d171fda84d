"""Ctrl-C: exit code 130, one line, nothing half-written, whatever the command and the ranks."""

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import signal
import termios
import time

import numpy as np
import pytest

import program
from program import INTERRUPTED
from training import history_of


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A graph that each command works on for seconds, and features for it."""
    folder = tmp_path_factory.mktemp("large")
    graph = folder / "large.plait"
    program.Plait(folder).ok("generate", "dcsbm", "--vertices", 200000, "--edges", 12000000,
                             "--width", 16, "-o", graph)
    np.save(folder / "x.npy", np.ones((200000, 512), np.float32))
    return graph


def catches_interrupt(process_id):
    """Returns whether a process has handlers: before its main(), it dies of the signal itself."""
    try:
        status = pathlib.Path(f"/proc/{process_id}/status").read_text()
    except FileNotFoundError:
        return False
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGINT - 1) & 1


def interrupted(arguments, seconds, ranks=1):
    """Returns the result of a run that gets Ctrl-C some seconds after it has begun."""
    given = ["--ranks", ranks] if ranks > 1 else []
    process = program.start(*arguments, *given, start_new_session=True)

    def begun():
        working = program.ranks_of(process.pid).values() if ranks > 1 else [process.pid]
        return len(working) == ranks and all(map(catches_interrupt, working))

    program.wait_until(begun, program.HANGS, "a beginning")
    time.sleep(seconds)
    assert process.poll() is None, "it was too quick to be interrupted"
    os.killpg(process.pid, signal.SIGINT)
    return program.result_of(process)


def commands(large, out):
    features = ["--features", large.with_name("x.npy"), "--out", out / "y.npy"]
    return {
        "generate": ["generate", "dcsbm", "--vertices", 3000000, "--edges", 60000000, "-o",
                     out / "g.plait"],
        "convert": ["convert", large, out / "g.mtx"],
        "partition": ["partition", large, "--partition", "metis", "--ranks", 64],
        "aggregate": ["aggregate", large, *features],
    }


@pytest.mark.parametrize("command,ranks", [("generate", 1), ("convert", 1), ("partition", 1),
                                           ("aggregate", 1), ("aggregate", 2)])
@pytest.mark.parametrize("seconds", [0, 0.2])
def test_nothing_is_left(tmp_path, large, command, ranks, seconds):
    result = interrupted(commands(large, tmp_path)[command], seconds, ranks)
    assert (result.code, result.out) == (INTERRUPTED, ""), result
    program.check_one_line(result, ["interrupted"])
    assert program.contents(tmp_path) == {}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_rank(tmp_path, large, rank):
    """The others are told to end, and do not wait for the rank until they think it lost."""
    process = program.start("louvain", large, "--ranks", 2, "--repetitions", 1000, start_new_session=True)

    def begun():
        ranks = program.ranks_of(process.pid).values()
        return len(ranks) == 2 and all(map(catches_interrupt, ranks))

    program.wait_until(begun, program.HANGS, "two ranks")
    time.sleep(0.3)
    began = time.monotonic()
    os.kill(program.ranks_of(process.pid)[rank], signal.SIGINT)
    result = program.result_of(process)
    assert time.monotonic() - began < 3
    assert (result.code, result.out) == (INTERRUPTED, ""), result
    program.check_one_line(result, ["interrupted"])


@pytest.mark.parametrize("whole_group", [True, False])
def test_infer_on_ranks(tmp_path, large, whole_group):
    """Ranks are gone with their launcher."""
    checkpoint = tmp_path / "c.safetensors"
    program.Plait(tmp_path).ok("train", large, "--epochs", 1, "--hidden", 256, "--checkpoint", checkpoint)
    process = program.start("infer", large, "--checkpoint", checkpoint, "--out",
                            tmp_path / "y.npy", "--ranks", 3, start_new_session=True)
    program.wait_until(lambda: len(program.ranks_of(process.pid)) == 3, program.HANGS,
                       "three ranks")
    ranks = program.ranks_of(process.pid).values()
    time.sleep(0.3)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    result = program.result_of(process)
    assert result.code == INTERRUPTED, result
    assert all(program.ended(rank) for rank in ranks)
    assert list(program.contents(tmp_path)) == [checkpoint]


@pytest.mark.parametrize("ranks,whole_group", [(1, True), (3, True), (3, False), (4, True)])
def test_train_keeps_what_it_has_reached(plait, tmp_path, communities, ranks, whole_group):
    """The epoch in flight is finished, and a resumed run has the curve of a run without a break."""
    checkpoint = tmp_path / "c.safetensors"
    train = ["train", communities, "--ranks", ranks]
    process = program.start(*train, "--epochs", 1000000, "--json", "--checkpoint", checkpoint,
                            "--checkpoint-every", 1, start_new_session=True)
    program.wait_until(checkpoint.exists, program.HANGS, "a checkpoint")
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    result = program.result_of(process)
    assert result.code == INTERRUPTED, result
    program.check_one_line(result, ["interrupted after", f"--resume {checkpoint}"])
    more = [*train, "--epochs", result.json["epochs"] + 3]
    assert plait.json(*more, "--resume", checkpoint)["loss"] == plait.json(*more)["loss"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_train_before_the_first_epoch(tmp_path, large, ranks):
    result = interrupted(["train", large, "--partition", "metis", "--checkpoint",
                          tmp_path / "c.safetensors"], 0, ranks)
    assert result.code == INTERRUPTED, result
    program.check_one_line(result, ["interrupted"])
    assert program.contents(tmp_path) == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("whole_group", [True, False])
def test_ranks_that_the_signal_itself_ends(large, number, whole_group):
    """This is before main() has begun, or by SIGTERM and SIGHUP until training begins: the launcher reports it."""
    process = program.start("train", large, "--partition", "metis", "--ranks", 2,
                            start_new_session=True)
    program.wait_until(lambda: len(program.ranks_of(process.pid)) == 2, program.HANGS, "two ranks")
    (os.killpg if whole_group else os.kill)(process.pid, number)
    result = program.result_of(process)
    assert (result.code, result.out) == (INTERRUPTED, ""), result
    program.check_one_line(result, ["interrupted"])


def training_begun(tmp_path, graph, *options, **settings):
    """A training without an end whose first epoch is over, and its checkpoint."""
    checkpoint = tmp_path / "c.safetensors"
    process = program.start("train", graph, "--epochs", 1000000, "--json", "--checkpoint",
                            checkpoint, "--checkpoint-every", 1, *options, start_new_session=True,
                            **settings)
    program.wait_until(lambda: checkpoint.exists() or process.poll() is not None, 120, "an epoch")
    return process, checkpoint


class SlowTerminal:
    """Stderr of a training on two ranks, a terminal that shows nothing more once it is full: rank 0
    waits to draw its progress, as after Ctrl-S, in the midst of an epoch, and rank 1 waits for it."""

    def __init__(self, tmp_path, graph, *options):
        self.ours, theirs = pty.openpty()
        name = os.ttyname(theirs)
        self.process, self.checkpoint = training_begun(
            tmp_path, graph, "--ranks", 2, *options, stderr=theirs,
            env=program.environment(TERM="xterm"))
        self.ranks = program.ranks_of(self.process.pid)
        filler = os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        program.wait_until(lambda: self.full(filler) and self.stands_still(), program.HANGS,
                           "rank 0 waits for the terminal")
        os.close(filler)
        os.close(theirs)

    @staticmethod
    def full(filler):
        try:
            while os.write(filler, b"." * 64):
                pass
        except BlockingIOError:
            return True

    def stands_still(self):
        before = self.checkpoint.stat().st_mtime_ns
        time.sleep(0.5)
        return self.checkpoint.stat().st_mtime_ns == before

    def result(self):
        """Shows everything from now on; returns the run's end and its last line on the terminal."""
        shown = b""
        with contextlib.suppress(OSError):  # the last one has closed it
            while piece := os.read(self.ours, 65536):
                shown += piece
        os.close(self.ours)
        result = program.result_of(self.process, 60)
        line = shown.decode().rpartition("\x1b[K")[2].removeprefix("." * 64)
        return program.Result(result.code, result.out, line[line.find("plait: "):].replace("\r", ""))


@pytest.mark.parametrize("send,numbers", [(os.kill, [signal.SIGTERM]), (os.killpg, [signal.SIGHUP] * 2 + [signal.SIGTERM])])
def test_train_has_no_deadline(tmp_path, communities, send, numbers):
    """An epoch that outlasts the timeout is finished all the same, and saved. A terminal that is closed and
    its shell may both send SIGHUP, and the end of the session SIGTERM, which are one wish."""
    run = SlowTerminal(tmp_path, communities, "--timeout", 2)
    for number in numbers:
        send(run.process.pid, number)
        time.sleep(3.5)
    assert not any(map(program.ended, run.ranks.values()))
    result = run.result()
    assert result.code == INTERRUPTED, result
    program.check_one_line(result, ["interrupted after", f"--resume {run.checkpoint}"])
    assert result.json["interrupted"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_closed_terminal(tmp_path, communities, ranks):
    """The run is saved, though nobody sees the line that says so."""
    ours, theirs = pty.openpty()
    process, checkpoint = training_begun(
        tmp_path, communities, "--ranks", ranks, stderr=theirs, env=program.environment(TERM="xterm"),
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
    os.close(theirs)
    os.close(ours)
    result = program.result_of(process, 60)
    assert result.code == INTERRUPTED and result.json["interrupted"]
    assert len(history_of(checkpoint)) == result.json["epochs"]


@pytest.mark.parametrize("whole_group,number", [(True, signal.SIGINT), (False, signal.SIGTERM)])
def test_second_signal_ends_training_at_once(tmp_path, communities, whole_group, number):
    """This holds though one rank stands still, and the other one waits for it."""
    run = SlowTerminal(tmp_path, communities, "--timeout", 60)
    send = os.killpg if whole_group else os.kill
    send(run.process.pid, number)
    time.sleep(0.8)
    assert not any(map(program.ended, run.ranks.values()))
    send(run.process.pid, number)
    time.sleep(0.3)
    result = run.result()
    assert (result.code, result.out) == (INTERRUPTED, ""), result
    program.check_one_line(result, ["interrupted"])
    assert all(map(program.ended, run.ranks.values()))
    assert list(program.contents(tmp_path)) == [run.checkpoint]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_ranks_go_on_to_their_end(tmp_path, communities, number):
    """One signal suffices: a rank that is stopped could not heed it."""
    process, checkpoint = training_begun(tmp_path, communities, "--ranks", 2, "--timeout", 60)
    for rank in program.ranks_of(process.pid).values():
        os.kill(rank, signal.SIGSTOP)
    os.kill(process.pid, number)
    result = program.result_of(process, 60)
    assert result.code == INTERRUPTED, result
    program.check_one_line(result, ["interrupted after", f"--resume {checkpoint}"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_before_the_first_epoch(tmp_path, large, number):
    """The other rank ends of the signal at once; the stopped rank has to end, too."""
    process = program.start("train", large, "--partition", "metis", "--ranks", 2, "--timeout", 60)
    program.wait_until(lambda: len(program.ranks_of(process.pid)) == 2, program.HANGS, "two ranks")
    ranks = program.ranks_of(process.pid)
    program.wait_until(lambda: all(map(catches_interrupt, ranks.values())), program.HANGS, "main()")
    os.kill(ranks[1], signal.SIGSTOP)
    os.kill(process.pid, number)
    result = program.result_of(process, 30)
    assert (result.code, result.out) == (INTERRUPTED, ""), result
    assert all(map(program.ended, ranks.values()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_ignored_stays_ignored(tmp_path, communities, ranks, number):
    """Scripts start background programs with SIGINT ignored, and nohup with SIGHUP: launcher and ranks
    go on ignoring it."""
    checkpoint = tmp_path / "c.safetensors"
    process = program.start("train", communities, "--epochs", 300, "--json", "--checkpoint",
                            checkpoint, "--checkpoint-every", 1, "--ranks", ranks,
                            start_new_session=True,
                            preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    program.wait_until(checkpoint.exists, program.HANGS, "an epoch")
    os.killpg(process.pid, number)
    result = program.result_of(process)
    assert (result.code, result.err) == (0, ""), result
    assert len(result.json["loss"]) == 300 and not result.json["interrupted"]

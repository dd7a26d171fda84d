"""The progress bar is drawn in a terminal, and only there. There is no colour anywhere."""

import errno
import os
import pty
import re
import subprocess

import pytest

from program import PROGRAM, RIGHT, environment

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ERASE = "\r\x1b[K"


def in_terminal(*arguments, **settings):
    """Returns (exit code, stdout, stderr, which is a terminal); stdout is no terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                               stderr=theirs, stdin=subprocess.DEVNULL, text=True,
                               env=environment(**({"TERM": "xterm"} | settings)))
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError as error:  # Linux: the last one has closed it
            assert error.errno == errno.EIO
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    out = process.communicate(timeout=300)[0]
    return process.returncode, out, shown.decode()


@pytest.fixture(params=[1, 2])
def train(request, communities):
    return ["train", communities, "--epochs", 40, "--ranks", request.param]


def test_progress_in_a_terminal(train):
    """The bar is drawn over itself, by one rank alone, and erased at the end."""
    code, out, shown = in_terminal(*train)
    assert code == RIGHT and "epochs, loss" in out
    assert re.search(r"training dcsbm \[[#.]{30}\] +\d+%", shown)
    assert shown.endswith(ERASE) and "\n" not in shown and not COLOUR.search(shown)
    steps = [int(p) for p in re.findall(r"training dcsbm \[[#.]*\] +(\d+)%", shown)]
    assert steps == sorted(steps)


def test_progress_of_a_study():
    code, out, shown = in_terminal("study", "row-bytes", "--ranks", 2, "--repetitions", 1)
    assert code == RIGHT and out
    assert re.search(r"study row-bytes \[[#.]{30}\] +0%", shown) and shown.endswith(ERASE) and "\n" not in shown
    assert len(set(re.findall(r"study row-bytes \[[#.]*\] +(\d+)%", shown))) > 1


@pytest.mark.parametrize("settings", [{"TERM": "dumb"}, {"TERM": ""}])
def test_terminals_that_cannot_erase(train, settings):
    assert in_terminal(*train, **settings)[2] == ""


def test_quiet(train):
    assert in_terminal(*train, "--quiet")[2] == ""


@pytest.mark.parametrize("settings", [{}, {"NO_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}])
def test_no_colour(plait, communities, settings):
    """Progress, errors and help have none."""
    for arguments in (["info", communities], ["info", "missing.plait"], ["--help"], ["doctor"],
                      ["train", communities, "--frobnicate"]):
        _, out, shown = in_terminal(*arguments, **settings)
        assert not COLOUR.search(out + shown)


def test_errors_in_a_terminal(communities):
    """The bar is erased before the line."""
    code, out, shown = in_terminal("train", communities, "--epochs", 40, "--lr", 1e30)
    assert code != RIGHT and out == ""
    assert re.search(r"(^|\x1b\[K)plait: [^\x1b\n]+\r\n$", shown)


def test_no_progress_elsewhere(plait, train):
    """Plait.ok() checks that stderr is empty."""
    assert "\x1b" not in plait.ok(*train).out

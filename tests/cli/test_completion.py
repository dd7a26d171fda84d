"""plait completion: the words that the shells themselves then offer."""

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time

import pytest

from program import PROGRAM, RIGHT, USAGE

# A line up to the cursor; words that must be offered; words that must not.
LINES = [
    ("plait ", {"train", "info", "generate", "completion", "report"}, {"dcsbm", "--epochs"}),
    ("plait tr", {"train"}, {"info"}),
    ("plait generate ", {"dcsbm", "rmat", "grid", "star", "ring"}, {"train"}),
    ("plait bench ", {"aggregate", "messages", "model", "zoo"}, {"train"}),
    ("plait bench model g --model g", {"gcn", "gin", "gat"}, {"sage"}),
    ("plait study ren", {"renumbering"}, {"split"}),
    ("plait train g --st", {"--strategy"}, {"--epochs", "--scale"}),
    ("plait generate dcsbm --sc", {"--scale"}, {"--strategy"}),
    ("plait bench aggregate --wid", {"--widths"}, {"--features"}),
    ("plait aggregate --fe", {"--features"}, {"--widths"}),
    ("plait train g --strategy ", {"auto", "bulk", "get", "pipelined"}, {"edges", "g.plait"}),
    ("plait train g --partition m", {"metis"}, {"edges"}),
    ("plait partition g --partition ", {"edges", "vertices", "clusters", "hash", "metis", "all"}, set()),
    ("plait train g --model g", {"gcn", "gin", "gat"}, {"sage"}),
    ("plait train g --aggregation ", {"mean", "max"}, {"sum"}),
    ("plait train g --norm ", {"none", "batch", "layer"}, set()),
    ("plait train g --wire ", {"fp32", "bf16"}, {"graph.mtx"}),
    ("plait aggregate g --op ", {"sum", "mean", "weighted"}, {"auto"}),
    ("plait generate dcsbm --like p", {"products", "proteins", "papers100M"}, {"reddit"}),
    ("plait com", {"components", "completion"}, {"bfs"}),
    ("plait bfs --so", {"--source"}, {"--strategy"}),
    ("plait walk --st", {"--starts", "--structure"}, {"--source"}),
    ("plait components g --partition ", {"edges", "hash", "metis"}, {"g.plait"}),
    ("plait completion ", {"bash", "zsh", "fish"}, {"train"}),
    ("plait info gr", {"graph one.plait", "graph.mtx"}, {"other"}),
    ("plait train g --resume gr", {"graph one.plait", "graph.mtx"}, {"other"}),
    ("plait train g --epochs ", set(), {"graph.mtx", "train", "bulk"}),
]


@pytest.fixture
def folder(tmp_path):
    """A folder in which files are completed, and plait is found."""
    for name in ("graph one.plait", "graph.mtx", "other"):
        (tmp_path / name).touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/plait").symlink_to(PROGRAM)
    return tmp_path


def run(folder, *command, **options):
    path = f"{folder}/bin:{os.environ['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300,
                          env=os.environ | {"PATH": path, "HOME": str(folder)}, **options)


BASH = """
source <(plait completion bash)
complete -p plait >/dev/null || exit 9
offer() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _plait plait "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  printf '%s\\n' "${COMPREPLY[@]}" ==
}
"""


def words_of(line):
    """Splits a line as readline does: a '=' stands alone."""
    words = re.findall(r"[^\s=]+|=", line)
    return words if words and not line.endswith((" ", "=")) else [*words, ""]


def bash_offers(folder, lines):
    script = BASH + "\n".join("offer " + shlex.join(words_of(line)) for line in lines)
    done = run(folder, "bash", "-u", "-c", script)
    assert (done.returncode, done.stderr) == (RIGHT, "")
    offers = [set(filter(None, part.split("\n"))) for part in done.stdout.split("==\n")[:-1]]
    assert len(offers) == len(lines)
    return offers


def check(line, offered, there, absent):
    assert there <= offered and not absent & offered, (line, offered)
    if not there:
        assert not offered, line


def test_bash(folder):
    for (line, there, absent), offered in zip(LINES, bash_offers(folder, [l for l, *_ in LINES])):
        check(line, offered, there, absent)


def test_bash_with_equals_signs(folder):
    """Values of --option=value are completed."""
    offers = bash_offers(folder, ["plait train g --strategy=", "plait train g --strategy=bu",
                                  "plait train g --resume=gr"])
    assert {"bulk", "auto"} <= offers[0] and offers[1] == {"bulk"}
    assert "graph.mtx" in offers[2]


def helps(plait, path=""):
    """Yields the help of every command, with the words that it lists below itself."""
    text = plait.ok(*path.split(), "--help").out
    below = text.partition("Subcommands:")[2].split("\n\n")[0]
    words = re.findall(r"^  ([\w-]+)", below, re.MULTILINE)
    yield path, text, words
    for word in words:
        yield from helps(plait, f"{path} {word}")


def test_bash_offers_what_help_lists(plait, folder):
    """It offers every option of every command, and every command."""
    found = list(helps(plait))
    assert len(found) > 17
    offers = bash_offers(folder, [f"plait{path} {end}" for path, *_ in found for end in ("-", "")])
    for (path, text, words), options, arguments in zip(found, offers[::2], offers[1::2]):
        names = re.findall(r"^  (?:-\w,)?(--[\w-]+(?:,--[\w-]+)*)", text, re.MULTILINE)
        listed = {name for several in names for name in several.split(",")}
        assert {option for option in options if option.startswith("--")} == listed, path
        assert not words or arguments == set(words), path


READ_WITH = {"--aggregation": ("--model", "sage"), "--transport": ("--gpus", 1), "--wire": ("--ranks", 2)}


@pytest.mark.parametrize("option", ["--strategy", "--partition", "--norm", "--normalize", "--activation",
                                    "--aggregation", "--model", "--transport", "--wire"])
def test_words_are_accepted(plait, folder, communities, option):
    """The program knows every word that is offered, though the word may need GPUs."""
    words = bash_offers(folder, [f"plait train g {option} "])[0]
    assert len(words) >= 2
    for word in words:
        result = plait("train", communities, option, word, *READ_WITH.get(option, ()), "--epochs", 1, "--hidden", 8)
        assert result.code == RIGHT or "GPU" in result.err, (word, result)


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish(folder):
    script = "plait completion fish | source\n" + "\n".join(
        f"complete -C {shlex.quote(line)}; echo ==" for line, *_ in LINES)
    done = run(folder, "fish", "--no-config", "-c", script)
    assert (done.returncode, done.stderr) == (RIGHT, "")
    parts = done.stdout.split("==\n")[:-1]
    assert len(parts) == len(LINES)
    for (line, there, absent), part in zip(LINES, parts):
        offered = {o.split("\t")[0].replace("\\ ", " ") for o in part.splitlines()}
        check(line, offered, there, absent)


def zsh_offers(folder, line):
    """Presses Tab in an interactive zsh; returns the text of the terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.update(PATH=f"{folder}/bin:{os.environ['PATH']}", TERM="dumb", PS1="",
                          HOME=str(folder), COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])

    def read_until(end, seconds=20):
        text, stop = "", time.monotonic() + seconds
        while not re.search(end, text, re.DOTALL) and time.monotonic() < stop:
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")
        return text

    try:
        os.write(terminal, b"autoload -Uz compinit; compinit -u -D; unsetopt beep; "
                           b"source <(plait completion zsh); echo rea''dy\n")
        # Keys before the editor has begun, which switches bracketed paste on, would be taken as
        # they are. Tab lists the words; the text after it marks the end.
        assert "ready" in read_until("ready.*\x1b\\[\\?2004h")
        os.write(terminal, line.encode() + b"\t\t\x15echo do''ne\n")
        return read_until("done")
    finally:
        os.close(terminal)
        os.kill(process, 9)
        os.waitpid(process, 0)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
@pytest.mark.parametrize("line,there", [
    ("plait ", ["train", "completion", "generate"]),
    ("plait generate ", ["dcsbm", "ring"]),
    ("plait train g --str", ["--strategy"]),
    ("plait train g --strategy ", ["auto", "pipelined", "replicate"]),
    ("plait bench aggregate --wire ", ["fp32", "bf16"]),
    ("plait info graph.", ["graph.mtx"]),
])
def test_zsh(folder, line, there):
    offered = zsh_offers(folder, line).replace(line, "", 1)
    for word in there:
        assert word in offered or word.removeprefix(line.split()[-1]) in offered, offered


@pytest.mark.parametrize("shell", [s for s in ("bash", "zsh", "fish") if shutil.which(s)])
def test_syntax(folder, shell):
    script = folder / "script"
    script.write_text(run(folder, "plait", "completion", shell).stdout)
    done = run(folder, shell, "-n", script)
    assert (done.returncode, done.stderr) == (RIGHT, "")


def test_wrong_usage(plait):
    plait.fails(USAGE, "completion", names=["shell"])
    plait.fails(USAGE, "completion", "tcsh", names=["tcsh", "bash"])

"""The two executables of the program: `plait` starts without libtorch and does the light commands by
itself; with all else it becomes `plait-ranks`, whose output is the same."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import program
from program import FAILED, RIGHT, environment

FRONT = pathlib.Path(program.PROGRAM).resolve()
RANKS = FRONT.with_name("plait-ranks")
AS_RANK = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}

LIGHT = [
    "--version",
    "info g.plait", "info g.plait --json", "info", "info --help", "info none", "info g.plait train",
    "info g.plait --jsn", "info bad.mtx",
    "generate ring -o new.plait", "generate", "generate --help", "generate dcsbm --help",
    "generate circle -o new.plait", "generate ring -o no/new.plait", "generate ring --vertices x",
    "convert g.plait new.npz", "convert g.plait g.plait", "convert g.plait new.what",
    "convert --help", "convert g.plait new.npz --features missing.npy",
    "partition g.plait --partition edges --ranks 3", "partition --help",
    "partition g.plait --partition all", "partition g.plait --ranks 0",
    "reorder g.plait new.plait --method degree", "reorder g.plait new.npz", "reorder --help",
    "reorder g.plait new.plait --method alphabet",
    "report run.json -o page.html", "report g.plait -o page.html", "report --help", "report",
]


@pytest.fixture(scope="module")
def inputs(communities, tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copy(communities, folder / "g.plait")
    (folder / "bad.mtx").write_text("no matrix\n")
    train = program.Plait(folder).ok("train", communities, "--epochs", 2, "--json")
    (folder / "run.json").write_text(train.out)
    return folder


def outcome(executable, line, folder, **options):
    """Returns all that a command leaves, apart from the seconds that it took."""
    result = program.Plait(folder)(*line.split(), command=(executable,), cwd=folder, **options)
    files = {path.name: digest for path, digest in program.contents(folder).items()}
    return result.code, re.sub(r"[\d.]+ s\b", "", result.out), result.err, files


def outcomes(inputs, tmp_path, line, executables=(FRONT, RANKS), **options):
    for executable in executables:
        folder = tmp_path / executable.name
        shutil.copytree(inputs, folder)
        yield outcome(executable, line, folder, **options)


@pytest.fixture
def alone(tmp_path):
    """A copy of `plait` in a folder that has nothing else."""
    (tmp_path / "alone").mkdir()
    return pathlib.Path(shutil.copy(FRONT, tmp_path / "alone/plait"))


@pytest.mark.parametrize("given, looks", [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "")])
def test_threads_wait_briefly(alone, given, looks):
    """Unless the user says how OpenMP's threads wait for work."""
    ranks = alone.with_name("plait-ranks")
    ranks.write_text('#!/bin/sh\necho "$GOMP_SPINCOUNT"\n')
    ranks.chmod(0o755)
    rest = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    assert subprocess.check_output([alone, "train"], env=rest | given, text=True).strip() == looks


def test_libraries():
    needed = [subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
              for file in (FRONT, RANKS)]
    assert ["libtorch" in libraries for libraries in needed] == [False, True]


@pytest.mark.parametrize("line", LIGHT)
def test_light_commands(inputs, tmp_path, line):
    front, ranks = outcomes(inputs, tmp_path, line)
    assert front == ranks
    assert front[0] == RIGHT or len(front[2].splitlines()) == 1, front


@pytest.mark.parametrize("line", ["--version", "info g.plait", "partition --help", "convert none n.mtx",
                                  "generate ring -o new.plait", "report run.json -o page.html"])
def test_light_commands_need_nothing_else(inputs, tmp_path, alone, line):
    copy, ranks = outcomes(inputs, tmp_path, line, (alone, RANKS))
    assert copy == ranks


@pytest.mark.parametrize("line", ["", "--help", "doctor", "train g.plait", "completion bash", "inf g.plait",
                                  "--json info g.plait", "--version=1"])
def test_all_else_needs_the_whole_program(plait, alone, line):
    plait.fails(FAILED, *line.split(), command=(alone,),
                names=[alone.with_name("plait-ranks"), "cannot be started"])


def test_the_front_does_not_start_itself(plait, alone):
    alone.with_name("plait-ranks").symlink_to(alone)
    plait.fails(FAILED, "train", "none", command=(alone,), names=["plait-ranks", "is plait itself"])


@pytest.mark.parametrize("line", ["", "--help", "inf g.plait", "train g.plait --epochs 0 none",
                                  "completion bash", "train --help"])
def test_all_else_is_handed_over(inputs, tmp_path, line):
    front, ranks = outcomes(inputs, tmp_path, line)
    assert front == ranks


def test_the_whole_program_is_found_through_links(plait, tmp_path):
    """It stands beside the file, not beside the link; arguments and variables arrive as they are."""
    (tmp_path / "a name").symlink_to(FRONT)
    (tmp_path / "link").symlink_to("a name")
    result = plait("train", "no such  file", command=("./link",), cwd=tmp_path,
                   env=environment(**AS_RANK | {"RANK": "none"}))
    program.check_one_line(result, ["RANK", "'none'"])
    result = plait("info", "no such  file", command=("link",), cwd=tmp_path,
                   env=environment(PATH=str(tmp_path)))
    program.check_one_line(result, ["no such  file"])


@pytest.mark.parametrize("line", ["info g.plait", "info none", "convert g.plait no/g.mtx",
                                  "generate ring -o new.plait", "--version"])
@pytest.mark.parametrize("variables", [
    AS_RANK, AS_RANK | {"WORLD_SIZE": "x"}, {"RANK": "0", "WORLD_SIZE": "1"},
    {f"PLAIT_{name}": value for name, value in AS_RANK.items()} | {"PLAIT_TIMEOUT_MS": "200"}])
def test_ranks_of_a_launcher(inputs, tmp_path, line, variables):
    front, ranks = outcomes(inputs, tmp_path, line, env=environment(**variables))
    assert front == ranks


def test_a_rank_names_itself(plait, alone):
    """The whole program does so, whatever the command."""
    result = plait("info", "none", env=environment(**AS_RANK))
    program.check_one_line(result, ["plait: rank 1: none"])
    result = plait("info", "none", command=(alone,), env=environment(**AS_RANK))
    program.check_one_line(result, ["plait-ranks: cannot be started"])


@pytest.mark.parametrize("closed", [[1], [0, 1, 2], [2]])
@pytest.mark.parametrize("line", ["info g.plait", "info none", "train none"])
def test_closed_descriptors(inputs, tmp_path, line, closed):
    front, ranks = outcomes(inputs, tmp_path, line,
                            preexec_fn=lambda: [os.close(number) for number in closed])
    assert front == ranks and front[0] == (FAILED if closed != [2] or "none" in line else RIGHT)

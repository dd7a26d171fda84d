"""Output that cannot be written: one line names it, the exit code is 1, no part of it is left, and
files that stood there before are untouched."""

import os
import resource
import shutil
import subprocess

import numpy as np
import pytest
import safetensors.numpy

import program
from program import FAILED, USAGE


@pytest.fixture
def work(plait, tmp_path):
    """Returns the arguments of each command that writes, except the output file that ends them."""
    plait.ok("generate", "ring", "--vertices", 20000, "-o", tmp_path / "g.plait")
    np.save(tmp_path / "x.npy", np.ones((20000, 4), np.float32))
    return {"convert": ["convert", tmp_path / "g.plait"],
            "aggregate": ["aggregate", tmp_path / "g.plait", "--features", tmp_path / "x.npy",
                          "--out"],
            "generate": ["generate", "star", "--vertices", 20000, "-o"]}


ENDING = {"convert": ".mtx", "aggregate": ".npy", "generate": ".plait"}


@pytest.mark.parametrize("command", ENDING)
@pytest.mark.parametrize("existing", [False, True])
def test_file_size_limit(plait, tmp_path, work, command, existing):
    """The limit stands for a full disk: writes fail after 64 KiB, in which no output here fits."""
    out = tmp_path / ("out" + ENDING[command])
    if existing:
        out.write_text("stays")
    limit = 1 << 16
    plait.fails(FAILED, *work[command], out, names=[out, "cannot be written"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def may_mount():
    """Returns whether this user may mount in a name space of its own."""
    unshare = shutil.which("unshare")
    test = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return bool(unshare) and subprocess.run(test, capture_output=True).returncode == 0


FULL_DISK = """
mount -t tmpfs -o size=128k none "$1" && echo stays > "$1/old.mtx" || exit 77
folder=$1; shift
"$@"
code=$?
ls -A "$folder"; cat "$folder/old.mtx"
exit $code
"""


@pytest.mark.skipif(not may_mount(), reason="mounting a small disk takes privileges")
@pytest.mark.parametrize("command", ENDING)
@pytest.mark.parametrize("ranks", [1, 2])
def test_no_space_left(plait, tmp_path, work, command, ranks):
    """A real file system is full. It is gone with its name space, so it is listed within."""
    if ranks > 1 and command != "aggregate":
        pytest.skip("does not run on ranks")
    disk = tmp_path / "disk"
    disk.mkdir()
    name = "new" + ENDING[command] if command != "convert" else "old.mtx"
    ranked = ["--ranks", ranks] * (ranks > 1)
    result = plait("-m", "sh", "-c", FULL_DISK, "sh", disk, program.PROGRAM, *work[command],
                   disk / name, *ranked, command=("unshare",))
    assert result.code == FAILED, result
    program.check_one_line(result, [disk / name, "no space left"])
    assert result.out == "old.mtx\nstays\n"


@pytest.mark.parametrize("command", ENDING)
def test_folders(plait, tmp_path, work, command):
    (tmp_path / ("folder" + ENDING[command])).mkdir()
    for name, words in [("missing/out", "no folder"), ("folder", "is a folder"),
                        ("g.plait/out", "not a directory")]:
        out = tmp_path / (name + ENDING[command])
        plait.fails(FAILED, *work[command], out, names=[out, words])


@pytest.mark.skipif(not os.path.isdir("/sys/kernel"), reason="no /sys")
@pytest.mark.parametrize("command", ENDING)
def test_places_where_nothing_can_be_written(plait, work, command):
    for folder in ("/sys/kernel/out", "/proc/self/out", "/dev/out"):
        out = folder + ENDING[command]
        plait.fails(FAILED, *work[command], out, names=[out])
        assert not os.path.exists(out)
    if command != "generate":
        return
    os.symlink("/dev/full", plait.folder / "full.plait")
    plait.fails(FAILED, *work[command], plait.folder / "full.plait", names=["full.plait"])


@pytest.mark.parametrize("ranks", [1, 2])
def test_checkpoint_that_cannot_be_written(plait, tmp_path, communities, ranks):
    """This is found out before work begins, which would not end."""
    out = tmp_path / "no" / "c.safetensors"
    train = ["train", communities, "--epochs", 10000000, "--checkpoint-every", 0, "--checkpoint"]
    plait.fails(FAILED, *train, out, "--ranks", ranks, names=[out, "no folder"])


def test_outputs_that_cannot_be_written_are_found_out_first(plait, tmp_path):
    """This comes before inputs are read, which do not exist; also if another launcher starts ranks."""
    out, none = tmp_path / "no" / "out.npy", tmp_path / "none"
    for command in (["infer", none, "--checkpoint", none], ["aggregate", none, "--features", none]):
        plait.fails(FAILED, *command, "--out", out, names=[out, "no folder"])
        first, second = program.run_by_hand([*command, "--out", out], {}, {})
        assert (first.code, second.code) == (FAILED, FAILED)
        program.check_one_line(first, [out, "no folder"])


def test_generate_finds_out_first(plait, tmp_path):
    """The graph would not fit."""
    plait.fails(FAILED, "generate", "rmat", "--vertices", 2**40, "--edges", 2**46,
                "-o", tmp_path / "no" / "g.plait", names=["no folder"])


@pytest.mark.parametrize("ranks", [[], ["--ranks", 2]])
def test_outputs_that_are_inputs(plait, tmp_path, communities, ranks):
    """They are refused by any name; but a checkpoint that is resumed may be replaced."""
    graph, features, checkpoint = (tmp_path / name for name in ("g.plait", "x.npy", "c.st"))
    shutil.copy(communities, graph)
    np.save(features, np.ones((600, 2), np.float32))
    plait.ok("train", graph, "--epochs", 2, "--checkpoint", checkpoint)
    os.symlink(graph, tmp_path / "link")
    aggregate = ["aggregate", graph, "--features", features, *ranks, "--out"]
    infer = ["infer", graph, "--checkpoint", checkpoint, *ranks, "--out"]
    train = ["train", graph, *ranks, "--epochs", 4, "--checkpoint"]
    for command, out, names in [
            (aggregate, graph, ["graph", "--out"]), (aggregate, features, ["--features", "--out"]),
            (aggregate, tmp_path / "link", ["graph", "--out"]),
            (infer, checkpoint, ["--checkpoint", "--out"]), (infer, graph, ["graph", "--out"]),
            (train, graph, ["graph", "--checkpoint"]),
            (train, f"{tmp_path}/./g.plait", ["graph", "--checkpoint"])]:
        plait.fails(USAGE, *command, out, names=[out, "another name", *names])
    if not ranks:
        plait.fails(USAGE, "convert", graph, graph, names=[graph, "another name"])
    plait.ok(*train, checkpoint, "--resume", checkpoint)


def test_failing_train_keeps_the_checkpoint(plait, tmp_path, communities):
    out = tmp_path / "c.safetensors"
    plait.ok("train", communities, "--epochs", 3, "--checkpoint", out)
    limit = 1000
    plait.fails(FAILED, "train", communities, "--epochs", 6, "--checkpoint", out, names=[out],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert safetensors.numpy.load_file(out)


@pytest.mark.parametrize("ranks", [1, 2])
def test_scores_that_cannot_be_written(plait, tmp_path, communities, ranks):
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", communities, "--epochs", 2, "--checkpoint", checkpoint)
    out = tmp_path / "no" / "scores.npy"
    plait.fails(FAILED, "infer", communities, "--checkpoint", checkpoint, "--out", out, "--ranks",
                ranks, names=[out, "no folder"])


@pytest.mark.parametrize("command", [["train", "--epochs", 2, "--json"], ["info"],
                                     ["train", "--epochs", 2, "--ranks", 2], ["info", "--json"],
                                     ["partition", "--ranks", 64, "--json"],
                                     ["train", "--epochs", 2, "--ranks", 2, "--json"],
                                     ["train", "--epochs", 2, "--json", "--profile"]])
def test_results_that_stdout_does_not_take(plait, communities, command):
    """The line gives the reason, however long the result is."""
    with open("/dev/full", "w") as full:
        plait.fails(FAILED, command[0], communities, *command[1:], stdout=full,
                    names=["cannot be written to stdout: No space left on device"])


@pytest.mark.parametrize("closed", [[1], [0, 1, 2], [0, 1]])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_closed_stdout(plait, communities, closed, ranks):
    """No file or connection gets the number of stdout, and nothing is written there."""
    result = plait("train", communities, "--epochs", 2, "--ranks", ranks, "--json",
                   preexec_fn=lambda: [os.close(number) for number in closed])
    assert (result.code, result.out) == (FAILED, ""), result
    if 2 not in closed:
        program.check_one_line(result, ["cannot be written to stdout"])


def test_results_that_nobody_reads(plait, communities):
    """A rank gets an error, and is not ended by a signal."""
    reads, writes = os.pipe()
    os.close(reads)
    plait.fails(FAILED, "train", communities, "--epochs", 2, "--ranks", 2, stdout=writes,
                names=["cannot be written to stdout"])
    os.close(writes)


def test_files_that_belong_to_a_graph(plait, tmp_path):
    """MGG's graphs are three files, of which commands name the first."""
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 0\n")
    for graph in ("a", "b"):
        plait.ok("convert", tmp_path / "g.txt", tmp_path / f"{graph}_beg_pos.bin")
    shutil.copy(tmp_path / "g.txt", tmp_path / "c_weight.bin")
    for read, written, more in (("c_weight.bin", "c_beg_pos.bin", ["--format", "txt"]),
                                ("a_beg_pos.bin", "a_csr.bin", ["--out-format", "mtx"])):
        plait.fails(USAGE, "convert", tmp_path / read, tmp_path / written, *more,
                    names=[f"{written.partition('_')[0]}_", "is read as in, and out would replace it"])
    plait.fails(USAGE, "convert", tmp_path / "g.txt", tmp_path / "d_beg_pos.bin", "--trace", tmp_path / "d_csr.bin",
                names=["d_csr.bin: is written as"])

"""What the system refuses, or takes away: one line, the right exit code, and no process that is left."""

import contextlib
import ctypes
import os
import resource
import signal

import numpy as np
import pytest

import program
from program import DOES_NOT_FIT, FAILED, RIGHT, USAGE

CAP_SYS_ADMIN, CAP_SYS_RESOURCE, PR_CAPBSET_DROP = 21, 24, 24
NOBODY = 64123  # a user of whom no process runs


def with_limit(which, most):
    return lambda: resource.setrlimit(which, (most, most))


def with_processes(most):
    """Limits the processes and threads of a user. Root has no limit: the program then keeps root's files, but its
    processes count as another user's."""
    def limit():
        if os.geteuid() == 0:
            for capability in (CAP_SYS_ADMIN, CAP_SYS_RESOURCE):
                ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
            os.setresuid(NOBODY, 0, 0)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    return limit


def check_lines(result, codes, word):
    """A run succeeds, or ends with one line that names the limit."""
    assert result.code in codes, result
    if result.code != RIGHT:
        program.check_one_line(result, [word])
    return result.code


@pytest.mark.parametrize("ranks", [1, 2])
def test_few_processes(plait, communities, ranks):
    """Threads cannot be started, from OpenMP's to the watch over ranks, or ranks cannot."""
    codes = [check_lines(plait("train", communities, "--epochs", 1, "--ranks", ranks,
                               env=program.environment(OMP_NUM_THREADS="2"),
                               preexec_fn=with_processes(most)), (RIGHT, FAILED), "ulimit -u")
             for most in (0, 1, 2, 4, 8)[:2 * ranks + 1]]
    assert FAILED in codes
    assert sum(os.path.isdir(f"/proc/{process}") and os.stat(f"/proc/{process}").st_uid == NOBODY
               for process in filter(str.isdigit, os.listdir("/proc"))) == 0


def test_few_addresses(plait, communities, tmp_path):
    """Files, threads and libraries find no addresses."""
    for command, mib in [(["info"], 20), (["train", "--epochs", 1], 440), (["train", "--epochs", 1, "--ranks", 2], 460)]:
        check_lines(plait(command[0], communities, *command[1:], env=program.environment(OMP_NUM_THREADS="4"),
                          preexec_fn=with_limit(resource.RLIMIT_AS, mib << 20)),
                    (RIGHT, FAILED, DOES_NOT_FIT), "")
    plait.fails(DOES_NOT_FIT, "train", communities, names=["libraries", "ulimit -v"],
                preexec_fn=with_limit(resource.RLIMIT_AS, 300 << 20))
    large = tmp_path / "large.plait"
    with open(large, "wb") as file:
        file.truncate(1 << 30)
    result = plait("info", large, preexec_fn=with_limit(resource.RLIMIT_AS, 200 << 20))
    assert result.code == DOES_NOT_FIT
    program.check_one_line(result, [large, "1.0 GiB cannot be mapped", "ulimit -v"])


def test_few_open_files(plait, communities):
    codes = [check_lines(plait("train", communities, "--epochs", 1, "--ranks", 3,
                               preexec_fn=with_limit(resource.RLIMIT_NOFILE, files)), (RIGHT, FAILED), "ulimit -n")
             for files in (22, 28, 31, 40)]
    assert codes[0] == FAILED and codes[-1] == RIGHT, codes


@contextlib.contextmanager
def removed_folder(tmp_path):
    folder, before = tmp_path / "gone", os.getcwd()
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()
    try:
        yield
    finally:
        os.chdir(before)


def test_removed_folder(plait, communities, tmp_path):
    words = ["the current folder has been removed"]
    np.save(tmp_path / "x.npy", np.ones((600, 2), np.float32))
    with removed_folder(tmp_path):
        assert plait("info", communities).code == RIGHT
        plait.fails(FAILED, "info", "g.plait", names=["g.plait: cannot be opened"])
        for out in ("o.mtx", "./o.mtx"):
            plait.fails(FAILED, "convert", communities, out, names=[out, *words])
        plait.fails(FAILED, "generate", "ring", "--vertices", 9, "-o", "o.plait", names=words)
        plait.fails(FAILED, "generate", "ring", "--vertices", 9, "-o", "o.plait", "--trace", "o.json", names=words)
        for command in (["train"], ["train", "--ranks", 2], ["plan"], ["tune"], ["study", "interleaving"],
                        ["aggregate", "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy"]):
            split = 2 if command[0] == "study" else 1
            plait.fails(FAILED, *command[:split], communities, *command[split:], names=words)


def test_dangling_links(plait, communities, tmp_path):
    """They are followed, as links to files are; a folder that is missing is named."""
    link, target = tmp_path / "link.mtx", tmp_path / "target.mtx"
    link.symlink_to("target.mtx")
    plait("convert", communities, link, "--quiet")
    assert link.is_symlink() and target.read_text().startswith("%%MatrixMarket")
    for command, option, end in [("convert", [], ".mtx"), ("train", ["--checkpoint"], ".st"),
                                 ("train", ["--ranks", 2, "--checkpoint"], ".st"), ("train", ["--trace"], ".json")]:
        link = tmp_path / ("dangling" + end)
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / "none" / ("out" + end))
        plait.fails(FAILED, command, communities, *option, link,
                    names=[link, "it is a link to", "there is no folder", tmp_path / "none"])
        assert link.is_symlink()


def test_more_ranks_than_processors_can_connect(plait, communities, tmp_path):
    ranks = min(4096, 64 * len(os.sched_getaffinity(0)) + 1)
    if ranks == 4096:
        pytest.skip("this machine has processors enough")
    for command in (["train"], ["aggregate", "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy"]):
        plait.fails(USAGE, *command, communities, "--ranks", ranks, names=[f"{ranks} ranks", "processor"])


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_graph_that_becomes_shorter(plait, tmp_path, ranks):
    """Features that stay in the file are read while training samples."""
    graph, checkpoint = tmp_path / "g.plait", tmp_path / "c.st"
    plait.ok("generate", "dcsbm", "--vertices", 20000, "--edges", 100000, "-o", graph)
    process = program.start("train", graph, "--sampled", "--ranks", ranks, "--epochs", 999999, "--checkpoint",
                            checkpoint, "--checkpoint-every", 1, "--quiet")
    try:
        program.wait_until(checkpoint.exists, program.HANGS, "a checkpoint")
        os.truncate(graph, 4096)
        result = program.result_of(process, 60)
    finally:
        process.kill()
    assert result.code == FAILED, result
    program.check_one_line(result, [graph, "has become shorter"])
    assert result.code != 128 + signal.SIGBUS


def test_memory_of_all_ranks(plait, tmp_path):
    """Ranks that read a text at the same time count what the others take, too."""
    (tmp_path / "g.txt").write_text("0 1\n")
    given = ["components", tmp_path / "g.txt", "--vertices", 10_000_000]
    plait.fails(DOES_NOT_FIT, *given, "--ranks", 2, names=["needs 76.3 MiB on each of 2 ranks of a host, but only 100"],
                env=program.environment(PLAIT_HOST_MEMORY="100M"))
    plait.fails(DOES_NOT_FIT, *given, names=["components", "needs", "100.0 MiB"],
                env=program.environment(PLAIT_HOST_MEMORY="100M"))

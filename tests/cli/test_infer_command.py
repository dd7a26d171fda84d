"""plait infer --memory-limit: it gives the scores of plait infer, block by block through files, within
the limit; it goes on where a run ended; one line refuses impossible runs."""

import functools
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import time

import numpy as np
import pytest

import program
from program import DOES_NOT_FIT, FAILED, INTERRUPTED, USAGE, Plait
from training import directed_archive

MIB = 1 << 20
RANKS = {2: ["--ranks", 2], 3: ["--ranks", 3, "--partition", "vertices"]}

# Rows that are sent before and after they are multiplied, every operation over edges, norms within
# and between layers; dense features as they are, normalised, and sparse.
CASES = {
    "gcn": ("dense", ["--model", "gcn", "--hidden", 96, "--layers", 3, "--norm", "batch"]),
    "gcn that widens": ("dense", ["--model", "gcn", "--hidden", 200, "--residual"]),
    "gcn on weights": ("sparse", ["--model", "gcn", "--hidden", 128]),
    "mlp": ("unit", ["--model", "mlp", "--hidden", 256, "--norm", "layer"]),
    "sage": ("sparse", ["--model", "sage", "--hidden", 100, "--residual"]),
    "sage that widens": ("dense", ["--model", "sage", "--hidden", 150]),
    "sage by maximum": ("unit", ["--model", "sage", "--hidden", 96, "--aggregation", "max"]),
    "sage by maximum of words": ("sparse", ["--model", "sage", "--aggregation", "max"]),
    "gin": ("dense", ["--model", "gin", "--hidden", 64, "--layers", 3]),
    "gat": ("dense", ["--model", "gat", "--hidden", 64, "--heads", 4, "--output-heads", 3]),
    "gatv2": ("dense", ["--model", "gatv2", "--hidden", 24, "--heads", 4, "--output-heads", 3]),
    "transformer": ("sparse", ["--model", "transformer", "--hidden", 24, "--heads", 3, "--output-heads", 2]),
    "gat on words": ("sparse", ["--model", "gat", "--hidden", 96, "--norm", "batch"]),
}


class Work:
    """A trained model on a graph, and how to infer with it."""

    def __init__(self, folder, graph, train, *infer):
        self.plait, self.graph, self.infer = Plait(folder), graph, infer
        self.checkpoint = folder / "c.safetensors"
        self.plait.ok("train", graph, *train, "--epochs", 1, "--checkpoint", self.checkpoint,
                      *infer)

    def arguments(self, out, *more):
        return ["infer", self.graph, "--checkpoint", self.checkpoint, "--out", out, *self.infer,
                *more]

    @functools.cache
    def least(self, *more):
        """Returns the MiB that the program says it holds before it has any rows."""
        out = self.plait.folder / "refused.npy"
        found = self.plait.fails(DOES_NOT_FIT, *self.arguments(out, "--memory-limit", "1M", *more),
                                 names=["--memory-limit 1.0 MiB", "higher limit"])
        return float(re.search(r"hold ([\d.]+) MiB", found.err)[1])

    def limit(self, room, *more):
        """Returns --memory-limit with so many MiB for rows."""
        return ["--memory-limit", int((self.least(*more) + room) * MIB), *more]

    def scores(self, *more):
        out = self.plait.folder / "scores.npy"
        self.plait.ok(*self.arguments(out, *more))
        assert not work_of(out).exists()
        return np.load(out)


def work_of(out):
    """Returns the work folder of a run, whose name cannot be known before there is one."""
    found = list(out.parent.glob(f"{out.name}.layers-??????"))
    assert len(found) < 2
    return found[0] if found else out.parent / f"{out.name}.layers-"


def check_close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Makes graphs of 8,000 vertices: some ten blocks in the room for rows that the tests give."""
    folder = tmp_path_factory.mktemp("graphs")
    plait = Plait(folder)
    dense, sparse = folder / "dense.plait", folder / "sparse.plait"
    plait.ok("generate", "dcsbm", "--vertices", 8000, "--edges", 60000, "--seed", 2, "-o", dense)
    directed_archive(folder / "sparse.npz", vertices=8000)
    plait.ok("convert", folder / "sparse.npz", sparse)
    return {"dense": dense, "sparse": sparse, "unit": dense}


@pytest.mark.parametrize("name,several", list(zip(CASES, itertools.cycle([2, 3]))))
def test_the_scores_are_those_of_infer(graphs, tmp_path, name, several):
    """Runs are on one rank, and on several in turns."""
    kind, train = CASES[name]
    normalize = ["--normalize", "unit"] * (kind == "unit")
    case = Work(tmp_path, graphs[kind], train, *normalize)
    wanted = case.scores()
    room = case.limit(3)
    check_close(case.scores(*room), wanted)
    check_close(case.scores(*room, *RANKS[several]), wanted)


@pytest.mark.parametrize("model", [["gcn", "--hidden", 256], ["gat", "--hidden", 256],
                                   ["sage", "--hidden", 256, "--aggregation", "max"]])
def test_a_hub_whose_neighbours_do_not_fit(tmp_path, model):
    """All others are neighbours of vertex 7, and it is theirs: rows of 20 MiB."""
    vertices = 20000
    leaves = np.setdiff1d(np.arange(vertices), 7)
    hub = np.full_like(leaves, 7)
    x = np.random.default_rng(1).standard_normal((vertices, 24), np.float32)
    graph = tmp_path / "star.plait"
    np.savez(tmp_path / "star.npz", edge_index=np.hstack([[leaves, hub], [hub, leaves]]), x=x,
             y=np.arange(vertices) % 3, train=leaves[:100], val=leaves[100:200],
             test=leaves[200:])
    Plait(tmp_path).ok("convert", tmp_path / "star.npz", graph)
    work = Work(tmp_path, graph, ["--model", *model])
    check_close(work.scores(*work.limit(4)), work.scores())


# --- results ---


@pytest.fixture(scope="module")
def small(communities, tmp_path_factory):
    return Work(tmp_path_factory.mktemp("small"), communities, ["--model", "sage"])


def test_classes_and_json(small, tmp_path):
    """Results are the same as without a limit."""
    for more in ([], ["--classes"]):
        one, other = tmp_path / "one.npy", tmp_path / "other.npy"
        wanted = small.plait.json(*small.arguments(one, *more))
        found = small.plait.json(*small.arguments(other, "--memory-limit", "2G", *more))
        assert found == {**wanted, "out": str(other)}
        check_close(np.load(other), np.load(one))
        assert np.load(other).dtype == np.load(one).dtype


def test_fewer_vertices_than_ranks(tmp_path):
    """One of the vertices has no edges."""
    ids = np.arange(3)
    np.savez(tmp_path / "g.npz", edge_index=np.stack([ids[:1], ids[1:2]]), y=ids % 2,
             x=np.eye(3, dtype=np.float32), train=ids[:2], val=ids[2:], test=ids[:0])
    work = Work(tmp_path, tmp_path / "g.npz", ["--model", "gat"])
    wanted = work.scores()
    for ranks in (1, 4):
        check_close(work.scores("--memory-limit", "2G", "--ranks", ranks), wanted)


# --- the limit ---


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The activations of a layer take 78 MiB."""
    folder = tmp_path_factory.mktemp("large")
    graph = folder / "g.plait"
    Plait(folder).ok("generate", "dcsbm", "--vertices", 40000, "--edges", 400000, "--seed", 3, "-o",
                     graph)
    return Work(folder, graph, ["--model", "sage", "--hidden", 512])


def peak(process):
    """Returns the peak MiB of memory that no file backs."""
    most = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            break
        found = re.search(r"RssAnon:\s+(\d+) kB", status)
        most = max(most, int(found[1]) / 1024 if found else 0)
        time.sleep(0.001)
    assert program.result_of(process).code == 0
    return most


@pytest.mark.parametrize("room", [12, 40])
def test_the_limit_is_held(large, room):
    out = large.plait.folder / "y.npy"
    limit = large.limit(room)
    assert peak(program.start(*large.arguments(out, *limit))) <= limit[1] / MIB
    assert peak(program.start(*large.arguments(out))) > limit[1] / MIB


def archive(path, vertices):
    """Makes a graph of one feature and hardly an edge."""
    np.savez(path, edge_index=np.zeros((2, 1), np.int64), x=np.ones((vertices, 1), np.float32),
             y=np.arange(vertices) % 2, train=np.arange(2), val=np.arange(2, 4), test=np.arange(4, 6))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    return Work(folder, archive(folder / "g.npz", 8), ["--model", "mlp", "--hidden", 65536])


def test_a_limit_below_one_row(wide, tmp_path):
    """The error comes before anything is made: nothing is left for rows, or too little for one row."""
    for limit in (MIB, wide.limit(0.25)[1]):
        Plait(tmp_path).fails(DOES_NOT_FIT, *wide.arguments(tmp_path / "y.npy"), "--memory-limit",
                              limit, names=["higher limit"])


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_does_not_fit_in_memory_names_the_limit(wide, tmp_path, ranks):
    """The rows would take 4 TB."""
    graph = archive(tmp_path / "more.npz", 8 << 20)
    Plait(tmp_path).fails(DOES_NOT_FIT, "infer", graph, "--checkpoint", wide.checkpoint, "--out",
                          tmp_path / "y.npy", "--ranks", ranks, names=["is free", "--memory-limit"])


# --- interruption ---


def reached(work, rank=0):
    """Returns the stage and rows that a rank has recorded, or None."""
    try:
        found = json.loads((work / f"rank-{rank}.json").read_text())
    except FileNotFoundError:
        return None
    return found["stage"], found["rows"]


def interrupted(work, out, number, *more, until=(0, 1), rank=None):
    """Starts a run, and ends it, or one of its ranks, by a signal when it has reached `until`."""
    process = program.start(*work.arguments(out, *more))
    program.wait_until(lambda: (reached(work_of(out)) or (0, 0)) >= until or
                       process.poll() is not None, program.HANGS,
                       "the first record")
    victim = process.pid if rank is None else program.ranks_of(process.pid)[rank]
    os.kill(victim, number)
    result = program.result_of(process)
    assert not out.exists() and reached(work_of(out)) >= until
    return result


@pytest.fixture(scope="module")
def slow(large):
    """A run in small blocks, with the scores that it gives without a break."""
    large.slow = large.limit(5)
    large.wanted = large.scores(*large.slow)
    return large


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_goes_on_where_it_was_interrupted(slow, tmp_path, number):
    out = tmp_path / "y.npy"
    result = interrupted(slow, out, number, *slow.slow)
    if number == signal.SIGKILL:
        assert result.code == -number
    else:
        assert result.code == INTERRUPTED
        program.check_one_line(result, ["interrupted in layer", "goes on", work_of(out)])
    before = reached(work_of(out))
    assert before[1] > 0 or before[0] > 0
    slow.plait.ok(*slow.arguments(out, *slow.limit(60)))  # with another limit, too
    np.testing.assert_allclose(np.load(out), slow.wanted, rtol=1e-5, atol=1e-5)
    assert list(tmp_path.iterdir()) == [out]


def test_what_was_done_is_not_done_again(slow, tmp_path):
    """Rows that are changed in the meantime show it."""
    out = tmp_path / "y.npy"
    interrupted(slow, out, signal.SIGKILL, *slow.slow, until=(1, 0))
    stage = reached(work_of(out))[0]
    rows = np.memmap(work_of(out) / f"rows-{stage - 1}.f32", np.float32, "r+")
    rows[:] = 0
    rows.flush()
    slow.plait.ok(*slow.arguments(out, *slow.slow))
    assert np.abs(np.load(out) - slow.wanted).max() > 0.01


@pytest.mark.parametrize("number,rank", [(signal.SIGINT, None), (signal.SIGKILL, 1)])
def test_ranks_go_on(slow, tmp_path, number, rank):
    out = tmp_path / "y.npy"
    limit = slow.limit(5, "--ranks", 2)
    result = interrupted(slow, out, number, *limit, rank=rank)
    assert result.code == (INTERRUPTED if rank is None else FAILED), result
    assert work_of(out).exists()
    slow.plait.ok(*slow.arguments(out, *limit))
    np.testing.assert_allclose(np.load(out), slow.wanted, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def broken_off(slow, tmp_path_factory):
    """The folder of a run that was killed. Tests work on a copy."""
    out = tmp_path_factory.mktemp("broken") / "y.npy"
    interrupted(slow, out, signal.SIGKILL, *slow.slow)
    return out


@pytest.fixture
def left(broken_off, tmp_path):
    shutil.copytree(work_of(broken_off), tmp_path / work_of(broken_off).name)
    return tmp_path / "y.npy"


def refused(work, out, names, *more):
    """Checks a refusal by one line that says what to do; existing files stay."""
    before = program.contents(out.parent)
    result = work.plait(*work.arguments(out, *(more or work.slow)))
    assert result.code == FAILED, result
    program.check_one_line(result, [*names, work_of(out)])
    assert program.contents(out.parent) == before


def test_another_run_is_refused(slow, left, tmp_path):
    refused(slow, left, ["ranks", "remove"], *slow.limit(5, "--ranks", 2))
    other = Work(tmp_path, slow.graph, ["--model", "sage", "--hidden", 512, "--seed", 4])
    other.slow = slow.slow
    refused(other, left, ["checkpoint", "remove"])
    shutil.copy(slow.graph, tmp_path / "g.plait")
    other.checkpoint, other.graph = slow.checkpoint, tmp_path / "g.plait"
    refused(other, left, ["graph", "changed", "remove"])


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 1}'])
def test_a_damaged_manifest(slow, left, content):
    (work_of(left) / "manifest.json").write_text(content)
    refused(slow, left, ["manifest.json", "remove"])


@pytest.mark.parametrize("content", ["", "{}", '{"stage": 99, "rows": 0}',
                                     '{"stage": 0, "rows": 40001}', '{"stage": -1, "rows": 0}'])
def test_a_damaged_record(slow, left, content):
    (work_of(left) / "rank-0.json").write_text(content)
    refused(slow, left, ["rank-0.json", "remove"])


def test_rows_that_were_cut(slow, left):
    """Rows of the stage under way are cut or, if there are none, rows of the one before."""
    stage, rows = reached(work_of(left))
    name = f"rows-{stage if rows > 0 else stage - 1}.f32"
    with open(work_of(left) / name, "r+b") as file:
        file.truncate(1000)
    result = slow.plait(*slow.arguments(left, *slow.slow))
    assert result.code == FAILED and not left.exists(), result
    program.check_one_line(result, [name, "remove", work_of(left)])


def test_two_runs_at_once(slow, tmp_path):
    out = tmp_path / "y.npy"
    first = program.start(*slow.arguments(out, *slow.slow))
    program.wait_until(lambda: (work_of(out) / "manifest.json").exists(), program.HANGS,
                       "the folder")
    first.send_signal(signal.SIGSTOP)
    second = slow.plait(*slow.arguments(out, *slow.slow))
    first.send_signal(signal.SIGCONT)
    assert second.code == FAILED
    program.check_one_line(second, ["another process", work_of(out)])
    assert program.result_of(first).code == 0


# --- refusals ---


def test_folders_that_are_no_work_folders(small, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary").write_text("stays")
    (tmp_path / "file").write_text("stays")
    for work, word, ranks in [("full", "something else", 2), ("file", "cannot be", 1),
                              ("no/folder", "cannot be made", 1),
                              ("/proc/self/w", "cannot be made", 1)]:
        Plait(tmp_path).fails(FAILED, *small.arguments(tmp_path / "y.npy"), "--memory-limit", "2G",
                              "--work", tmp_path / work, "--ranks", ranks,
                              names=[tmp_path / work, word])


def test_scores_that_cannot_be_written(small, tmp_path):
    """The error comes before the work."""
    out = tmp_path / "no" / "y.npy"
    Plait(tmp_path).fails(FAILED, *small.arguments(out, "--memory-limit", "2G", "--work",
                                                   tmp_path / "w"), names=[out, "no folder"])


def test_a_full_disk(slow, tmp_path):
    """A limit on the size of files stands for it. The same command goes on when there is room."""
    out = tmp_path / "y.npy"
    limit = 1 << 16
    result = slow.plait(*slow.arguments(out, *slow.slow), preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (limit, limit)))
    assert result.code == FAILED
    program.check_one_line(result, [work_of(out), "cannot be written"])
    assert not out.exists()
    slow.plait.ok(*slow.arguments(out, *slow.slow))
    np.testing.assert_allclose(np.load(out), slow.wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("more", [["--gpus", 1], ["--strategy", "get"], ["--partition", "hash"],
                                  ["--memory-limit", "0"], ["--memory-limit", "2 apples"]])
def test_usage(small, tmp_path, more):
    limit = [] if "--memory-limit" in more else ["--memory-limit", "2G"]
    Plait(tmp_path).fails(USAGE, *small.arguments(tmp_path / "y.npy", *limit, *more),
                          names=[more[0]])


def test_a_work_folder_without_a_limit(small, tmp_path):
    Plait(tmp_path).fails(USAGE, *small.arguments(tmp_path / "y.npy", "--work", tmp_path / "w"),
                          names=["--memory-limit"])

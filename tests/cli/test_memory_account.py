"""The account of a host's memory: what a command says that it needs, when it refuses for want of memory, is what its
ranks hold together at their peak; and what cannot fit is refused before anything is read or made."""

import re
import time

import numpy as np
import pytest

from memory_peak import MemoryPeak
from program import DOES_NOT_FIT, RIGHT, USAGE, Plait, check_one_line, environment, result_of, start

VERTICES, WIDTH, CLASSES = 150000, 128, 128  # blocks of two ranks are above 32 MiB
START = 2**24  # bytes, enough for a launcher to start two ranks
SCARCE = {"PLAIT_HOST_MEMORY": str(START)}
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Work:
    """A graph whose rows take much more than programs do, and one that takes nothing beside it."""

    def __init__(self, folder):
        self.folder, self.plait = folder, Plait(folder)
        self.graph = {name: folder / f"{name}.plait" for name in ("large", "small")}
        for name, path in self.graph.items():
            vertices = VERTICES if name == "large" else 1000
            self.plait.ok("generate", "dcsbm", "--vertices", vertices, "--edges", 4 * vertices, "--communities",
                          CLASSES, "--classes", CLASSES, "--width", WIDTH, "-o", path)
            np.save(path.with_suffix(".npy"), np.ones((vertices, WIDTH), np.float32))
        self.checkpoint = folder / "weights.safetensors"
        self.plait.ok("train", self.graph["small"], "--hidden", WIDTH, "--epochs", 1, "--checkpoint", self.checkpoint)

    def arguments(self, command, size):
        graph, out = self.graph[size], ("--out", self.folder / "out.npy")
        return {
            "train": ("train", graph, "--hidden", WIDTH, "--epochs", 1),
            "infer": ("infer", graph, "--checkpoint", self.checkpoint, *out),
            "aggregate": ("aggregate", graph, "--features", graph.with_suffix(".npy"), *out, "--partition", "hash"),
            "bench model": ("bench", "model", graph, "--width", WIDTH, "--hidden", WIDTH, "--strategies", "bulk,get",
                            "--repetitions", 1, "--partition", "hash"),
        }[command]

    def peak(self, command, size, ranks):
        process = start(*self.arguments(command, size), "--ranks", ranks)
        peak = MemoryPeak(process)
        result = result_of(process)
        assert (result.code, result.err) == (RIGHT, ""), result
        return peak.result()

    def planned(self, command, ranks):
        """Where even less than the whole does not fit, refusals tell only that."""
        planned, least = START, True
        while least:
            allowed = str(planned + 2**20)
            refusal = self.plait(*self.arguments(command, "large"), "--ranks", ranks,
                                 env=environment(PLAIT_HOST_MEMORY=allowed))
            assert refusal.code == DOES_NOT_FIT, refusal
            check_one_line(refusal, ["needs"])
            number, unit = re.search(r"needs ([0-9.]+) (.iB)", refusal.err).groups()
            planned, least = int(float(number) * UNITS[unit]), "even without" in refusal.err
        return planned


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return Work(tmp_path_factory.mktemp("account"))


@pytest.mark.parametrize("command", ["train", "infer", "aggregate", "bench model"])
def test_ranks_hold_together_what_was_planned(work, command):
    planned, programs, measured = work.planned(command, 2), work.peak(command, "small", 2), 0
    for _ in range(8):  # samples may miss the moment of a peak, and never see more than it
        if measured < 0.9 * planned:
            measured = max(measured, work.peak(command, "large", 2) - programs)
    assert measured == pytest.approx(planned, rel=0.1), (planned / 2**20, measured / 2**20)


PAPERS = ("--width", 128, "--classes", 172, "--layers", 3, "--hidden", 128)


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_cannot_fit_is_refused_before_the_graph_is_read(plait, tmp_path, ranks):
    """The file states its counts, and its arrays are wrong: a run that reads them fails otherwise."""
    path = tmp_path / "damaged.plait"
    plait.ok("generate", "ring", "--vertices", 2**20, "-o", path)
    content = bytearray(path.read_bytes())
    content[-4:] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    began = time.monotonic()
    plait.fails(DOES_NOT_FIT, "bench", "model", path, *PAPERS, "--training", "--ranks", ranks,
                names=["needs", "GiB", "16.0 MiB is free"], env=environment(**SCARCE))
    assert time.monotonic() - began < 30
    assert "checksum" in plait("bench", "model", path, *PAPERS).err


def test_training_that_does_not_fit_is_refused_before_inference(plait, communities):
    """Inference alone would fit."""
    run = ("bench", "model", communities, "--hidden", 512, "--layers", 8, "--strategies", "bulk")
    plait.ok(*run, "--repetitions", 1, env=environment(PLAIT_HOST_MEMORY="24M"))
    plait.fails(DOES_NOT_FIT, *run, "--training", env=environment(PLAIT_HOST_MEMORY="24M"), names=["needs"])


def test_a_limit_that_is_no_number_is_told(plait, communities):
    plait.fails(USAGE, "train", communities, env=environment(PLAIT_HOST_MEMORY="much"), names=["PLAIT_HOST_MEMORY", "8G"])

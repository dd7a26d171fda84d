"""plait plan --explain of strategy get on GPUs: the models of MGG and GNNAdvisor beside what runs."""

import pytest

from program import DOES_NOT_FIT, RIGHT


@pytest.fixture
def ring(plait, tmp_path):
    """Eight vertices: on two ranks, two of four rows read one local and one remote neighbour."""
    plait.ok("generate", "ring", "--vertices", 8, "-o", tmp_path / "ring.plait")
    return tmp_path / "ring.plait"


def lines(plait, *arguments):
    result = plait("plan", *arguments, "--gpus", 2, "--strategy", "get", "--explain")
    assert result.code in (RIGHT, DOES_NOT_FIT)
    return [line.removeprefix("plait: ").split(None, 1) for line in result.lines if line.startswith("plait:  ")]


def test_values_computed_by_hand(plait, ring):
    asked = (ring, "--partition", "edges", "--width", 64, "--get", "async")
    said = dict((" ".join(words[:1]), words[1]) for words in lines(plait, *asked))
    assert said["groups"] == "4 local and 2 remote groups, of the rank with the most"
    # Shared memory: 4 warps of 2 * 4 * 32 * 16 bytes. Warps: 4 groups, 2 per warp. 14 * 17 KiB > 228 KiB.
    assert said["here"] == ("16384 bytes of shared memory per block, 2 warps, 1 blocks, at least 8 of them at once "
                            "on a multiprocessor of compute capability 9.0")
    # 2 * 16 * 64 * 2 floats; 4 * 16 * 4 + 2 * 4 * 4 * 64 bytes.
    assert said["MGG's"] == ("model   WPW 4096 floats, SMEM 2304 bytes per block, 2 warps, 1 blocks; within its space "
                             "of search")
    assert said["GNNAdvisor"] == ("would take ngs 512, dw 32, 128 threads per block: WPT 1024 floats, SMEM 1024 bytes "
                                  "per block")
    said = dict((words[0], words[1]) for words in lines(plait, *asked, "--ps", 1, "--dist", 1, "--wpb", 1))
    assert said["groups"].startswith("6 local and 2 remote groups")
    assert said["MGG's"].startswith("model   WPW 128 floats, SMEM 516 bytes per block, 6 warps, 6 blocks; within")
    said = dict((words[0], words[1]) for words in lines(plait, *asked, "--ps", 64))
    assert said["MGG's"].endswith("outside of its space of search")
    said = dict((words[0], words[1]) for words in lines(plait, *asked, "--ps", "none"))
    assert said["MGG's"] == "model   has no settings without neighbour partitioning"
    said = dict((words[0], words[1]) for words in lines(plait, *asked[:-2]))  # blocking: rows go to registers
    assert said["here"] == ("0 bytes of shared memory per block, 2 warps, 1 blocks, at least 8 of them at once on a "
                            "multiprocessor of compute capability 9.0")


def test_other_strategies_say_nothing_of_get(plait, ring):
    result = plait("plan", ring, "--width", 64, "--gpus", 2, "--strategy", "bulk", "--explain")
    assert "MGG" not in result.err

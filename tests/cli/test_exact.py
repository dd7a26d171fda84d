"""--exact: the same bits of weights, losses and scores on any number of ranks, however the graph is
cut, by any strategy and number of threads."""

import numpy as np
import pytest

from exact_cases import CASES, EPOCHS, arguments_of, layout_of, make_archives, outcome
from program import USAGE

# Options, and threads per rank.
LAYOUTS = [(["--ranks", 3, "--partition", "hash", "--strategy", "get"], 1), (["--ranks", 2], 2),
           (["--ranks", 3, "--partition", "metis", "--strategy", "replicate"], 1)]
ALL_LAYOUTS = ("gcn", "hub")  # the others in the first


@pytest.fixture(scope="module")
def graphs(communities, tmp_path_factory):
    return {**make_archives(tmp_path_factory.mktemp("exact")), "communities": communities}


@pytest.mark.parametrize("name", CASES)
def test_same_bits(plait, tmp_path, graphs, name):
    arguments = arguments_of(name, graphs)
    checkpoint = tmp_path / "c.safetensors"
    wanted = outcome(plait, checkpoint, *arguments)
    assert len(wanted["loss"]) in (3, EPOCHS) and wanted["loss"][-1] < wanted["loss"][0]
    for layout, threads in LAYOUTS if name in ALL_LAYOUTS else LAYOUTS[:1]:
        found = outcome(plait, checkpoint, *arguments, *layout_of(name, layout), threads=threads)
        assert [key for key in wanted if found[key] != wanted[key]] == [], layout


def test_the_course_is_that_without_it(plait, graphs):
    """They agree to the promised 1e-4, for a model that keeps the promise."""
    arguments = [graphs["directed"], "--epochs", 30, "--model", "sage"]
    found = plait.json("train", *arguments, "--exact")
    wanted = plait.json("train", *arguments)
    np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=1e-4)
    assert wanted["exact"] is False


def test_goes_on_as_if_unbroken(plait, tmp_path, graphs):
    """It goes on from a checkpoint, on other ranks."""
    unbroken, first, second = (tmp_path / f"{name}.safetensors" for name in "abc")
    arguments = [graphs["directed"], "--model", "gin", "--layers", 2, "--hidden", 9]
    wanted = outcome(plait, unbroken, *arguments, "--epochs", 12)
    outcome(plait, first, *arguments, "--epochs", 5, "--ranks", 3)
    found = outcome(plait, second, *arguments, "--epochs", 12, "--resume", first, "--ranks", 2,
                    "--partition", "hash")
    assert found == wanted


def test_infer_and_aggregate(plait, tmp_path, graphs):
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", graphs["hub"], "--epochs", 2, "--checkpoint", checkpoint)
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.standard_normal((5000, 3), dtype=np.float32))
    results = []
    for layout in ([], *(layout for layout, _ in LAYOUTS)):
        plait.ok("infer", graphs["hub"], "--checkpoint", checkpoint, "--out", tmp_path / "s.npy",
                 "--exact", *layout)
        for back in ([], ["--transposed"]):
            plait.ok("aggregate", graphs["hub"], "--features", tmp_path / "x.npy", "--out",
                     tmp_path / f"y{len(back)}.npy", "--exact", *layout, *back)
        results.append([(tmp_path / f"{name}.npy").read_bytes() for name in ("s", "y0", "y1")])
    assert all(result == results[0] for result in results)


def test_what_does_not_go_with_it(plait, tmp_path, graphs):
    plait.fails(USAGE, "infer", graphs["hub"], "--checkpoint", tmp_path / "c", "--out",
                tmp_path / "s.npy", "--exact", "--memory-limit", "64M", names=["--exact"])
    for strategy in ("partial", "get", "paged"):
        plait.fails(USAGE, "train", graphs["hub"], "--gpus", 1, "--strategy", strategy, "--exact",
                    names=[f"strategy {strategy}", "--exact"])

"""The search for settings of strategy get on GPUs (plait tune --settings), and the runs after it that take them.
scripts/gpu-test runs it.
"""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS < 2, reason="one GPU moves no rows")


def test_runs_take_the_fastest_settings(tmp_path):
    plait = program.Plait(tmp_path)
    graph = tmp_path / "g.plait"
    plait.ok("generate", "dcsbm", "--vertices", 20000, "--edges", 400000, "--seed", 1, "-o", graph)
    env = program.environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    tune = ("tune", graph, "--gpus", 2, "--partitions", "edges", "--widths", "16,64", "--repetitions", 3, "--settings")
    found = plait.json(*tune, env=env)
    [search] = found["settings"]
    tried = [one["options"] for one in search["tried"]]
    assert search["partition"] == "edges" and tried[0] == "" and len(set(tried)) == len(tried)
    assert {"--ps 32", "--ps 8"} & set(tried)
    times = {one["options"]: one["median_ms"] for one in search["tried"] if one["left_out"] is None}
    assert all(len(by_width) == 2 and min(by_width) > 0 for by_width in times.values())
    for w in range(2):
        assert times[search["fastest"][w]][w] == min(by_width[w] for by_width in times.values())
    rows = {(row["options"], row["width"]) for row in found["rows"] if row["strategy"] == "get"}
    assert rows == {(options, width) for options in ("", *search["fastest"]) for width in (16, 64)}
    # A run takes the fastest settings if they are 3% faster than the default ones.
    lines = plait("plan", graph, "--gpus", 2, "--width", 64, "--strategy", "get", "--partition", "edges", "--explain",
                  env=env).lines
    assert "by the times that plait tune measured" in lines[0]
    fastest = search["fastest"][1]
    if 1.03 * times[fastest][1] < times[""][1]:
        assert all(word in lines[0] for word in fastest.replace("--", "").split())
    text = plait.ok(*tune, "--dry-run").out
    assert "settings of get on partition edges" in text and text.count("fastest at width ") == 2

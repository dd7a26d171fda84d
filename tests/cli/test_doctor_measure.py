"""plait doctor --measure: what it measures, prints and keeps."""

import json
import os

import pytest

from program import FAILED, RIGHT, USAGE, environment

ROWS = [32, 64, 128, 256, 512, 1024, 2048, 4096]


@pytest.mark.parametrize("ranks", [1, 2])
def test_measures_and_keeps(plait, communities, tmp_path, ranks):
    env = environment(PLAIT_MACHINES=str(tmp_path / "machines"))
    found = plait.json("doctor", "--measure", "--ranks", ranks, env=env)
    by_row = {}
    for one in found["rates"]:
        assert one["value"] > 0
        if one["row_bytes"]:
            by_row.setdefault(one["rate"], []).append(one["row_bytes"])
    single = {one["rate"]: one["unit"] for one in found["rates"] if one["row_bytes"] is None}
    peers = {"all peer rows", "peer rows"} if ranks > 1 else set()
    assert by_row == dict.fromkeys({"local rows", "cached rows"} | peers, ROWS)
    assert single["copy"] == "B/s" and single["threads"] == "" and ("barrier" in single) == (ranks > 1)
    assert found["ranks"] == ranks and found["constants"] == []  # of plans on GPUs
    kept = json.loads((tmp_path / "machines" / found["kept"].rsplit("/", 1)[1]).read_text())
    assert kept["device"] == found["device"] and kept["ranks"] == ranks
    assert [(one["rate"], one["row_bytes"], one["value"]) for one in kept["rates"]] == [
        (one["rate"], one["row_bytes"] or 0, one["value"]) for one in found["rates"]]
    text = plait.ok("doctor", "--measure", "--ranks", ranks, env=env).out
    assert all(f"{bytes}" in text for bytes in ROWS) and found["kept"] in text
    assert ("random rows of all peers" in text) == (ranks > 1) == ("barrier" in text)
    [path] = (tmp_path / "machines").iterdir()
    path.write_text("{")
    told = plait("tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, "--dry-run", env=env)
    wanted = [f"plait: warning: {path} is not used: it is damaged"] if ranks == 2 else []
    assert told.code == 0 and told.lines == wanted


def test_nothing_is_kept_if_the_folder_is_empty(plait):
    result = plait.ok("doctor", "--measure", env=environment(PLAIT_MACHINES=""))
    assert "not kept, as there is no folder" in result.out and result.err == ""


def test_warns_of_more_ranks_than_cores(plait):
    env, cores = environment(PLAIT_MACHINES=""), len(os.sched_getaffinity(0))
    measure = ("doctor", "--measure", "--ranks", cores + 1)
    told = plait(*measure, "--json", env=env)
    assert told.code == RIGHT and len(told.lines) == 1, told
    assert told.err.startswith(f"plait: warning: {cores + 1} ranks share {cores} processor"), told
    plait.ok(*measure, "--quiet", env=env)


def test_mistakes(plait, tmp_path):
    plait.fails(USAGE, "doctor", "--ranks", 2, names=["--measure"])
    plait.fails(USAGE, "doctor", "--gpus", 1, names=["--measure"])
    plait.fails(USAGE, "doctor", "--measure", "--ranks", 0, names=["--ranks"])
    plait.fails(USAGE, "doctor", "--measure", "--ranks", 2, "--gpus", 2, names=["--gpus"])
    if not plait.json("doctor")["gpus"]:
        plait.fails(USAGE, "doctor", "--measure", "--gpus", 1, names=["GPU"])
    (tmp_path / "file").write_text("")
    plait.fails(FAILED, "doctor", "--measure", "--ranks", 2, names=["cannot be made", "PLAIT_MACHINES names another"],
                env=environment(PLAIT_MACHINES=str(tmp_path / "file" / "machines")))

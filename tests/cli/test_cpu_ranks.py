"""bench/cpu_ranks.py: what it writes, and one line for what is wrong."""

import json
import subprocess
import sys

import pytest

from program import CHECKOUT, FAILED, PROGRAM, RIGHT, USAGE, environment


def cpu_ranks(folder, *words, program=PROGRAM, file="out.json"):
    return subprocess.run([sys.executable, CHECKOUT / "bench/cpu_ranks.py", program, folder / file, *map(str, words),
                           "--graphs", folder / "graphs"], capture_output=True, text=True, env=environment())


@pytest.mark.parametrize("words,names", [
    (["none"], "there is no graph 'none'"), (["--ranks", "x"], "'x'"), (["--ranks", "1,2"], "one rank moves no rows"),
    (["--runs", "0"], "above 0"), (["--runs", "two"], "above 0")])
def test_mistakes(tmp_path, words, names):
    done = cpu_ranks(tmp_path, *words)
    assert done.returncode == USAGE and names in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_files_that_are_not_there(tmp_path):
    for program, file, names in ((tmp_path / "none", "out.json", "none: No such file"),
                                 (PROGRAM, "no/out.json", "out.json: No such file")):
        done = cpu_ranks(tmp_path, "ring", program=program, file=file)
        assert done.returncode == USAGE and names in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_plait_that_fails(tmp_path):
    program = tmp_path / "plait"
    program.write_text("#!/bin/sh\necho 'plait: no' >&2; exit 1\n")
    program.chmod(0o755)
    done = cpu_ranks(tmp_path, "ring", program=program)
    assert (done.returncode, done.stderr) == (FAILED, "plait: no\ncpu_ranks: plait doctor failed\n")
    assert not (tmp_path / "out.json").exists()


PLAYED = """#!{python}
import json, sys
rows = [{{"width": 8, "strategy": "bulk", "median_ms": 2.0}}]
part = dict.fromkeys(("vertices", "edges", "remote_edges", "halo_rows"), 1)
print(json.dumps({{"rates": [{{"rate": "copy", "row_bytes": None, "value": 3}}], "averaged_edge_span": 4,
                  "schemes": [{{"ranks": [part, part]}}], "rows": rows}}))
"""


def test_lines(tmp_path):
    program = tmp_path / "plait"
    program.write_text(PLAYED.format(python=sys.executable))
    program.chmod(0o755)
    assert cpu_ranks(tmp_path, "--ranks", 2, "--runs", 2, "ring", program=program).returncode == RIGHT
    lines = [json.loads(line) for line in (tmp_path / "out.json").read_text().splitlines()]
    assert [line["bench"] for line in lines] == ["cpu-rates", "cpu-parts", "cpu-parts", "cpu-ranks"]
    assert lines[-1]["least_ms"] == 2 and lines[-1]["medians"] == [2, 2] and lines[-1]["case"]["graph"] == "ring"

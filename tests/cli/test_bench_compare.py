"""scripts/bench-compare: which entries became slower, and which are lost."""

import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/bench-compare"


def compare(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True,
                          text=True)


def aggregation(**times):
    rows = [{"strategy": s, "width": 16, "median_ms": ms} for s, ms in times.items()]
    return {"graph": "reddit", "gpus": 4, "wire": "fp32", "rows": rows}


def test_names_what_became_slower(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, bulk, train in ((old, 2.0, 10.0), (new, 2.2, 10.2)):
        folder.mkdir()
        (folder / "a.json").write_text(json.dumps(aggregation(pipelined=1.0, bulk=bulk)))
        (folder / "t.json").write_text("\n".join(json.dumps(
            {"case": case, "ranks": 4, "strategy": "auto", "epoch_ms": train})
            for case in ("gcn", "gat")))
    result = compare(old, new)
    assert result.returncode == 1 and result.stderr == ""
    *slower, summary = result.stdout.splitlines()
    assert len(slower) == 1 and "+10.0%" in slower[0] and "reddit, 4 GPUs, fp32, bulk" in slower[0]
    assert summary == "4 compared, 1 slower by more than 3%, 0 lost, 0 new"
    assert compare(old, new, "--slower", 11).returncode == 0
    assert compare(new, old).returncode == 0


def test_names_what_is_lost(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    report = {"benchmarks": [{"name": n, "run_name": n, "real_time": 1, "time_unit": "us"}
                             for n in ("spmm/16", "spmm/64")]}
    old.write_text(json.dumps(report))
    del report["benchmarks"][0]
    new.write_text(json.dumps(report))
    result = compare(old, new)
    assert result.returncode == 1 and "lost" in result.stdout.splitlines()[0]
    assert "spmm/16" in result.stdout.splitlines()[0]


@pytest.mark.parametrize("line", [
    '{"bench": "spmm", "case": {}, "median_ms": NaN}', '{"bench": "spmm", "case": {}, "median_ms": -5}',
    '{"bench": "spmm", "case": {}, "median_ms": null}', '{"bench": "spmm", "case": {}, "median_ms": 0}',
    '{"bench": "spmm", "case": {}, "median_ms": "3"}', '{"bench": "spmm", "case": [], "median_ms": 3}',
    '{"bench": "link", "case": {}, "median_gb_s": 0}', '{"bench": "spmm", "case": {"a"', "[]", "3"])
def test_refuses_what_is_no_measurement(tmp_path, line):
    sound, broken = tmp_path / "sound.json", tmp_path / "broken.json"
    sound.write_text('{"bench": "spmm", "case": {}, "median_ms": 3}')
    broken.write_text(line)
    for pair in ((sound, broken), (broken, sound), (broken, broken)):
        result = compare(*pair)
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result
        assert "broken.json" in result.stderr


def test_reads_lines_of_our_benchmarks(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for file, ms, rate in ((old, 1.0, 100), (new, 1.1, 90)):
        case = {"graph": "reddit", "width": 16}
        lines = [{"bench": "spmm", "case": case, "median_ms": ms},
                 {"bench": "link", "case": {"gpus": 4}, "median_gb_s": rate},
                 {"bench": "layers", "case": case, "failed": "out of memory"}]
        file.write_text("\n".join(map(json.dumps, lines)))
    result = compare(old, new)
    link, spmm, summary = result.stdout.splitlines()
    assert "+11.1%" in link and "link, gpus 4, per GB" in link
    assert "+10.0%" in spmm and "spmm, graph reddit, width 16" in spmm
    assert summary == "2 compared, 2 slower by more than 3%, 0 lost, 0 new"
    assert compare(new, old).returncode == 0


def test_refuses_other_files(tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1}')
    for path in (tmp_path / "x.json", tmp_path / "none.json"):
        result = compare(path, path)
        assert result.returncode == 1 and result.stderr.count("\n") == 1, result

"""scripts/gpu-scaling: its arithmetic, what it runs on GPUs (by a program that plays plait), and all of it on two CPU
ranks."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

from program import CHECKOUT, FAILED, PROGRAM, RIGHT, USAGE, environment

sys.path.insert(0, str(CHECKOUT / "bench"))
import scaling_sums as sums
import scaling_tables

H200 = {"device": "cuda", "machine": "NVIDIA H200 141GB", "part": "aggregate", "scale": 1.0}


def entry(graph, ranks, strategy, ms, *, width=128, chosen=None, partition="edges", **more):
    chosen = strategy == "pipelined" if chosen is None else chosen
    case = H200 | {"graph": graph, "ranks": ranks, "strategy": strategy, "partition": partition, "width": width,
                   "chosen": chosen}
    return {"bench": "scaling", "case": case, "median_ms": ms, "least_ms": 0.9 * ms, "most_ms": 1.1 * ms} | more


# --- arithmetic ---


def test_speedups_and_ratios():
    entries = [entry("reddit", 1, "pipelined", 6.0), entry("reddit", 1, "bulk", 5.0), entry("reddit", 1, "cusparse", 4.0),
               entry("reddit", 8, "partial", 1.0, chosen=True, partition="clusters"),
               entry("reddit", 8, "bulk", 2.0, partition="clusters"),
               entry("reddit", 8, "cusparse", 3.0, partition="clusters"), entry("reddit", 8, "bulk", 9.0),
               entry("reddit", 8, "pipelined", 1.5, width=64)]
    base, times = sums.bases(entries), sums.rivals(entries)
    best, narrow = entries[3], entries[-1]
    assert sums.speedup(best, base) == 5.0 and sums.speedup(narrow, base) is None
    assert (sums.over(best, "bulk", times), sums.over(best, "cusparse", times)) == (2.0, 3.0)
    assert sums.over(best, "get", times) is None and sums.over(narrow, "bulk", times) is None


def test_machines_are_not_mixed():
    entries = [entry("reddit", 1, "pipelined", 8.0), entry("reddit", 2, "pipelined", 2.0)]
    entries[0]["case"]["machine"] = "NVIDIA H100 80GB HBM3"
    assert sums.speedup(entries[1], sums.bases(entries)) is None
    assert [sums.processors(e["case"]) for e in entries] == ["1 H100", "2 H200"]
    assert sums.processors({"device": "cpu", "machine": "AMD", "ranks": 1}) == "1 rank"


@pytest.mark.parametrize("predicted,flagged,text", [(1.2, False, "+20%"), (1.21, True, "+21%!"), (0.75, True, "-25%!"),
                                                    (0.81, False, "-19%")])
def test_errors_above_a_fifth_are_flagged(predicted, flagged, text):
    one = entry("reddit", 2, "pipelined", 1.0, predicted_ms=predicted)
    assert sums.error(one) == pytest.approx(predicted - 1)
    assert sums.percent(round(sums.error(one), 9)) == text and ("!" in text) == flagged


def test_bounds():
    def bound(ms, link, own, latency=0.0):
        return sums.bound(entry("reddit", 2, "pipelined", ms, link_ms=link, sum_ms=own, latency_ms=latency))
    assert bound(1.0, 0.8, 0.5) == "link" and bound(1.0, 0.5, 0.8) == "memory"
    assert bound(0.1, 0.02, 0.01, 0.05) == "launches" and bound(0.1, 0.02, 0.01, 0.049) == "link"
    assert sums.bound(entry("reddit", 1, "pipelined", 1.0)) == ""
    assert sums.latency_ms({"launch": 5e-6, "signal": 17e-6}, 3) == pytest.approx(0.047)
    assert sums.latency_ms({"signal": 17e-6}, 3) == 0
    def training(ranks, share):
        return sums.bound_of_training({"case": {"ranks": ranks}, "comm_share": share})
    assert (training(1, 0.9), training(2, 0.5), training(2, 0.4)) == ("own work", "link", "own work")


def test_goals():
    entries = [entry(graph, 1, "pipelined", 11.0) for graph in sums.GOALS]
    entries += [entry("reddit", 8, "pipelined", 2.0), entry("proteins", 8, "pipelined", 2.1),
                entry("orkut", 8, "partial", 2.75, chosen=True, partition="clusters"),
                entry("products", 4, "pipelined", 1.0)]
    found = {graph: (wanted, round(reached, 2)) for graph, wanted, reached in sums.goals(entries)}
    assert found == {"reddit": (5.5, 5.5), "proteins": (5.5, 5.24), "orkut": (4.0, 4.0)}
    told = " ".join(sums.sentences(entries))
    assert "proteins at width 128 from 1 to 8 GPUs: 5.5 times, missed with 5.24" in told
    assert "orkut at width 128 from 1 to 8 GPUs: 4 times, reached with 4.00" in told
    for other in ({"scale": 0.5}, {"width": 64}):
        assert not list(sums.goals([e | {"case": e["case"] | other} for e in entries]))


def test_sentence_of_errors():
    entries = [entry("reddit", 2, "pipelined", 1.0, width=w, predicted_ms=p)
               for w, p in ((16, 1.1), (64, 0.5), (128, 1.05))]
    [told] = sums.sentences([*entries, entry("reddit", 2, "cusparse", 1.0, predicted_ms=None)])
    assert told == "Of 3 predictions, 2 are within 20%; the median error is 10%, the largest 50%."


def test_rows_of_entries_that_failed():
    lost = entry("orkut", 1, "pipelined", 1.0) | {"failed": "longer than 3 s"}
    del lost["median_ms"]
    [row] = sums.aggregate_rows([lost])
    assert row[:4] == ("orkut 128", "1 H200", "pipelined, edges", "longer than 3 s") and len(row) == 12


# --- on GPUs, by a program that plays plait ---


PLAYED = '''#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([*words, os.environ["PLAIT_MACHINES"]]) + "\\n")
def value(name):
    return words[words.index(name) + 1]
gpus = int(value("--gpus")) if "--gpus" in words else 0
widths = [int(w) for name in ("--widths", "--predict") if name in words for w in value(name).split(",")]
def ms(strategy, width):
    return width * {{"pipelined": 1, "partial": 0.8, "bulk": 2, "cusparse": 3}}[strategy] / gpus
if words[0] == "generate":
    pathlib.Path(value("-o")).write_text("")
    found = {{}}
elif words[:2] == ["doctor", "--measure"]:
    found = {{"device": "NVIDIA H100 80GB HBM3", "rates": [
        {{"rate": "signal", "row_bytes": None, "value": 2e-5}}, {{"rate": "launch", "row_bytes": None, "value": 5e-6}},
        {{"rate": "peer rows", "row_bytes": 32, "value": 1e11}}]}}
elif words[0] == "doctor":
    found = {{"gpus": [{{}}, {{}}]}}
elif words[0] == "partition":
    schemes = value("--partition").split(",")
    found = {{"schemes": [{{"scheme": s, "predicted": [
        {{"strategy": way, "width": w, "ms": ms(way, w) * (1.5 if way == "bulk" else 1.1)}}
        for way in ("pipelined", "partial", "bulk") for w in widths]}} for s in schemes],
        "chosen": [{{"width": w, "partition": "clusters" if "clusters" in schemes and w > 64 else "edges",
                     "strategy": "pipelined"}} for w in widths]}}
elif words[0] == "bench":
    if value("--strategies").count(",") and "proteins" in words[2] or value("--strategies") == "cusparse":
        sys.exit("plait: cusparse is missing")
    found = {{"rows": [{{"strategy": way, "width": w, "median_ms": ms(way, w), "least_ms": ms(way, w),
        "most_ms": ms(way, w), "passes": 2, "link_ms": 0.1, "sum_ms": 0.9, "link_bytes": 1, "error": 0}}
        for way in value("--strategies").split(",") for w in widths]}}
elif words[0] == "train":
    if value("--model") == "gat":
        import time; time.sleep(60)
    found = {{"epoch_ms": 100 / gpus, "comm_share": 0.6, "strategy": "pipelined", "partition": "edges", "loss": [2, 1]}}
print(json.dumps(found))
'''


GATHERED = """#!{python}
import json, os, sys
gpus = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
with open(sys.argv[1].removeprefix("--json="), "w") as out:
    for way in ("own", "all") if gpus > 1 else ("own",):
        case = {{"gpus": gpus, "bytes": 64, "from": way}}
        out.write(json.dumps({{"bench": "gather", "case": case, "median_gb_s": 100.0 / gpus}}) + "\\n")
"""


@pytest.fixture
def played(tmp_path):
    """Runs gpu-scaling on two GPUs that are played. Returns the run, the lines by file, and the commands."""
    log, program = tmp_path / "log", tmp_path / "bin/plait"
    program.parent.mkdir()
    program.write_text(PLAYED.format(python=sys.executable, log=str(log)))
    (program.parent / "gather_cuda_bench").write_text(GATHERED.format(python=sys.executable))
    for path in program.parent.iterdir():
        path.chmod(0o755)

    def run(*words):
        done = scaling(tmp_path, *words, program=program)
        files = {file.name: [json.loads(line) for line in file.read_text().splitlines()]
                 for file in (tmp_path / "out").glob("*.json")}
        return done, files, [json.loads(line) for line in log.read_text().splitlines()]
    return run


def scaling(folder, *words, program=PROGRAM):
    return subprocess.run([CHECKOUT / "scripts/gpu-scaling", *map(str, words), "--folder", folder / "out",
                           "--graphs-folder", folder / "graphs"], capture_output=True, text=True, timeout=300,
                          env=environment(PLAIT_PROGRAM=str(program)))


def test_commands_and_tables_on_gpus(played, tmp_path):
    done, files, commands = played("--parts", "aggregate,train,sampled,papers100M", "--graphs", "reddit,proteins",
                                   "--models", "gcn,gat", "--widths", "16,128", "--seconds", 3)
    assert done.returncode == FAILED, done
    assert set(files) == {f"scaling-{part}-1-2.json"
                          for part in ("predicted", "aggregate", "train", "sampled", "papers100M")}
    # Predictions stand in their file before anything is measured, by this machine's rates.
    names = [words[0] for words in commands]
    assert max(i for i, name in enumerate(names) if name == "partition") < names.index("bench") < names.index("train")
    assert {words[-1] for words in commands} == {str(tmp_path / "out/machines")}
    predicted = [line for line in files["scaling-predicted-1-2.json"] if line["bench"] == "scaling-predicted"]
    assert len(predicted) == 3 * (1 + 3) * 3 * 2  # graphs, partitions, strategies, widths
    # The way that is chosen, with its rivals on the same partition, and all ways on ranges of edges.
    lines = files["scaling-aggregate-1-2.json"]
    chosen = {(e["case"]["graph"], e["case"]["width"], e["case"]["ranks"]): e for e in lines if e["case"]["chosen"]}
    assert len(chosen) == 8 and all(e["latency_ms"] == pytest.approx(0.04) for e in chosen.values())
    assert {key: e["case"]["partition"] for key, e in chosen.items() if e["case"]["partition"] != "edges"} == {
        ("reddit", 128, 2): "clusters", ("proteins", 128, 2): "clusters"}
    lost = [e for e in lines if "failed" in e]
    assert {(e["case"]["graph"], e["case"]["strategy"]) for e in lost} == {("proteins", "cusparse")}
    assert {e["failed"] for e in lost} == {"cusparse is missing"} and len(lost) == 2 + 2 + 1
    assert {e["case"]["partition"] for e in files["scaling-papers100M-1-2.json"]} == {"edges", "clusters"}
    assert {e["case"]["scale"] for e in files["scaling-papers100M-1-2.json"]} == {0.1}
    training = {(e["case"]["model"], e["case"]["ranks"]): e for e in files["scaling-train-1-2.json"]}
    assert training["gat, 2 layers of 64", 2]["failed"] == "longer than 3 s"
    assert training["gcn, 3 layers of 256", 2]["median_ms"] == 50
    text = " ".join(done.stdout.split())
    assert ("reddit 128 2 H100 pipelined, clusters 64.000 (64.000 to 64.000) 0.900 71.11 2.00 3.00 70.400 +10% 2.00 "
            "memory") in text
    assert "proteins 16 1 H100 pipelined, edges 16.000 (16.000 to 16.000) 0.900 17.78 2.00 17.600 +10% 1.00" in text
    assert "products, gcn, 3 layers of 256 2 H100 pipelined, edges 50.00 60% 2.00 link" in text
    assert re.search(r"Of \d+ predictions, \d+ are within 20%; the median error is 10%, the largest 50%", text)


def test_options_of_commands_are_known(played, plait):
    """What is played takes any option; plait does not."""
    _, _, commands = played("--graphs", "reddit", "--widths", "16", "--parts", "aggregate,train,sampled,papers100M",
                            "--models", "gcn,sage,gin")
    helps = {}
    for *words, _ in commands:
        name = tuple(words[:2] if words[0] in ("bench", "generate") else words[:1])
        if name not in helps:
            helps[name] = set(re.findall(r"(?<![\w-])--?[\w-]+", plait.ok(*name, "--help").out))
        given = {word for word in words if str(word).startswith("-")}
        assert given <= helps[name], (name, given - helps[name])
    assert len(helps) == 5


def test_gathers_see_as_many_gpus_as_they_are_for(played):
    done, files, _ = played("--parts", "gather")
    lines = files["scaling-gather-1-2.json"]
    assert [(e["case"]["ranks"], e["case"]["from"], e["median_gb_s"]) for e in lines] == [
        (1, "own", 100), (2, "own", 50), (2, "all", 50)]
    assert done.returncode == RIGHT and "64 2 H100 50 50" in " ".join(done.stdout.split())


def test_a_run_out_of_time(played):
    done, files, _ = played("--parts", "aggregate", "--graphs", "reddit", "--widths", 16, "--seconds-most", 1e-6)
    assert done.returncode == FAILED and "left out, the time is over" in done.stderr
    assert all(lines == [] for lines in files.values())


def test_predictions_alone(played):
    done, files, commands = played("--parts", "aggregate", "--graphs", "reddit", "--widths", 16, "--predict-only")
    assert done.returncode == RIGHT and set(files) == {"scaling-predicted-1-2-4-8.json"}
    assert not [words for words in commands if words[0] == "bench"]
    [lines] = files.values()
    places = {(e["bench"], e["case"]["ranks"]): e["case"]["machine"] for e in lines}
    assert {ranks for bench, ranks in places if bench == "scaling-rates"} == {1, 2}
    assert "H100" in places["scaling-predicted", 2] and places["scaling-predicted", 8] == "H200, as built in"


def test_predictions_for_gpus_that_are_not_there(plait, tmp_path):
    """By the program itself, with the constants of the H200; eight GPUs are not measured."""
    folder, graphs = ["--folder", tmp_path / "out"], ["--graphs-folder", tmp_path / "graphs"]
    done = subprocess.run([CHECKOUT / "scripts/gpu-scaling", "--predict-only", "--gpus", "8", "--parts", "aggregate",
                           "--graphs", "reddit", "--scale", "0.001", "--widths", "16", *folder, *graphs],
                          capture_output=True, text=True, env=environment(PLAIT_PROGRAM=PROGRAM))
    assert done.returncode == RIGHT, done
    lines = [json.loads(line) for line in (tmp_path / "out/scaling-predicted-8.json").read_text().splitlines()]
    found = {(e["case"]["partition"], e["case"]["strategy"]): e["ms"] for e in lines if e["bench"] == "scaling-predicted"}
    [file] = (tmp_path / "graphs").iterdir()
    wanted = plait.json("partition", file, "--gpus", 8, "--partition", "edges", "--predict", 16)["schemes"][0]
    assert len(found) == 3 * 5
    for one in wanted["predicted"]:
        assert found["edges", one["strategy"]] == pytest.approx(one["ms"], rel=1e-5)
    [chosen] = [e for e in lines if e["bench"] == "scaling-chosen"]
    assert (chosen["partition"], chosen["strategy"]) in found


# --- the tables of docs/performance.md ---


def test_tables_of_a_run(played, tmp_path):
    """The lines of a run become rows of the page's tables."""
    played("--parts", "aggregate,train", "--graphs", "reddit", "--models", "gcn", "--widths", "16,128")
    page, measured = tmp_path / "page.md", tmp_path / "measured"
    page.write_text("".join(f"<!-- table {name} -->\n<!-- end -->\n" for name in scaling_tables.TABLES))
    (tmp_path / "out").rename(measured)
    (measured / "machines").exists() and (measured / "machines").rmdir()
    done = subprocess.run([sys.executable, CHECKOUT / "scripts/bench-tables", "--page", page, "--measured", measured],
                          capture_output=True, text=True)
    assert {line for line in done.stderr.splitlines() if "scaling" in line} == set(), done
    text = page.read_text()
    assert "| reddit 128 | 2 H100 | pipelined, clusters | 64.000 (64.000 to 64.000) | 0.900 | 71.11 | 2.00 |" in text
    assert "| products, gcn, 3 layers of 256 | 2 H100 | pipelined, edges | 50.00 | 60% | 2.00 | link |" in text
    assert text.count("There are no figures yet.") == 2 and "within 20%" in text


def test_tables_of_rows_by_id():
    case = {"device": "cuda", "machine": "NVIDIA H200", "ranks": 8}
    rates = [{"case": case | {"part": "gather", "bytes": size, "from": way}, "median_gb_s": size / 2 + (way == "hot")}
             for size in (1024, 64) for way in ("all", "hot")]
    times = [{"case": case | {"part": "embeddings", "step": "both", "by": by, "samples": 8192}, "median_ms": ms}
             for by, ms in (("plait", 2.0), ("torch", 5.0))]

    class Measured:
        def of(self, bench, **_):
            return rates if bench == "scaling-gather" else times

    def table(name):
        return list(scaling_tables.TABLES[name][1](Measured()))
    assert table("scaling-gather") == [("64", "8 H200", "", "32", "", "", "33"),
                                       ("1024", "8 H200", "", "512", "", "", "513")]
    assert table("scaling-embeddings") == [("forward and backward", "8 H200", "2.00", "5.00", "2.50", "32.77")]


# --- on the CPU ---


def test_a_dry_run_on_cpu_ranks(tmp_path):
    begun = time.monotonic()
    done = scaling(tmp_path, "--ranks", "1,2", "--scale", 0.001, "--papers-scale", 1e-5, "--graphs", "reddit", "--widths",
                   "8,16", "--models", "sage", "--hidden", 8, "--epochs", 2, "--fanout", "3,3,3", "--batch", 64,
                   "--repetitions", 2, "--parts", "aggregate,train,sampled,papers100M")
    assert (done.returncode, time.monotonic() - begun < 120) == (RIGHT, True), done
    lines = {file.name: [json.loads(line) for line in file.read_text().splitlines()]
             for file in (tmp_path / "out").glob("*.json")}
    found = {(e["case"]["ranks"], e["case"]["width"], e["case"]["strategy"]): e
             for e in lines["scaling-aggregate-1-2.json"]}
    assert set(found) == {(1, w, "bulk") for w in (8, 16)} | {
        (2, w, way) for w in (8, 16) for way in ("bulk", "get", "replicate")}
    predicted = {(e["case"]["ranks"], e["case"]["width"], e["case"]["strategy"]): e["ms"]
                 for e in lines["scaling-predicted-1-2.json"]
                 if e["bench"] == "scaling-predicted" and e["case"]["graph"] == "reddit" and e["case"]["partition"] == "edges"}
    for key, one in found.items():
        assert one["median_ms"] > 0 and one["case"]["chosen"] == (key[2] == "bulk")
        if key[0] == 2:
            assert one["predicted_ms"] == predicted[key]
    assert {e["case"]["part"] for e in lines["scaling-papers100M-1-2.json"]} == {"papers100M"}
    for part in ("train", "sampled"):
        one, two = lines[f"scaling-{part}-1-2.json"]
        assert min(one["median_ms"], two["median_ms"]) > 0
        assert part == "sampled" or one["last_loss"] == pytest.approx(two["last_loss"], rel=1e-3)
    assert "reddit x 0.001 8" in done.stdout and "products x 0.001, sage, 3 layers of 8 on samples" in done.stdout
    assert list((tmp_path / "out/machines").iterdir())  # rates are those of this run


@pytest.mark.parametrize("options,names", [
    (["--ranks", "0"], "no list of numbers above 0"), (["--ranks", "1,x"], "'1,x'"), (["--scale", "2"], "above 1"),
    (["--parts", "aggregate,all"], "'all' is none of"), (["--seconds", "0"], "above 0"), (["--epochs", "1.5"], "whole"),
    (["--ranks", "2", "--parts", "gather"], "gather needs GPUs"),
    (["--gpus", "1", "--ranks", "1"], "not allowed with"), (["--gpus", "64"], "this host has"),
])
def test_mistakes(tmp_path, options, names):
    done = scaling(tmp_path, *options)
    assert done.returncode == USAGE and names in done.stderr and "Traceback" not in done.stderr, done
    assert not (tmp_path / "out").exists()


def test_help():
    done = subprocess.run([CHECKOUT / "scripts/gpu-scaling", "--help"], capture_output=True, text=True)
    assert done.returncode == RIGHT and all(f"--{name}" in done.stdout for name in ("gpus", "ranks", "parts", "scale"))


# --- the programs that the scripts for GPUs find ---


def found_by(folder):
    """What scripts/gpu-environment.sh finds in a checkout."""
    script = '. scripts/gpu-environment.sh; printf "%s\\n" "$bundled" "$bin" "$plait" "$packages" "$python" "$LD_LIBRARY_PATH"'
    env = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "BUNDLE")}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", 'export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}; ' + script],
                          cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:6]


def test_where_programs_are_found(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/gpu-environment.sh").symlink_to(CHECKOUT / "scripts/gpu-environment.sh")
    assert found_by(tmp_path) == ["", f"{tmp_path}/build/bin", f"{tmp_path}/build/bin/plait", f"{tmp_path}/build/python",
                                  ".venv/bin/python", ""]
    bundle = tmp_path / "build/gpu-bundle"
    bundle.mkdir(parents=True)
    bundled, *found, python, libraries = found_by(tmp_path)
    assert (bundled, python) == ("yes", "python3")
    assert found == [str(bundle), f"{bundle}/plait", f"{bundle}/python"]
    assert libraries.startswith(f"{bundle}:") and libraries.endswith("/usr/local/cuda/lib64:")


@pytest.mark.parametrize("script", sorted(p.name for p in (CHECKOUT / "scripts").glob("gpu-*")))
def test_scripts_for_gpus_are_right_bash(script):
    path = pathlib.Path(CHECKOUT / "scripts" / script)
    assert subprocess.run(["bash", "-n", path]).returncode == 0
    alone = script in ("gpu-bundle", "gpu-environment.sh")
    assert alone or ". scripts/gpu-environment.sh\n" in path.read_text()
    assert alone or "submodule_search_locations" not in path.read_text()

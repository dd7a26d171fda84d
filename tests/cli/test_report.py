"""plait report: one page, whose plots show the figures of the runs' JSON; seen by a browser."""

import html
import itertools
import json
import math
import re

import pytest

import browser
from program import FAILED, USAGE

needs_browser = pytest.mark.skipif(browser.PROGRAM is None, reason="no headless Chromium")
PHASES = ("setup", "computing", "summing", "fetching", "waiting", "gradients", "evaluating")


def made_up(ranks=2, epochs=50, **fields):
    """Returns a run as plait train --json prints it."""
    run = {"schema": 1, "graph": "communities", "model": "gcn", "ranks": ranks, "device": "cpu",
           "seed": 3, "strategy": "bulk", "partition": "edges", "epochs": epochs,
           "interrupted": False, "best_epoch": epochs - 1, "train_accuracy": 0.99,
           "val_accuracy": 0.87, "test_accuracy": 0.8612, "epoch_ms": 12.34, "comm_share": 0.25,
           "bytes_per_rank": 123456,
           "loss": [2 * 0.97**e + 0.2 for e in range(epochs)],
           "val_loss_by_epoch": [2 * 0.98**e + 0.4 for e in range(epochs)],
           "val_accuracy_by_epoch": [0.9 - 0.7 * 0.96**e for e in range(epochs)],
           "phases": {phase: [0.1 * (p + 1) + 0.01 * rank for rank in range(ranks)]
                      for p, phase in enumerate(PHASES)},
           "bytes_between_ranks": [[0 if a == b else 1000000 * (a + 1) + 1000 * b
                                    for b in range(ranks)] for a in range(ranks)],
           "memory": {"host": [300e6 + 1e6 * rank for rank in range(ranks)]}}
    return run | fields


def report(plait, *runs, names=None):
    """Makes the page of these runs."""
    paths = []
    for number, run in enumerate(runs):
        paths.append(plait.folder / (names[number] if names else f"run{number}.json"))
        paths[-1].write_text(json.dumps(run))
    out = plait.folder / "report.html"
    plait.ok("report", *paths, "-o", out)
    return out


def overlaps(a, b):
    """Returns whether boxes overlap by more than half a pixel each way."""
    return min(a[2], b[2]) - max(a[0], b[0]) > 0.5 and min(a[3], b[3]) - max(a[1], b[1]) > 0.5


def check_readable(seen):
    """Checks that nothing is outside its figure, texts do not overlap and are large enough, and each
    figure has a plot."""
    assert seen["resources"] == [] and seen["page_width"] <= seen["width"]
    for figure in seen["figures"]:
        left, top, right, bottom = figure["box"]
        assert 0 <= left and right <= seen["width"]
        for text in figure["texts"]:
            box = text["box"]
            assert left <= box[0] and box[2] <= right and top <= box[1] and box[3] <= bottom, text
            assert text["size"] >= 6.5, text
        for one, other in itertools.combinations(figure["texts"], 2):
            assert not overlaps(one["box"], other["box"]), (figure["caption"], one, other)
        for mark in figure["curves"] + figure["bars"]:
            box = mark["box"]
            assert left <= box[0] and box[2] <= right and top <= box[1] and box[3] <= bottom, mark
    for one, other in itertools.combinations(seen["figures"], 2):
        assert not overlaps(one["box"], other["box"])


def test_page_is_whole(plait):
    """It has no script and nothing from elsewhere, and is well-formed where it matters."""
    page = report(plait, made_up()).read_text()
    assert not re.search(r"<script|<link(?! rel=\"icon\" href=\"data:,\")|src=|url\(|@import|https?:",
                         page)
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert page.count("<svg") == page.count("</svg>") and page.count("<figure") == 5
    assert "prefers-color-scheme: dark" in page


@needs_browser
@pytest.mark.parametrize("width,dark", [(1280, False), (390, True)])
def test_of_a_real_run(plait, communities, width, dark):
    result = plait.json("train", communities, "--epochs", 30, "--ranks", 3)
    seen = browser.look_at(report(plait, result), width, dark)
    check_readable(seen)
    assert seen["headings"] == ["Learning", "Time", "Between ranks", "Memory"]
    assert (seen["background"] == "rgb(18, 22, 28)") == dark
    cells = {row[0]: row[1] for row in seen["cells"]}
    assert cells["Model"] == "gcn" and cells["Ranks"] == "3 (cpu)" and cells["Epochs"] == "30"
    assert cells["Test"] == f"{100 * result['test_accuracy']:.2f}%"
    loss, metric, phases, between, memory = seen["figures"]
    assert [c["points"] for c in loss["curves"]] == [30, 30] and loss["legend"] == [
        "training", "validation"]
    assert len(metric["curves"]) == 1 and len(metric["dots"]) == 1
    # Loss falls, accuracy rises: drawn over most of the plot's height and width.
    for curve in (loss["curves"][0], metric["curves"][0]):
        across, high = (curve["box"][2] - curve["box"][0]), (curve["box"][3] - curve["box"][1])
        plot = loss["plot"]
        assert across > 0.7 * (plot[2] - plot[0]) and high > 0.3 * (plot[3] - plot[1])
    # A rank's bar is as long as its phases' seconds, of all bars alike.
    lengths = [[b["box"][2] - b["box"][0] for b in phases["bars"]
                if b["name"].startswith(f"rank {rank},")] for rank in range(3)]
    seconds = [sum(values[rank] for values in result["phases"].values()) for rank in range(3)]
    for rank in range(3):
        assert sum(lengths[rank]) / sum(lengths[0]) == pytest.approx(seconds[rank] / seconds[0],
                                                                     rel=0.02)
    assert set(phases["legend"]) <= set(PHASES) and {"computing", "summing"} <= set(
        phases["legend"])
    assert len(between["bars"]) == 9 + 10 and len(memory["bars"]) == 3


EXTREMES = {
    "one epoch on one rank": [made_up(ranks=1, epochs=1)],
    "two epochs": [made_up(epochs=2)],
    "64 ranks": [made_up(ranks=64)],
    "8 ranks, huge numbers": [made_up(ranks=8, epochs=20, loss=[1e12 * 0.5**e for e in range(20)],
                                      val_loss_by_epoch=[1e12] * 20,
                                      bytes_between_ranks=[[1000 * 2**30] * 8] * 8,
                                      memory={"host": [1023.9 * 2**30] * 8, "gpu": [79e9] * 8},
                                      phases={"computing": [123456.0] * 8})],
    "tiny numbers": [made_up(loss=[1e-7 * (e % 3) for e in range(50)],
                             val_loss_by_epoch=[3e-9] * 50,
                             phases={"computing": [1e-6, 2e-6], "waiting": [0, 0]})],
    "constant": [made_up(loss=[0.5] * 50, val_loss_by_epoch=[0.5] * 50,
                         val_accuracy_by_epoch=[0] * 50)],
    "one million epochs": [made_up(epochs=1000000)],
    "negative losses": [made_up(loss=[-5 - e for e in range(50)])],
    "wide losses": [made_up(loss=[10**(3 - e / 5) for e in range(50)])],
    "more ranks than are shown": [made_up(ranks=130, epochs=3)],
    "eight runs": [made_up(ranks=2, seed=s, epochs=30 + 10 * s) for s in range(8)],
}


@needs_browser
@pytest.mark.parametrize("case", EXTREMES)
def test_readable(plait, case):
    runs = EXTREMES[case]
    names = [f"a run with a name that is long, number {r}.json" for r in range(8)]
    page = report(plait, *runs, names=names)
    for width in (1280, 390):
        seen = browser.look_at(page, width)
        check_readable(seen)
        assert all(f["curves"] or f["bars"] for f in seen["figures"])
        if case == "one million epochs":
            assert all(0 < c["points"] < 1000 for f in seen["figures"] for c in f["curves"])
        if case == "one epoch on one rank":
            assert "Between ranks" not in seen["headings"]
            assert len(seen["figures"][0]["dots"]) == 2
        if case == "eight runs":
            assert len({c["colour"] for c in seen["figures"][1]["curves"]}) == 8
            assert len(seen["figures"][1]["legend"]) == 8
            assert len(seen["figures"]) == 2 + 3 * 8
        if case == "more ranks than are shown":
            assert sum("128 of 130" in f["caption"] for f in seen["figures"]) == 3


@needs_browser
def test_losses_that_are_not_finite(plait):
    """They leave a gap in the curve, and an empty plot says so."""
    loss = made_up()["loss"]
    loss[10] = loss[11] = loss[13] = None
    run = made_up(loss=loss, val_loss_by_epoch=[None] * 50)
    figure = browser.look_at(report(plait, run))["figures"][0]
    assert [c["points"] for c in figure["curves"]] == [47, 0]
    assert [d.split(",")[1] for d in figure["dots"]] == [" epoch 12: 1.588"]
    check_readable(browser.look_at(report(plait, run)))
    page = report(plait, made_up(loss=[None] * 50, val_loss_by_epoch=[None] * 50)).read_text()
    assert "No value is finite." in page


@needs_browser
def test_long_curves_keep_their_peaks(plait):
    loss = [1.0] * 20000
    loss[7777] = 1.9
    boxes = [browser.look_at(report(plait, made_up(epochs=20000, loss=values,
                                                   val_loss_by_epoch=[1.5, 2] * 10000)))
             ["figures"][0]["curves"][0]["box"] for values in (loss, [1.0] * 20000)]
    height = [box[3] - box[1] for box in boxes]
    assert height[0] > 50 > height[1]


@needs_browser
def test_runs_beside_each_other(plait):
    runs = [made_up(), made_up(ranks=4, model="gat", epochs=20, metric="roc-auc")]
    seen = browser.look_at(report(plait, *runs, names=["gcn.json", "gat.json"]))
    check_readable(seen)
    assert [row[1:] for row in seen["cells"] if row[0].split()[0] in ("Model", "Epochs", "Metric")] == [
        ["gcn", "gat"], ["50", "20"], ["accuracy", "roc-auc"]]
    loss = seen["figures"][0]
    assert loss["legend"] == ["gcn, training", "gcn, validation", "gat, training",
                              "gat, validation"]
    colours = [curve["colour"] for curve in loss["curves"]]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    widths = [curve["box"][2] - curve["box"][0] for curve in loss["curves"]]
    assert widths[2] / widths[0] == pytest.approx(19 / 49, rel=0.05)


def test_equal_names_are_told_apart(plait):
    for folder in ("a", "b"):
        (plait.folder / folder).mkdir()
    page = report(plait, made_up(), made_up(), names=["a/run.json", "b/run.json"]).read_text()
    assert f"{plait.folder}/a/run.json, training" in html.unescape(page)


def test_names_are_not_markup(plait):
    name = "<b>&'\"x.json"
    page = report(plait, made_up(model="<script>alert(1)</script>"), names=[name]).read_text()
    assert "<script" not in page and "<b>" not in page
    assert "&lt;b&gt;&amp;'&quot;x" in page and "&lt;script&gt;" in page


def test_runs_that_tell_less(plait):
    """They lack later fields."""
    less = made_up()
    for field in ("graph", "val_loss_by_epoch", "phases", "bytes_between_ranks", "memory"):
        del less[field]
    page = report(plait, less).read_text()
    assert page.count("<figure") == 2 and "<h2>Time" not in page
    page = report(plait, made_up(bytes_between_ranks=None)).read_text()
    assert "<h2>Between ranks" not in page and "<h2>Memory" in page


WRONG = {
    "no file": (None, ["no such file"]),
    "empty": ("", ["byte 1", "not JSON"]),
    "no JSON": ("loss 3", ["byte 1", "not JSON"]),
    "cut": (json.dumps(made_up())[:100], ["not JSON"]),
    "a list": ("[]", ["not one JSON object"]),
    "of another command": ('{"schema": 1, "out": "g.plait"}', ["'model'", "missing"]),
    "no schema": ("{}", ["'schema'", "missing"]),
    "other schema": (json.dumps(made_up(schema=2)), ["'schema'", "is 2", "reads 1"]),
    "text for a number": (json.dumps(made_up() | {"ranks": "two"}), ["'ranks'", "two"]),
    "negative": (json.dumps(made_up(epochs=-1)), ["'epochs'", "-1"]),
    "no epochs": (json.dumps(made_up(epochs=1) | {"epochs": 0}), ["'epochs'", "is 0"]),
    "no ranks": (json.dumps(made_up(ranks=0)), ["'ranks'", "is 0"]),
    "best epoch": (json.dumps(made_up(best_epoch=50)), ["'best_epoch'", "50", "0..49"]),
    "short loss": (json.dumps(made_up(loss=[1])), ["'loss'", "50 numbers"]),
    "text in loss": (json.dumps(made_up(epochs=2, loss=[1, "a"])), ["'loss'", "string"]),
    "phases": (json.dumps(made_up(phases=[1])), ["'phases'", "object"]),
    "phases of fewer ranks": (json.dumps(made_up(phases={"waiting": [1]})), ["'phases.waiting'"]),
    "matrix": (json.dumps(made_up(bytes_between_ranks=[[1, 2]])), ["'bytes_between_ranks'"]),
    "ragged": (json.dumps(made_up(bytes_between_ranks=[[1, 2], [3]])), ["'bytes_between_ranks'"]),
    "memory": (json.dumps(made_up(memory={"host": [1]})), ["'memory.host'", "2 numbers"]),
    "endless": (json.dumps(made_up(ranks=1) | {"ranks": 2**40}), ["'ranks'", str(2**40)]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_run(plait, case):
    text, names = WRONG[case]
    path = plait.folder / "run.json"
    if text is not None:
        path.write_text(text)
    plait.fails(FAILED, "report", path, "-o", plait.folder / "report.html", names=[path, *names])


def test_wrong_usage(plait):
    path = plait.folder / "run.json"
    path.write_text(json.dumps(made_up()))
    out = plait.folder / "report.html"
    plait.fails(USAGE, "report", path, names=["--out"])
    plait.fails(USAGE, "report", "-o", out, names=["runs"])
    plait.fails(USAGE, "report", *[path] * 9, "-o", out, names=["9 runs", "8"])
    plait.fails(FAILED, "report", path, "-o", plait.folder / "no/report.html", names=["no folder"])


@pytest.mark.parametrize("model,strategy", [("gcn", "bulk"), ("gcn", "replicate"), ("gcn", "get"), ("mlp", None)])
def test_costs_in_json(plait, communities, model, strategy):
    """The page is true: bytes of rows by pair follow from the partition."""
    ranks, moved = 3, 16 + 8  # hidden features, and 7 classes in rows of 8: a multiple of 16 bytes
    result = plait.json("train", communities, "--epochs", 5, "--ranks", ranks, "--model", model,
                        *(("--strategy", strategy) if strategy else ()), "--partition", "vertices")
    assert set(result["phases"]) == set(PHASES)
    for seconds in result["phases"].values():
        assert len(seconds) == ranks and all(s >= 0 for s in seconds)
    steps = sum(result["phases"][p][0] for p in PHASES if p not in ("setup", "evaluating"))
    assert 2.99 * result["epoch_ms"] / 1e3 <= steps < 30  # three of five take the median or more
    assert all(2**24 < memory < 2**36 for memory in result["memory"]["host"])
    between = result["bytes_between_ranks"]
    assert [row[rank] for rank, row in enumerate(between)] == [0] * ranks
    parts = plait.json("partition", communities, "--ranks", ranks, "--partition",
                       "vertices")["schemes"][0]["ranks"]
    vertices = sum(p["vertices"] for p in parts)
    rows = {"bulk": lambda part: part["halo_rows"], "get": lambda part: part["remote_edges"],
            "replicate": lambda part: vertices - part["vertices"], None: lambda part: 0}[strategy]
    for rank, row in enumerate(between):
        assert sum(row) == rows(parts[rank]) * 2 * moved * 4  # two layers, each forward and backward
    if strategy == "replicate":
        share = [p["vertices"] * 2 * moved * 4 for p in parts]
        assert between == [[0 if a == b else share[b] for b in range(ranks)]
                           for a in range(ranks)]


def test_costs_on_one_rank(plait, communities):
    result = plait.json("train", communities, "--epochs", 2)
    assert result["bytes_between_ranks"] == [[0]] and len(result["memory"]["host"]) == 1
    assert not math.isnan(result["phases"]["computing"][0])

"""plait study: the studies that run on CPU ranks, their numbers, plots, and what is refused."""

import pathlib
import xml.etree.ElementTree

import pytest

from program import DOES_NOT_FIT, USAGE, environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_GPU = environment(CUDA_VISIBLE_DEVICES="")
ONCE = ("--repetitions", 1)
TINY = ("--like", "cora", "--scale", 0.2, "--width", 9)
# By study: the names of its rows on CPU ranks.
ROWS = {
    "nccl": ["bulk", "replicate", "get"],
    "preprocessing": ["epoch", "communities", "partition by edges", "partition by clusters",
                      "partition by metis", "shards"],
    "split": ["step", "waiting", "fetching", "summing"],
    "renumbering": ["none", "degree", "rcm", "communities", "communities: cost"],
    "hidden-width": [f"width {w}" for w in (16, 32, 64, 128, 256, 512)],
    "sampling": ["whole graph", *(f"fan-outs {k}, {k}" for k in (2, 5, 10, 20)), "batches, all edges"],
    "epochs": [f"{model}{part}" for model in ("gcn", "sage", "gat")
               for part in ("", ", in turn", ": sampling", ": gathering", ": computing")],
    "gathers": ["messages", "reads"],
    "row-bytes": [f"{2**k} bytes" for k in range(2, 13)],
    "latency": [f"{whose}, {size}" for size in ("64.0 MiB", "256.0 MiB") for whose in ("own", "all ranks'")],
    "memory": ["graph", "features", "training"],
}
ONE_RANK = {"preprocessing", "renumbering", "hidden-width", "sampling", "epochs", "memory"}
OWN_WIDTHS = {"hidden-width", "row-bytes", "latency"}
NO_GRAPH = {"row-bytes", "latency"}
SCRIPTS = {"accuracy", "layers", "busy", "scaling", "embeddings"}
GPU_STUDIES = {"neighbour-partitioning", "interleaving", "communication", "settings", "uvm", "put",
               "group-size", "dimension-workers", "atomics", "occupancy"}


def check_numbers(found):
    """Times are in order, and ratios are those of the medians."""
    median = {row["name"]: row["median_ms"] for row in found["rows"]}
    for row in found["rows"]:
        assert 0 <= row["least_ms"] <= row["median_ms"] <= row["most_ms"], row
        assert 0 <= row["error"] < 1e-5
        if row["timed"] == "step":
            assert row["median_ms"] > 0
        if found["ratio_is"] == "planned":
            planned = row["planned_bytes"]
            assert row["ratio"] == (pytest.approx(row["measured_bytes"] / planned) if planned > 0 else None)
        elif row["ratio"] is not None and row["median_ms"] > 0:
            share = row["median_ms"] / median[row["ratio_to"]]
            wanted = share if found["ratio_is"] == "share" else 1 / share
            assert row["ratio"] == pytest.approx(wanted, rel=1e-9)
    if found["ratio_is"] != "planned":
        assert found["rows"][0]["ratio"] == 1
    assert found["does_not_fit"] == []


@pytest.mark.parametrize("name", ROWS)
def test_studies_on_cpu_ranks(plait, communities, name):
    width = () if name in OWN_WIDTHS else ("--width", 9)
    graph = () if name in NO_GRAPH else (communities,)
    found = plait.json("study", name, *graph, *width, "--repetitions", 3)
    assert [row["name"] for row in found["rows"]] == ROWS[name]
    ranks = 1 if name in ONE_RANK else 2
    assert (found["study"], found["ranks"], found["device"]) == (name, ranks, "cpu")
    wanted = (600, 6000, "edges") if graph else (None, None, None)
    assert (found["vertices"], found["edges"], found["partition"]) == wanted
    assert all(row["repetitions"] == 3 for row in found["rows"] if row["timed"] == "step")
    check_numbers(found)
    widths = [row["width"] for row in found["rows"]]
    own = {"hidden-width": [16 << k for k in range(6)], "row-bytes": [1 << k for k in range(11)], "latency": [64] * 4}
    assert widths == own.get(name, [9] * len(widths))


def test_made_graphs_ranks_and_text(plait):
    found = plait.json("study", "split", *TINY, "--ranks", 3, "--partition", "hash", *ONCE)
    assert (found["ranks"], found["partition"], found["graph"]) == (3, "hash", "cora")
    assert abs(found["vertices"] - 2708 * 0.2) <= 1 and found["edges"] > 0
    check_numbers(found)
    crawl = plait.json("study", "split", "--like", "it-2004", "--scale", 1e-5, *ONCE)
    assert crawl["graph"] == "it-2004" and crawl["edges"] > 0
    text = plait.ok("study", "renumbering", *TINY, *ONCE).out
    for word in ("renumbering: What", "GNNAdvisor, figures 12(c) and 13(b)", "1.74", "1 rank, ",
                 "x as fast as none", *ROWS["renumbering"]):
        assert word in text, word


def test_bytes_and_parts(plait, communities):
    """Bytes are those of a step; on the CPU, no part of a step takes longer than steps do."""
    rows = {row["name"]: row for row in plait.json("study", "nccl", communities, "--width", 16,
                                                   *ONCE)["rows"]}
    assert rows["bulk"]["link_bytes"] < rows["replicate"]["link_bytes"]
    assert rows["replicate"]["link_bytes"] % (16 * 4) == 0
    split = plait.json("study", "split", communities, "--width", 512, "--repetitions", 9)["rows"]
    assert all(0 <= part < 5 * split[0]["median_ms"] for part in (row["median_ms"] for row in split[1:]))
    assert split[3]["median_ms"] > 0


def test_renumbering_repays(plait, communities):
    """The cost is repaid after the steps in which the gain adds up to it, if there is a gain."""
    rows = plait.json("study", "renumbering", communities, *ONCE)["rows"]
    none, *_, ordered, cost = rows
    assert (cost["timed"], cost["order"], cost["ratio"]) == ("ordering", "communities", None)
    gain = none["median_ms"] - ordered["median_ms"]
    if gain > 0:
        assert cost["repaid_after_steps"] == pytest.approx(cost["median_ms"] / gain)
    else:
        assert cost["repaid_after_steps"] is None


@pytest.mark.parametrize("ranks", [1, 3])
def test_sampling_trains_as_plait_train_does(plait, communities, ranks):
    """Figures are means of runs of plait train on half of the vertices, of which each has its own seed."""
    found = plait.json("study", "sampling", communities, "--width", 16, "--repetitions", 2, "--seed", 5, "--ranks", ranks)
    for number, fanout in ((0, None), (2, "5,5"), (5, "-1")):
        row = found["rows"][number]
        way = ("--epochs", 200) if number == 0 else ("--epochs", 20, "--sampled", f"--fanout={fanout}")
        runs = [plait.json("train", communities, "--model", "sage", "--hidden", 16, "--folds", 4, "--seed", seed,
                           "--ranks", ranks, *way) for seed in (5, 6)]
        assert row["timed"] == "training" and row["width"] == 16
        for name in ("test_metric", "val_metric"):
            assert row[name] == pytest.approx((runs[0][name] + runs[1][name]) / 2)
        assert row["test_deviation"] == pytest.approx(abs(runs[0]["test_metric"] - runs[1]["test_metric"]) / 2**0.5)
        assert row["epochs_to_best"] == sum(run["best_epoch"] + 1 for run in runs) / 2
        curves = zip(*(run["val_metric_by_epoch"] for run in runs))
        assert row["val_metric_by_epoch"] == pytest.approx([sum(pair) / 2 for pair in curves])


@pytest.mark.parametrize("ranks", [1, 2])
def test_parts_of_an_epoch_add_up(plait, communities, ranks):
    found = plait.json("study", "epochs", communities, "--width", 8, *ONCE, "--ranks", ranks)
    rows = {row["name"]: row for row in found["rows"]}
    for model in ("gcn", "sage", "gat"):
        whole, *parts = (rows[model + part]["median_ms"] for part in (", in turn", ": sampling", ": gathering", ": computing"))
        assert min(parts[:2]) > 0
        # Parts are of the slowest rank each, so that they add up to more on several; and computing is 0 if preparing took
        # longer under the profile than the whole epoch without it.
        assert sum(parts) >= whole * (1 - 1e-9)
        if ranks == 1 and parts[2] > 0:
            assert sum(parts) == pytest.approx(whole)
        assert rows[f"{model}: gathering"]["ratio_to"] == f"{model}, in turn"
        assert rows[model]["ratio_to"] == rows[f"{model}, in turn"]["ratio_to"].replace(model, "gcn")


@pytest.mark.parametrize("ranks", [2, 3])
def test_rates_of_gathers(plait, communities, ranks):
    """Ranks have equal parts of the table, of which results take a quarter."""
    for row in plait.json("study", "row-bytes", *ONCE, "--ranks", ranks)["rows"]:
        results = 2**26 // row["width"] // 4 // 4 * row["width"] * 4
        assert row["gb_s"] == pytest.approx(results / row["median_ms"] / 1e6)
        assert row["link_gb_s"] / row["gb_s"] == pytest.approx(1 - 1 / ranks, abs=0.02)
    rows = plait.json("study", "gathers", communities, "--width", 3, *ONCE, "--ranks", ranks)["rows"]
    for row in rows:
        assert 512 * 12 <= row["gb_s"] * row["median_ms"] * 1e6 <= (512 + 600) * 12 * 1.001
        assert row["link_gb_s"] / row["gb_s"] == pytest.approx(1 - 1 / ranks, abs=0.1)


@pytest.mark.parametrize("ranks", [1, 2])
def test_memory_is_as_planned(plait, tmp_path, ranks):
    path, vertices, width = tmp_path / "g.npz", 30000, 301
    plait.ok("generate", "dcsbm", "--vertices", vertices, "--edges", 300000, "--width", width, "-o", path)
    found = plait.json("study", "memory", path, "--width", 8, *ONCE, "--ranks", ranks)
    graph, features, training = found["rows"]
    edges = found["edges"]
    ids_and_features = (vertices + 1) * 8 + edges * 4 + vertices * (width * 4 + 4)
    assert ids_and_features <= graph["planned_bytes"] <= ids_and_features + edges * 4 + vertices
    assert features["planned_bytes"] == vertices // ranks * 304 * 4  # rows begin at multiples of 16 bytes
    for row in (graph, features):
        assert row["planned_bytes"] * 0.95 <= row["measured_bytes"] <= row["planned_bytes"] * 1.2 + 2**22
    assert 0 < training["measured_bytes"] < 1.5 * training["planned_bytes"] + 2**26


@pytest.mark.parametrize("study", ["sampling", "epochs", "memory"])
def test_training_needs_labels(plait, tmp_path, study):
    path = tmp_path / "ring.plait"
    plait.ok("generate", "ring", "--vertices", 64, "-o", path)
    plait.fails(USAGE, "study", study, path, names=["has no features"])


@pytest.mark.parametrize("name", ["split", "nccl"])
def test_plots_stand_alone(plait, communities, tmp_path, name):
    path = tmp_path / "plot.svg"
    found = plait.json("study", name, communities, *ONCE, "--plot", path)
    root = xml.etree.ElementTree.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(row["name"] in texts for row in found["rows"])
    bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class") == "c0 fill"]
    lengths = [float(bar.get("width")) for bar in bars]
    times = [row["median_ms"] for row in found["rows"]]
    assert len(bars) == len(times)
    assert lengths[0] / max(lengths) == pytest.approx(times[0] / max(times), abs=0.02)


def test_list(plait):
    by_option, by_no_name = plait.json("study", "--list"), plait.json("study")
    assert by_option == by_no_name
    needs = {study["name"]: study["needs_gpus"] for study in by_option["studies"]}
    assert {name for name, gpus in needs.items() if gpus} == GPU_STUDIES
    assert {name for name, gpus in needs.items() if not gpus} == set(ROWS)
    text = plait.ok("study", "--list").out
    for study in by_option["studies"]:
        assert all(study[key] in text for key in ("name", "question", "paper", "claim"))
    assert {script["name"] for script in by_option["scripts"]} == SCRIPTS
    for script in by_option["scripts"]:
        assert all(script[key] in text for key in ("name", "question", "paper", "claim", "command"))
        programs = [word for word in script["command"].split() if word.startswith(("bench/", "scripts/"))]
        assert len(programs) == 1 and (ROOT / programs[0]).is_file()


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_scripts_are_told(plait, name):
    plait.fails(USAGE, "study", name, names=[f"study {name} is a script; run"])


def test_list_takes_no_study(plait):
    for extra in ("split", "extra"):
        plait.fails(USAGE, "study", "--list", extra, names=["--list", extra])
    plait.fails(USAGE, "study", "--list", "--plot", plait.folder / "p.svg", names=["--plot needs the name"])


@pytest.mark.parametrize("name", sorted(GPU_STUDIES))
def test_studies_that_need_gpus(plait, name):
    plait.fails(USAGE, "study", name, names=[name, "need GPUs", "--gpus"], env=NO_GPU)


@pytest.mark.parametrize("options,names", [
    (("luck",), ["'luck'", "renumbering", "interleaving"]),
    (("split", "--ranks", 1), ["split needs 2 ranks", "--ranks 2"]),
    (("interleaving", "--gpus", 1), ["interleaving needs 2 ranks", "--gpus 2"]),
    (("interleaving", "--gpus", 2), ["asks for 2 GPUs"]),
    (("hidden-width", "--width", 9), ["--width is set by study hidden-width"]),
    (("row-bytes", "--width", 9), ["--width is set by study row-bytes"]),
    (("latency", "--ranks", 1), ["latency needs 2 ranks"]),
    *(((name, option, value), [f"study {name} does not read {option}"]) for name in ("latency", "row-bytes")
      for option, value in (("--like", "cora"), ("--scale", 0.1), ("--partition", "hash"), ("--reorder", "rcm"))),
    *(((name, "--gpus", 2, "--transport", "nvshmem"), [f"study {name} does not read --transport"])
      for name in ("latency", "row-bytes", "gathers")),
    (("gathers", "--partition", "hash"), ["study gathers does not read --partition"]),
    (("latency", "--seed", 3), ["study latency does not read --seed"]),
    (("occupancy", "--gpus", 2, "--read-with", "addresses"), ["--read-with is set by study occupancy"]),
    (("--list", "--gpus", 2), ["--gpus needs the name of a study"]),
    (("--seed", 2), ["--seed needs the name of a study"]),
    (("gathers", "--ranks", 1), ["gathers needs 2 ranks"]),
    (("renumbering", "--reorder", "rcm"), ["--reorder is set by study renumbering"]),
    (("neighbour-partitioning", "--gpus", 2, "--ps", 8), ["--ps is set by"]),
    (("communication", "--gpus", 2, "--read-by", "block"), ["--read-by is set by"]),
    (("communication", "--gpus", 2, "--transport", "nvshmem", "--read-with", "nvshmem"), ["--read-with is set by"]),
    (("interleaving", "--gpus", 2, "--read-with", "nvshmem"), ["add --transport nvshmem"]),
    (("split", "--ps", 8), ["--ps is a setting of strategy get on GPUs"]),
    (("split", "--like", "moon"), ["moon"]),
    (("split", "--scale", 2), ["--scale"]),
    (("split", "--width", 0), ["--width"]),
    (("split", "--repetitions", 0), ["--repetitions"]),
    (("split", "--transport", "nvshmem"), ["--transport", "--gpus"]),
    (("--plot", "plot.svg"), ["--plot needs the name of a study"]),
])
def test_refused_before_anything_starts(plait, options, names, tmp_path):
    plait.fails(USAGE, "study", *options, names=names, env=NO_GPU, cwd=tmp_path)


def test_preprocessing_of_a_renumbered_graph(plait, communities, tmp_path):
    """The epoch reads the graph anew: its numbers are equal then, in other memory."""
    plait.ok("reorder", communities, tmp_path / "r.plait", "--method", "degree")
    for run in ((tmp_path / "r.plait",), (communities, "--reorder", "rcm"), (tmp_path / "r.plait", "--ranks", 2)):
        found = plait.json("study", "preprocessing", *run, "--width", 9, *ONCE)
        assert [row["name"] for row in found["rows"]] == ROWS["preprocessing"]


def test_refused_graphs(plait, communities, tmp_path):
    for name in sorted(NO_GRAPH):
        plait.fails(USAGE, "study", name, communities, names=[f"study {name} does not read a graph"])
    plait.fails(USAGE, "study", "split", communities, "--seed", 3, names=["--seed", "--partition metis"])
    plait.fails(USAGE, "study", "split", communities, "--scale", 0.5, names=["--like and --scale"])
    path = tmp_path / "ring.plait"
    plait.ok("generate", "ring", "--vertices", 2**20, "-o", path)
    plait.fails(DOES_NOT_FIT, "study", "nccl", path, "--width", 2**20, names=["the aggregation"])

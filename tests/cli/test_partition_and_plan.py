"""plait partition against NumPy, and plait plan: figures before memory is taken."""

import json

import numpy as np
import pytest

from philox import philox_words
from program import DOES_NOT_FIT, USAGE, environment
from random_graphs import random_graphs, write_scipy

WIDTH = 12
SCHEMES = ["edges", "vertices", "clusters", "hash", "metis"]


def hash_owners(vertices, ranks):
    """Returns the top 64 bits of a hash of the id times the number of ranks."""
    high, low = philox_words(np.arange(vertices, dtype=np.uint64), 0x9A171A1D)[:2]
    return np.array([((int(h) << 32 | int(l)) * ranks) >> 64 for h, l in zip(high, low)])


def owners(scheme, figures, vertices, ranks):
    """Returns the owners: by the rule of the scheme, or, for edges, by the sizes of the ranges."""
    if scheme == "hash":
        return hash_owners(vertices, ranks)
    sizes = [rank["vertices"] for rank in figures["ranks"]]
    if scheme == "vertices":
        bounds = [vertices * rank // ranks for rank in range(ranks + 1)]
        sizes = np.diff(bounds)
    return np.repeat(np.arange(ranks), sizes)


def count(graphs, owner, ranks):
    """Counts vertices, edges, remote edges and halo rows of every rank."""
    reader, source = owner[graphs.row], owner[graphs.column]
    remote = reader != source
    halo = np.unique(np.stack([reader[remote], graphs.column[remote]]), axis=1)[0]
    return [np.bincount(x, minlength=ranks).tolist()
            for x in (owner, reader, reader[remote], halo)]


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_figures_against_numpy(plait, tmp_path, ranks):
    graphs = random_graphs(21, 30, shuffled=True)
    write_scipy(tmp_path / "g.npz", graphs)
    result = plait.json("partition", tmp_path / "g.npz", "--ranks", ranks, "--dim", WIDTH)
    assert [s["scheme"] for s in result["schemes"]] == SCHEMES
    for figures in result["schemes"]:
        parts = figures["ranks"]
        fields = ("vertices", "edges", "remote_edges", "halo_rows")
        found = [[part[field] for part in parts] for field in fields]
        if figures["scheme"] not in ("clusters", "metis"):
            owner = owners(figures["scheme"], figures, graphs.vertices, ranks)
            assert found == count(graphs, owner, ranks), figures["scheme"]
        assert sum(found[0]) == graphs.vertices and sum(found[1]) == len(graphs.row)
        assert figures["cut"] == sum(found[2]) and figures["halo_rows"] == sum(found[3])
        assert figures["edge_imbalance"] == pytest.approx(max(found[1]) / np.mean(found[1]))
        assert figures["vertex_imbalance"] == pytest.approx(max(found[0]) / np.mean(found[0]))
        assert [p["bytes_per_iteration"] for p in parts] == [h * WIDTH * 4 for h in found[3]]


def test_ranges_of_edges_are_balanced(plait, tmp_path):
    """No rank has more than its share and the edges of one vertex."""
    graphs = random_graphs(22, 30, shuffled=True)
    write_scipy(tmp_path / "g.npz", graphs)
    largest = np.bincount(graphs.row).max()
    for ranks in (2, 3, 4):
        result = plait.json("partition", tmp_path / "g.npz", "--ranks", ranks, "--partition",
                            "edges")
        edges = [rank["edges"] for rank in result["schemes"][0]["ranks"]]
        assert max(edges) <= len(graphs.row) / ranks + largest


def test_metis_finds_components(plait, tmp_path):
    """Two cliques without an edge between them need no cut."""
    size = 40
    clique = np.stack(np.nonzero(1 - np.eye(size, dtype=int)))
    name = np.random.default_rng(2).permutation(2 * size)
    np.save(tmp_path / "g.npy", name[np.concatenate([clique, clique + size], axis=1)])
    found = plait.json("partition", tmp_path / "g.npy", "--ranks", 2, "--partition", "metis")
    assert (found["schemes"][0]["cut"], found["schemes"][0]["halo_rows"]) == (0, 0)
    assert [r["vertices"] for r in found["schemes"][0]["ranks"]] == [size, size]


def test_text_of_partition(plait, communities):
    out = plait.ok("partition", communities, "--ranks", 3).out
    for scheme in SCHEMES:
        assert f"\n{scheme}: cut " in "\n" + out
    assert len(out.splitlines()) == len(SCHEMES) * (1 + 1 + 3)


def predictions(result):
    return {(s["scheme"], p["strategy"], p["width"]): p["ms"] for s in result["schemes"] for p in s["predicted"]}


def test_predictions_of_one_gpu(plait, communities):
    """Of one GPU all ways are one pass, by the constants of plait/machine/machine.h."""
    result = plait.json("partition", communities, "--gpus", 1, "--partition", "edges", "--predict", "64,100")
    assert result["machine"] == "H200"
    for (_, strategy, width), ms in predictions(result).items():
        row, slices = 4 * width, -(-4 * width // 256)
        seconds = 7.5e-6 + 6000 * (1.6e-12 * slices + row / 16.8e12) + 600 * (
            1.13e-10 * slices + row / 8e12 + row / 2.89e12)
        assert ms == pytest.approx(1e3 * seconds) or strategy == "partial" and ms >= 1e3 * seconds, strategy


def test_predictions_are_those_that_plans_go_by(plait, communities, tmp_path):
    """Also for more GPUs than there are, and with the constants of another machine."""
    (tmp_path / "slow.json").write_text('{"name": "slow", "link": 1e9}')
    env = environment(PLAIT_MACHINE=str(tmp_path / "slow.json"))
    for gpus, width, settings in ((4, 16, {}), (8, 100, {}), (8, 100, {"env": env})):
        result = plait.json("partition", communities, "--gpus", gpus, "--predict", f"{width},1000", **settings)
        found = predictions(result)
        assert len(found) == len(SCHEMES) * 5 * 2 and min(found.values()) > 0
        assert result["machine"] == ("slow" if settings else "H200")
        told = plait("plan", communities, "--gpus", gpus, "--width", width, "--explain", **settings).err
        ways = [line.split() for line in told.splitlines() if line.endswith(" ms")]
        assert len(ways) == 4, told  # two strategies on two partitions
        for _, _, strategy, _, partition, ms, _ in ways:
            assert found[partition, strategy.strip(","), width] == pytest.approx(float(ms), abs=6e-4)
        for chosen in result["chosen"]:
            assert found[chosen["partition"], chosen["strategy"], chosen["width"]] <= \
                found["edges", "pipelined", chosen["width"]]
    text = plait.ok("partition", communities, "--gpus", 8, "--predict", 16).out
    assert text.count("\nclusters   ") == 5 and "\ntraining at width 16, if nothing was measured: " in text


def test_predictions_of_ranks(plait, communities, tmp_path):
    """On the CPU they take measured rates, and are those of plait tune."""
    run = ("partition", communities, "--ranks", 2, "--predict", "8,32")
    result = plait.json(*run, "--quiet")
    assert predictions(result) == {} and result["machine"] is None
    assert result["chosen"] == [{"width": w, "partition": "edges", "strategy": "bulk"} for w in (8, 32)]
    told = plait(*run)
    assert "plait doctor --measure --ranks 2 measures them" in told.err
    assert "predicted ms" not in told.out  # no table without rows
    env = environment(PLAIT_MACHINES=str(tmp_path / "machines"))
    plait.ok("doctor", "--measure", "--ranks", 2, env=env)
    found = predictions(plait.json(*run, env=env))
    rows = plait.json("tune", communities, "--ranks", 2, "--widths", "8,32", "--repetitions", 1, "--dry-run",
                      env=env)["rows"]
    assert len(rows) == 3 * 3 * 2
    for row in rows:
        assert found[row["partition"], row["strategy"], row["width"]] == pytest.approx(row["predicted_ms"])
    kept = next((tmp_path / "machines").iterdir())
    rates = json.loads(kept.read_text())
    rates["rates"][0]["value"] = 1e-300
    for text, why in ((json.dumps(rates), "an entry is no measurement"), ("{", "it is damaged")):
        kept.write_text(text)
        assert predictions(plait.json(*run, "--quiet", env=env)) == {}
        told = plait(*run, env=env)
        assert f"warning: {kept} is not used: {why}" in told.err and "nothing is predicted" in told.err
        assert "predicted ms" not in told.out


def test_widths_and_partitions_that_are_named_twice_are_measured_once(plait, communities):
    tune = ("tune", communities, "--ranks", 2, "--repetitions", 1, "--dry-run", "--widths")
    rows = plait.json(*tune, "16,8,16", "--partitions", "edges,edges")["rows"]
    assert [row["width"] for row in rows] == [16, 8] * 3
    assert plait.ok(*tune, "16,16").out.splitlines()[0].split().count("16") <= 1
    found = plait.json("bench", "aggregate", communities, "--ranks", 2, "--widths", "8,8", "--strategies", "bulk,get,bulk",
                       "--repetitions", 1)
    assert [(row["strategy"], row["width"]) for row in found["rows"]] == [("bulk", 8), ("get", 8), ("bulk", 8)]
    cut = plait.json("partition", communities, "--ranks", 2, "--partition", "hash,edges,hash", "--predict", "8,8", "--quiet")
    assert [scheme["scheme"] for scheme in cut["schemes"]] == ["hash", "edges"] and len(cut["chosen"]) == 1


def test_mistakes_of_predictions(plait, communities):
    run = ("partition", communities, "--predict")
    plait.fails(USAGE, *run, "16,x", names=["--predict", "'x'"])
    plait.fails(USAGE, *run, 0, names=["--predict"])
    plait.fails(USAGE, *run, names=["--predict needs a value"])
    plait.fails(USAGE, *run, 16, "--gpus", 33, names=["--gpus", "32"])
    plait.fails(USAGE, *run, 16, "--gpus", 2, "--ranks", 2, names=["--gpus", "--ranks"])


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("options", [[], ["--train"], ["--strategy", "replicate"],
                                     ["--partition", "hash"]])
def test_plan_adds_up(plait, communities, ranks, options):
    plan = plait.json("plan", communities, "--dim", 64, "--ranks", ranks, *options)
    totals = np.sum([array["bytes"] for array in plan["arrays"]], axis=0)
    assert len(totals) == ranks and plan["fits"] is True
    assert plan["largest_rank"] == totals.max() and plan["total"] == totals.sum()
    rows = [a["bytes"] for a in plan["arrays"] if a["name"].startswith("rows in the symmetric")][0]
    own = plait.json("partition", communities, "--ranks", ranks, "--partition",
                     "hash" if "hash" in options else "edges")["schemes"][0]["ranks"]
    halo = [600 - r["vertices"] if "replicate" in options else r["halo_rows"] for r in own]
    slots = max(r["vertices"] + h for r, h in zip(own, halo))
    # A model moves the narrower of its layers' rows: of 32 features, not of 64 between layers.
    width = 32 if "--train" in options else 64
    assert rows == [slots * width * 4] * ranks
    assert "total" in plait.ok("plan", communities, "--dim", 64, "--ranks", ranks, *options).out


@pytest.mark.parametrize("options,order,crosses", [
    (("--model", "gcn", "--layers", 3), ["sum first", "product first", "product first"], [32, 64, 8]),
    (("--model", "gin", "--layers", 3), ["sum first", "product first", "product first"], [32, 64, 8]),
    (("--model", "gat"), ["product first"] * 2, [88, 12]),
    (("--model", "gatv2"), ["product first"] * 2, [144, 20]),
    (("--model", "transformer"), ["product first"] * 2, [136, 20]),
    (("--model", "mlp"), ["no sum"] * 2, [0, 0]),
])
def test_plan_of_layers(plait, communities, options, order, crosses):
    run = ("plan", communities, "--train", "--hidden", 64, *options)
    layers = plait.json(*run)["layers"]
    assert [(layer["order"], layer["crosses"]) for layer in layers] == list(zip(order, crosses))
    assert [layer["in"] for layer in layers] == [32] + [64] * (len(order) - 1)
    assert layers[-1]["out"] == 7
    table = plait.ok(*run).out.splitlines()[:1 + len(order)]
    assert table[0].split() == ["layer", "width", "in", "width", "out", "order", "crosses"]
    assert [line.split()[-1] for line in table[1:]] == [str(width) for width in crosses]
    assert "layers" not in plait.json("plan", communities, "--width", 64)


@pytest.mark.parametrize("width", [10**11, 2**62, 2**64 - 1])
@pytest.mark.parametrize("options", [[], ["--json"], ["--train", "--ranks", 3]])
def test_what_does_not_fit(plait, communities, width, options):
    """It is refused with the figures, also if the number of bytes passes 64 bits."""
    result = plait("plan", communities, "--dim", width, *options)
    assert result.code == DOES_NOT_FIT, result
    assert len(result.lines) == 1 and result.err.startswith("plait: the run needs "), result
    assert "iB on this machine" in result.err and "is free" in result.err
    if options == ["--json"]:
        assert result.json["fits"] is False and result.json["total"] > result.json["available"]


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["auto", "bulk", "replicate", "get", "partial", "paged"])
def test_plan_of_gpus(plait, communities, gpus, strategy):
    """The arithmetic is the same with and without GPUs to compare with; here there are none."""
    options = ["plan", communities, "--dim", 64, "--gpus", gpus, "--strategy", strategy]
    env = environment(CUDA_VISIBLE_DEVICES="")
    plan = plait.json(*options, env=env)
    assert (plan["gpus"], plan["available"], plan["fits"]) == (gpus, [], None)
    arrays = {a["name"]: a["bytes"] for a in plan["arrays"]}
    totals = np.sum(list(arrays.values()), axis=0)
    assert plan["largest_rank"] == totals.max() and plan["total"] == totals.sum()
    parts = plait.json("partition", communities, "--ranks", gpus, "--partition",
                       "edges")["schemes"][0]["ranks"]
    own = [p["vertices"] for p in parts]
    rows = next(b for name, b in arrays.items() if name.startswith("rows in "))
    if strategy == "get":
        assert rows == [max(own) * 64 * 4] * gpus
    elif strategy == "replicate":
        assert rows == [600 * 64 * 4] * gpus
    elif strategy == "paged":  # each rank its own
        assert all((p["vertices"] + p["halo_rows"]) * 64 * 4 <= r <= 600 * 64 * 4
                   for p, r in zip(parts, rows))
    elif strategy == "partial":  # at most what pipelined holds
        pipelined = plait.json(*options[:-1], "pipelined", env=env)["arrays"]
        most = next(a["bytes"] for a in pipelined if a["name"].startswith("rows in "))
        assert max(own) * 64 * 4 <= rows[0] <= most[0] and len(set(rows)) == 1
    else:  # at least what is read, at most everything
        read = max(p["vertices"] + p["halo_rows"] for p in parts)
        assert read * 64 * 4 <= rows[0] <= 600 * 64 * 4 and len(set(rows)) == 1
    assert arrays["x and y"] == [2 * n * 64 * 4 for n in own]
    text = plait.ok(*options, env=env).out
    assert "not compared" in text and all(name in text for name in arrays)


@pytest.mark.parametrize("gpus", [1, 3])
def test_plan_of_a_store_on_gpus(plait, communities, gpus):
    """Every GPU has its share of the features, and all of the rest; none is there to compare with."""
    options = ["plan", communities, "--store", "--gpus", gpus]
    env = environment(CUDA_VISIBLE_DEVICES="")
    plan = plait.json(*options, env=env)
    assert plan["store"] == {"rows": 600, "dtype": "fp32", "place": "gpu", "structure": "replicated"}
    assert plan["width"] == 32
    assert (plan["gpus"], plan["available"], plan["fits"], plan["host"]) == (gpus, [], None, 0)
    arrays = {a["name"]: a["bytes"] for a in plan["arrays"]}
    assert set(arrays) == {"features", "labels", "structure"}
    assert arrays["features"] == [600 // gpus * 128] * gpus
    graph = plait.json("info", communities)
    assert arrays["structure"] == [601 * 8 + graph["edges"] * 4] * gpus
    assert arrays["labels"] == [600 * 4] * gpus
    totals = np.sum(list(arrays.values()), axis=0)
    assert plan["largest_rank"] == totals.max() and plan["total"] == totals.sum()
    text = plait.ok(*options, env=env).out
    assert "place gpu" in text and "not compared" in text and "\ntotal " in text
    shared = plait.json(*options, "--structure", "sharded", env=env)
    whole = arrays["structure"][0]
    assert {a["name"]: a["bytes"] for a in shared["arrays"]}["structure"] == [-(-whole // gpus)] * gpus


def test_plan_of_a_store_on_the_cpu(plait, communities, archives):
    mapped = plait.json("plan", communities, "--store", "--ranks", 3)
    assert mapped["store"]["place"] == "mapped" and mapped["total"] == 0 and mapped["fits"] is True
    for wrong in (["--train"], ["--strategy", "bulk"], ["--exact"], ["--explain"], ["--structure", "sharded"]):
        assert plait("plan", communities, "--store", *wrong).code == 2, wrong
    plait.fails(2, "plan", archives["sparse"], "--store", names=["sparse", "each batch"])


@pytest.mark.parametrize("option", ["--place=host", "--hot-rows=5", "--dtype=int8", "--dtype=bf16"])
def test_a_store_is_planned_as_training_keeps_it(plait, communities, option):
    """No run can take another place or type for features, or keep copies of hot rows."""
    plait.fails(2, "plan", communities, "--store", option, names=[option.partition("=")[0]])


def embedding_bytes(plan):
    return {a["name"]: a["bytes"] for a in plan["arrays"]}


@pytest.mark.parametrize("dtype,size", [("fp32", 4), ("bf16", 2), ("fp16", 2)])
@pytest.mark.parametrize("optimizer,states", [("sgd", 0), ("adagrad", 1), ("adam", 2)])
def test_plan_of_embedding_tables(plait, dtype, size, optimizer, states):
    """Rows of every split over three ranks, by arithmetic."""
    options = ["plan", "--store", "--embeddings", "1000,30,7", "--width", 48, "--ranks", 3, "--dtype", dtype,
               "--optimizer", optimizer, "--samples", 10, "--ids", "2,1,0.5"]
    all_rows = 1037
    for split, rows in (("replicated", [all_rows] * 3), ("columns", [all_rows / 3] * 3), ("table", [1000, 30, 7])):
        plan = plait.json(*options, "--split", split)
        arrays = embedding_bytes(plan)
        assert arrays["rows"] == [n * 48 * size for n in rows], split
        assert arrays["states of the optimiser"] == [n * 48 * 4 * states for n in rows], split
        assert plan["fits"] is True and plan["total"] == sum(sum(bytes) for bytes in arrays.values())
    assert plan["embeddings"] == {
        "dtype": dtype, "optimizer": optimizer, "samples": 10,
        "tables": [{"rows": n, "ids": ids, "split": "table", "rank": t}
                   for t, (n, ids) in enumerate(((1000, 2), (30, 1), (7, 0.5)))]}
    by_rows = embedding_bytes(plait.json(*options, "--split", "rows"))
    assert sum(by_rows["rows"]) == all_rows * 48 * size and max(by_rows["rows"]) <= (334 + 10 + 3) * 48 * size
    # A rank's ids name at most 20, 10 and 5 rows in a step, and each rank has the gradients of all ranks' rows of
    # replicated tables: 60, 30 and 7.
    replicated = embedding_bytes(plait.json(*options, "--split", "replicated"))
    of_row = 48 * 4 + 8 + (48 * size if size < 4 else 0)
    assert replicated["gradients of a step"] == [97 * of_row] * 3


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_plan_of_steps_on_embedding_tables_on_gpus(plait, dtype):
    """The sorting and the gathering of a step backward over three GPUs, by arithmetic; none is there."""
    options = ["plan", "--store", "--embeddings", "1000,8,30", "--width", 48, "--gpus", 3, "--dtype", dtype,
               "--samples", 10, "--ids", "2,4,1"]
    env = environment(CUDA_VISIBLE_DEVICES="")

    def bytes_of_step(split):
        arrays = embedding_bytes(plait.json(*options, "--split", split, env=env))
        return arrays["ids of a step, sorted by row"], arrays["gradients of bags, brought together"]

    # A rank's ids name at most 20, 8 and 10 rows of replicated tables; those of all ranks are joined. They outnumber
    # the 20 + 40 + 10 ids of a rank for the first table and the last, and not for the second.
    assert bytes_of_step("replicated") == ([44 * (3 * 20 + 40 + 3 * 10)] * 3, [3 * (20 + 8 + 10) * 48 * 4] * 3)
    # Ids and gradients of all ranks go to the owner of a table (ranks 0, 2 and 1); and to all ranks, for their columns.
    assert bytes_of_step("table") == ([3 * 44 * ids for ids in (20, 10, 40)], [3 * 10 * 48 * 4] * 3)
    assert bytes_of_step("columns") == ([3 * 44 * 70] * 3, [3 * 3 * 10 * 16 * 4] * 3)


def test_plan_of_embedding_tables_that_are_chosen_or_do_not_fit(plait):
    options = ["plan", "--store", "--embeddings", "1000000,30", "--width", 64, "--ranks", 2]
    chosen = plait.json(*options)
    assert [t["split"] for t in chosen["embeddings"]["tables"]] == ["rows", "replicated"]
    text = plait(*options)
    assert text.code == 0 and "table 0: 1000000 rows, split rows" in text.out and "states of the optimiser" in text.out
    large = plait("plan", "--store", "--embeddings", "4000000000,4000000000", "--width", 4096, "--json")
    assert large.code == DOES_NOT_FIT and large.json["fits"] is False
    assert large.json["total"] > 2 * 4 * 10**9 * 4096 * 8 and "states of the optimiser" in large.err and "is free" in large.err
    for wrong in (["--dtype", "int8"], ["--ids", "1"], ["--ids=-1,2"], ["--split", "cells"], ["--optimizer", "lion"],
                  ["--samples", 0], ["--structure", "sharded"], ["graph.plait"]):
        assert plait(*options, *wrong).code == 2, wrong
    for wrong, why in ((["--ids=-1,2"], "'-1' is not a finite number of 0 or more"), (["--ids", "1"], "--ids has 1 number, "),
                       (["--width", 0], "--width: "), (["--ids", "1e300,1"], "--ids: ")):
        width = [] if "--width" in wrong else ["--width", 64]
        told = plait("plan", "--store", "--embeddings", "1000000,30", *width, *wrong)
        assert told.code == 2 and why in told.err and len(told.err) < 150, told.err
    for wrong in (["--store", "--embeddings", "5"], ["--embeddings", "5", "--width", 4], ["--store", "--split", "rows"],
                  ["--store", "--width", 4], ["--store", "--embeddings", "5000000000", "--width", 4]):
        assert plait("plan", *wrong).code == 2, wrong


def test_plan_of_a_store_tells_of_a_width_that_is_not_the_files(plait, communities):
    own = plait.json("info", communities)["feature_width"]
    run = ("plan", communities, "--store", "--ranks", 2)
    told = plait(*run, "--width", own + 3)
    assert told.code == 0
    assert f"has {own} features per vertex; the plan is of {own + 3}, as --width says" in told.err
    for quiet in (("--width", own), (), ("--width", own + 3, "--quiet")):
        assert plait(*run, *quiet).err == ""


def test_plan_of_a_store_of_a_graph_that_every_rank_reads_into_memory(plait, tmp_path):
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n3 1 2\n")
    plan = plait.json("plan", tmp_path / "g.mtx", "--store", "--ranks", 2, "--width", 8)
    arrays = {a["name"]: a["bytes"] for a in plan["arrays"]}
    assert arrays["structure"] == [4 * 8 + 2 * (4 + 4)] * 2

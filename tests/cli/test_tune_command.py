"""plait tune, and the runs that choose by what it measured."""

import json
import xml.etree.ElementTree

import numpy as np
import pytest
import xxhash

from program import DOES_NOT_FIT, FAILED, USAGE, environment, run_by_hand

STRATEGIES, PARTITIONS = ["bulk", "get", "replicate"], ["edges", "vertices", "clusters"]


@pytest.fixture
def tuned(plait, communities, tmp_path):
    """The options of runs, and the file in which times are kept: clusters with get are the fastest by far."""
    env = environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    found = plait.json("tune", communities, "--ranks", 2, "--widths", "8,32", "--repetitions", 1, env=env)
    path = tmp_path / "routes" / found["kept"].rsplit("/", 1)[1]
    kept = json.loads(path.read_text())
    for entry in kept["routes"]:
        fastest = (entry["partition"], entry["strategy"]) == ("clusters", "get")
        entry["ms"] = entry["widths"][0] * (1 if fastest else 2)
    path.write_text(json.dumps(kept))
    return {"env": env}, path


def test_measures_each_way(plait, communities, tmp_path):
    env = environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    arguments = ("tune", communities, "--ranks", 2, "--widths", "8,33", "--repetitions", 2)
    found = plait.json(*arguments, env=env)
    ways = [(row["partition"], row["strategy"], row["width"]) for row in found["rows"]]
    assert ways == [(p, s, w) for p in PARTITIONS for s in STRATEGIES for w in (8, 33)]
    assert all(row["median_ms"] > 0 for row in found["rows"])
    for chosen in found["chosen"]:
        times = {(row["partition"], row["strategy"]): row["median_ms"]
                 for row in found["rows"] if row["width"] == chosen["width"]}
        best = min(times, key=times.get)
        took = chosen["partition"], chosen["strategy"]
        assert took == best or took == ("edges", "bulk") and times[took] < 1.03 * times[best]
    kept = json.loads((tmp_path / "routes" / found["kept"].rsplit("/", 1)[1]).read_text())
    assert [route["ms"] for route in kept["routes"]] == [row["median_ms"] for row in found["rows"]]
    text = plait.ok(*arguments, "--partitions", "hash", "--dry-run", env=env).out
    rows = [line for line in text.splitlines() if line.startswith("hash ")]
    assert len(rows) in (3, 6) and "kept" not in text  # 6 with predictions
    # Runs that leave the partition open keep to the standard one, with which these were not compared.
    for width in (8, 33):
        assert f"width {width}: edges with bulk; without measurements edges with bulk, which was not measured" in text
    assert text.count("compared with partition edges, which --partitions leaves out") == 1
    assert len(list((tmp_path / "routes").iterdir())) == 1
    assert "not kept" in plait.ok(*arguments, "--partitions", "edges").out


def test_shows_how_far_an_unmeasured_choice_is_from_the_best(plait, communities, tmp_path):
    plot = tmp_path / "times.svg"
    found = plait.json("tune", communities, "--ranks", 2, "--widths", "8,33", "--repetitions", 1, "--dry-run",
                       "--plot", plot)
    assert found["plot"] == str(plot) and found["kept"] is None
    for chosen in found["chosen"]:
        times = {(row["partition"], row["strategy"]): row["median_ms"]
                 for row in found["rows"] if row["width"] == chosen["width"]}
        without = times[chosen["unmeasured_partition"], chosen["unmeasured_strategy"]]
        assert chosen["regret"] == pytest.approx(without / min(times.values()) - 1)
    drawn = xml.etree.ElementTree.parse(plot).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    cells = [cell for cell in drawn.iter(f"{svg}rect") if cell.get("class") == "cell"]
    assert len(cells) == len(found["rows"])
    told = {cell.find(f"{svg}title").text.split(" ms")[0] for cell in cells}
    for row in found["rows"]:
        [text] = [t for t in told if t.startswith(f"{row['partition']}, {row['strategy']}, {row['width']}: ")]
        assert float(text.split(": ")[1]) == pytest.approx(row["median_ms"], rel=0.006)
    assert len([cell for cell in drawn.iter(f"{svg}rect") if cell.get("class") == "chosen"]) == 2
    plait.fails(FAILED, "tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, "--dry-run", "--plot",
                tmp_path / "no" / "folder.svg", names=["folder.svg"])


@pytest.mark.parametrize("options,partition,strategy", [
    ((), "clusters", "get"),
    (("--strategy", "auto"), "clusters", "get"),
    (("--strategy", "bulk"), "edges", "bulk"),
    (("--partition", "edges"), "edges", "bulk"),
    (("--partition", "hash"), "hash", "bulk"),
])
def test_runs_choose_what_is_left_open(plait, communities, tuned, options, partition, strategy):
    run = ("train", communities, "--epochs", 3, "--ranks", 2, "--seed", 5)
    found = plait.json(*run, *options, **tuned[0])
    assert (found["partition"], found["strategy"]) == (partition, strategy)
    standard = plait.json(*run, env=environment())
    assert (standard["partition"], standard["strategy"]) == ("edges", "bulk")
    np.testing.assert_allclose(found["loss"], standard["loss"], rtol=1e-5)


def test_ways_that_were_not_compared_with_the_standard_one_decide_nothing(plait, communities, tmp_path):
    env = environment(PLAIT_ROUTES=str(tmp_path / "routes"))
    plait.ok("tune", communities, "--ranks", 2, "--widths", 8, "--partitions", "hash", "--repetitions", 1, env=env)
    run = ("plan", communities, "--ranks", 2, "--width", 8, "--explain")
    assert plait(*run, env=env).lines == ["plait: strategy bulk, partition edges: plait tune has not measured it, but "
                                          "only other ways, none of which is taken without a comparison"]
    assert "by the times that plait tune measured" in plait(*run, "--partition", "hash", env=env).lines[0]


def test_other_runs_are_left_alone(plait, communities, tuned):
    for options in (("--ranks", 3), ("--ranks", 1), ("--ranks", 2, "--reorder", "degree")):
        found = plait.json("train", communities, "--epochs", 1, *options, **tuned[0])
        assert (found["partition"], found["strategy"]) == ("edges", "bulk")


def test_aggregate_and_plan_choose_too(plait, communities, tuned, tmp_path):
    x = np.random.default_rng(3).random((600, 5), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    results = []
    for options in (tuned[0], {}):
        found = plait.json("aggregate", communities, "--features", tmp_path / "x.npy", "--ranks", 2, "--out",
                           tmp_path / "y.npy", **options)
        results.append((found["partition"], found["strategy"], np.load(tmp_path / "y.npy")))
    assert results[0][:2] == ("clusters", "get") and results[1][:2] == ("edges", "bulk")
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-5)
    plan = ("plan", communities, "--width", 16, "--ranks", 2)
    asked = ("--partition", "clusters", "--strategy", "get")
    assert plait.json(*plan, **tuned[0])["arrays"] == plait.json(*plan, *asked)["arrays"]
    assert plait.json(*plan, **tuned[0])["arrays"] != plait.json(*plan)["arrays"]


@pytest.fixture
def settings_kept(plait, communities, tmp_path):
    """The options of runs on two GPUs, which need not be there, by kept times of which get with --ps 1 is the fastest."""
    env = environment(PLAIT_ROUTES=str(tmp_path / "routes"), CUDA_VISIBLE_DEVICES="")
    found = plait.json("tune", communities, "--ranks", 2, "--widths", 8, "--partitions", "edges", "--repetitions", 1,
                       env=env)
    path = tmp_path / "routes" / found["kept"].rsplit("/", 1)[1]
    kept = json.loads(path.read_text()) | {"device": "GPU"}
    ways = (("pipelined", {}, 3), ("get", {}, 2.5), ("get", {"ps": "1"}, 1), ("get", {"ps": "none"}, 2))
    one = kept["routes"][0]
    kept["routes"] = [one | {"strategy": name, "get": settings, "ms": ms} for name, settings, ms in ways]
    key = "\n".join([kept["graph"], "GPU", str(kept["ranks"]), str(kept["here"])])
    named = path.with_name(f"{xxhash.xxh3_64_hexdigest(key.encode())}.json")
    named.write_text(json.dumps(kept))
    return {"env": env}, named


def test_runs_take_kept_settings(plait, communities, settings_kept):
    plan = ("plan", communities, "--gpus", 2, "--width", 8)
    get = ("--partition", "edges", "--strategy", "get")

    def arrays(*options, **keywords):
        return plait.json(*plan, *options, **keywords)["arrays"]

    kept, unkept = settings_kept[0], {"env": environment(CUDA_VISIBLE_DEVICES="")}
    assert arrays(**kept) == arrays(*get, **kept) == arrays(*get, "--ps", 1, **unkept) != arrays(*get, **unkept)
    lines = plait(*plan, "--explain", **kept).lines
    assert lines[:5] == [
        "plait: strategy get, partition edges, ps 1: by the times that plait tune measured, for the widths of this run:",
        f"plait:   {'strategy get, partition edges, ps 1':<40}       1.000 ms",
        f"plait:   {'strategy get, partition edges, ps none':<40}       2.000 ms",
        f"plait:   {'strategy get, partition edges':<40}       2.500 ms",
        f"plait:   {'strategy pipelined, partition edges':<40}       3.000 ms"]
    # What the command line names stays, also one setting of several.
    assert arrays(*get, "--ps", 8, **kept) == arrays(*get, "--ps", 8, **unkept)
    assert arrays(*get, "--wpb", 4, **kept) == arrays(*get, **unkept)
    assert plait(*plan, *get, "--wpb", 8, "--explain", **kept).lines[0] == (
        "plait: strategy get, partition edges, wpb 8: as asked for")
    pipelined = ("--strategy", "pipelined", "--partition", "edges")
    assert arrays(*pipelined, **kept) == arrays(*pipelined, **unkept)


@pytest.mark.parametrize("settings, why", [
    ({"ps": "513"}, "--ps is '513', which is not 1 to 512 or none"), ({"luck": "1"}, "no setting 'luck'"),
    ({"ps": 1}, "it is damaged"), (["ps"], "an entry is no measurement"),
    ({"dw": "2", "read-by": "block"}, "--dw 2 is for rows that warps read"),
    ({"read-with": "nvshmem"}, "--transport nvshmem")])
def test_files_with_settings_that_are_none_decide_nothing(plait, communities, settings_kept, settings, why):
    options, path = settings_kept
    kept = json.loads(path.read_text())
    kept["routes"][2]["get"] = settings
    path.write_text(json.dumps(kept))
    told = plait("plan", communities, "--gpus", 2, "--width", 8, "--partition", "edges", **options)
    assert told.code == 0 and len(told.lines) == 1
    assert told.err.startswith("plait: warning: ") and why in told.err


def test_explanations(plait, communities, tuned):
    run = ("train", communities, "--epochs", 1, "--hidden", 8, "--explain", "--ranks")
    lines = plait(*run, 2, **tuned[0]).lines
    assert lines[0] == ("plait: strategy get, partition clusters: by the times that plait tune measured, for "
                        "the widths of this run:")
    assert len(lines) == 1 + len(STRATEGIES) * len(PARTITIONS)
    assert [float(line.split()[-2]) for line in lines[1:]] == [16.0] + [32.0] * 8  # of two layers
    asked = ("--strategy", "bulk", "--partition", "hash")
    assert plait(*run, 2, *asked, **tuned[0]).lines == ["plait: strategy bulk, partition hash: as asked for"]
    nothing = "plait: strategy bulk, partition edges: nothing was measured for this graph; see plait tune"
    assert plait(*run, 3, **tuned[0]).lines == [nothing]
    assert plait(*run, 1, **tuned[0]).lines == ["plait: one rank: nothing moves between ranks"]


def test_damaged_files_decide_nothing(plait, communities, tuned):
    options, path = tuned
    run = ("train", communities, "--epochs", 1, "--ranks", 2)
    for content, why in (("{", "it is damaged"), (path.read_text().replace('"version": "', '"version": "0.'),
                                                  "wrote it")):
        path.write_text(content)
        told = plait(*run, "--json", **options)
        assert told.code == 0 and len(told.lines) == 1
        assert told.err.startswith("plait: warning: ") and why in told.err
        assert told.json["partition"] == "edges"
        plait.ok(*run, "--quiet", **options)


def test_two_hosts(communities, tuned):
    """They have no common memory, which get needs: its times on one host decide nothing there."""
    variables = {"PLAIT_ROUTES": tuned[0]["env"]["PLAIT_ROUTES"]}
    hosts = [variables | {"PLAIT_HOST_ID": name} for name in "ab"]
    first = run_by_hand(["train", communities, "--epochs", 1, "--json"], *hosts)[0]
    assert (first.code, first.json["strategy"], first.json["partition"]) == (0, "bulk", "edges")
    found = run_by_hand(["tune", communities, "--widths", 8, "--repetitions", 1, "--json"], *hosts)[0].json
    assert {row["strategy"] for row in found["rows"]} == {"bulk", "replicate"}


def test_mistakes(plait, communities, tmp_path):
    plait.fails(USAGE, "tune", communities, names=["one rank moves no rows"])
    plait.fails(USAGE, "tune", communities, "--ranks", 2, "--partitions", "edges,best", names=["'best'"])
    plait.fails(USAGE, "tune", communities, "--ranks", 2, "--widths", 0)
    plait.fails(USAGE, "tune", communities, "--ranks", 2, "--transport", "nvshmem",
                names=["--transport does nothing", "with --gpus"])
    plait.fails(USAGE, "tune", communities, "--ranks", 2, "--settings",
                names=["--settings does nothing", "it is read with --gpus"])
    path = tmp_path / "path.plait"
    plait.ok("generate", "path", "--vertices", 2**20, "-o", path)
    plait.fails(DOES_NOT_FIT, "tune", path, "--ranks", 2, "--widths", 2**20, names=["the aggregation"])
    (tmp_path / "file").write_text("")
    plait.fails(FAILED, "tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1,
                names=["cannot be made"], env=environment(PLAIT_ROUTES=str(tmp_path / "file" / "routes")))


def test_predictions_choose_where_nothing_was_measured(plait, tmp_path):
    """On GPUs. The owner of a star's centre reads all other vertices, but needs three sums alone."""
    star = tmp_path / "star.plait"
    plait.ok("generate", "star", "--vertices", 200000, "-o", star)
    run = ("plan", star, "--gpus", 4, "--width", 64, "--partition", "edges")
    lines = plait(*run, "--explain").lines
    assert lines[0] == ("plait: strategy partial, partition edges: by predicted times, as plait tune has "
                        "measured no way that this run can go, for the widths of this run:")
    assert [line.split()[2].rstrip(",") for line in lines[1:]] == ["partial", "pipelined"]
    times = [float(line.split()[-2]) for line in lines[1:]]
    assert times == sorted(times) and 1.2 * times[0] < times[1]
    arrays = [plait.json(*run, *options)["arrays"] for options in (
        (), ("--strategy", "partial"), ("--strategy", "pipelined"), ("--exact",), ("--exact", "--strategy", "pipelined"))]
    assert arrays[0] == arrays[1] != arrays[2]
    assert arrays[3] == arrays[4]
    # Ranges of as many vertices share the rows beside the centre more evenly.
    open_partition = plait(*run[:-2], "--explain").lines
    assert open_partition[0].startswith("plait: strategy partial, partition vertices: by predicted times")
    assert len(open_partition) == 1 + 2 * 2 and [float(line.split()[-2]) for line in open_partition[1:]][0] < times[0]
    trained = tmp_path / "communities.plait"
    plait.ok("generate", "dcsbm", "-o", trained)
    gat = plait("plan", trained, *run[2:], "--explain", "--train", "--model", "gat").lines
    assert [line.split()[2].rstrip(",") for line in gat] == ["pipelined"] * 2  # it needs rows, not sums
    asked = plait(*run, "--explain", "--strategy", "pipelined").err
    assert asked == "plait: strategy pipelined, partition edges: as asked for\n"
    damaged = tmp_path / "machine.json"
    damaged.write_text('{"nccl_link": -1}')
    told = plait(*run, env=environment(PLAIT_MACHINE=str(damaged)))
    assert told.code == FAILED and "nccl_link" in told.err and len(told.lines) == 1

"""--profile and --trace: where the time of a command went."""

import json
import resource
import re
import signal

import numpy as np
import pytest

from program import DOES_NOT_FIT, FAILED, INTERRUPTED, RIGHT, USAGE, result_of, start, start_ranks, wait_until

EPOCHS = 4


def profile_of(result):
    """Returns {phase: object} of the profile that --json prints, and the seconds of each rank."""
    profile = result["profile"]
    phases = {phase["phase"]: phase for phase in profile["phases"]}
    assert len(phases) == len(profile["phases"])
    return phases, np.array(profile["seconds"])


def check_sums(result, ranks):
    """On each rank, times inside of a phase add up to the phase's, and those of all to the run's."""
    phases, total = profile_of(result)
    assert total.shape == (ranks,) and (total > 0).all()
    inner = {}
    for path, phase in phases.items():
        seconds = np.array(phase["seconds"])
        assert seconds.shape == (ranks,) and (seconds >= 0).all(), phase
        assert len(phase["calls"]) == len(phase["bytes"]) == ranks
        inner.setdefault(path.rpartition("/")[0], []).append(seconds)
    for outer, parts in inner.items():
        expected = phases[outer]["seconds"] if outer else total
        np.testing.assert_allclose(np.sum(parts, axis=0), expected, rtol=1e-9, atol=1e-9)


def table_of(err):
    """Returns [(depth, name, calls, share)] of the table on stderr."""
    rows = []
    for line in err.splitlines():
        if found := re.match(r"( *)(\S.*?)  +(\d*) .*? (\d+\.\d)%", line):
            rows.append((len(found[1]) // 2, found[2], int(found[3] or 0), float(found[4])))
    return rows


def check_table(err):
    """Shares of the outermost phases add up, up to what rounding and rows not shown take."""
    rows = table_of(err)
    assert rows[-1][1] == "total" and rows[-1][3] == 100
    assert rows[-2][:2] == (0, "other")
    assert sum(share for depth, _, _, share in rows[:-1] if depth == 0) == pytest.approx(100, abs=1)
    return rows


def spans_of(path):
    """Returns the spans of a trace by process: [[(name, begin, end)]], in microseconds."""
    events = json.loads(path.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names == [f"rank {rank}" for rank in range(len(names))]
    spans = [[] for _ in names]
    for event in events:
        if event["ph"] == "X":
            spans[event["pid"]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    return spans


def weights_of(path):
    """Returns the bytes of all tensors of a checkpoint; times of epochs stand in its header."""
    content = path.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


@pytest.fixture(scope="module")
def x(tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "x.npy"
    np.save(path, np.random.default_rng(1).random((600, 8), np.float32))
    return path


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_aggregate(plait, tmp_path, communities, x, ranks):
    run = ["aggregate", communities, "--features", x, "--ranks", ranks]
    plait.ok(*run, "--out", tmp_path / "plain.npy")
    result = plait.json(*run, "--out", tmp_path / "timed.npy", "--profile")
    assert (tmp_path / "plain.npy").read_bytes() == (tmp_path / "timed.npy").read_bytes()
    check_sums(result, ranks)
    phases, _ = profile_of(result)
    for name in ("read graph", "read features", "partition", "place graph", "aggregate", "write"):
        assert phases[name]["calls"][0] == 1, name
    assert phases["aggregate"]["bytes"][0] == result["bytes_fetched"]
    limit = result["profile"].get("limit")
    if ranks == 1:
        assert limit is None and result["bytes_fetched"] == 0
    else:
        rows = phases["aggregate/bring rows"]
        assert limit["name"] == "memory copy" and limit["bytes_per_second"] > 1e6
        assert rows["bytes"] == phases["aggregate"]["bytes"]
        assert rows["bytes_per_second"] == pytest.approx(sum(rows["bytes"]) / sum(rows["seconds"]))
        assert "bytes_per_second" not in phases["aggregate/sum"]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("options", [(), ("--cooperative",)])
def test_batches_in_turn(plait, communities, ranks, options):
    """The thread that computes prepares batches, so that the profile has their parts."""
    run = ["train", communities, "--model", "sage", "--epochs", EPOCHS, "--ranks", ranks, "--sampled", "--batch", 20,
           *options]
    timed = plait.json(*run, "--prefetch", 0, "--profile")
    assert timed["loss"] == plait.json(*run)["loss"]
    check_sums(timed, ranks)
    phases, _ = profile_of(timed)
    steps = phases["epoch/prepare a batch"]["calls"]
    assert steps[0] > EPOCHS and steps == phases["epoch/forward"]["calls"]
    assert phases["epoch/prepare a batch/gather features"]["calls"] == steps
    assert phases["epoch/prepare a batch/sample neighbours"]["calls"] == [2 * number for number in steps]
    assert "epoch/wait for a batch" not in phases


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_train(plait, tmp_path, communities, ranks):
    run = ["train", communities, "--epochs", EPOCHS, "--ranks", ranks]
    plain = plait.json(*run, "--checkpoint", tmp_path / "plain.safetensors")
    timed = plait.json(*run, "--checkpoint", tmp_path / "timed.safetensors", "--profile", "--trace",
                       tmp_path / "trace.json")
    for field in ("loss", "val_loss_by_epoch", "val_metric_by_epoch", "bytes_per_rank"):
        assert plain[field] == timed[field]
    assert weights_of(tmp_path / "plain.safetensors") == weights_of(tmp_path / "timed.safetensors")
    assert set(timed) - set(plain) == {"profile"}

    check_sums(timed, ranks)
    phases, _ = profile_of(timed)
    for name in ("epoch", "epoch/forward", "epoch/backward", "epoch/sum gradients",
                 "epoch/optimiser", "epoch/evaluate", "epoch/evaluate/forward"):
        assert phases[name]["calls"] == [EPOCHS] * ranks, name
    assert phases["epoch/forward/aggregate"]["calls"] == [2 * EPOCHS] * ranks  # of two layers
    # A rehearsal of the memory has phases of the same names, which are not shown.
    assert not [path for path in phases if path.startswith("set up training/rehearse memory/")]
    steps = [phases[f"epoch/{name}"]["bytes"] for name in ("forward", "backward", "sum gradients")]
    assert np.sum(steps, axis=0).max() == EPOCHS * timed["bytes_per_rank"]

    processes = spans_of(tmp_path / "trace.json")
    assert len(processes) == ranks
    for rank, spans in enumerate(processes):
        epochs = [span for span in spans if span[0] == "epoch"]
        assert len(epochs) == EPOCHS
        backward = [span for span in spans if span[0] == "backward"]
        for epoch, step in zip(epochs, backward, strict=True):
            assert epoch[1] <= step[1] <= step[2] <= epoch[2] + 0.001
        length = sum(end - begin for _, begin, end in epochs) / 1e6
        assert length == pytest.approx(phases["epoch"]["seconds"][rank], rel=1e-3)


def test_ranks_share_a_clock(plait, tmp_path, communities):
    """Epochs of two ranks overlap, as ranks wait for each other in each."""
    trace = tmp_path / "trace.json"
    assert plait.ok("train", communities, "--epochs", 3, "--ranks", 2, "--trace", trace).err == ""
    first, second = ([span for span in spans if span[0] == "epoch"] for spans in spans_of(trace))
    for one, other in zip(first, second, strict=True):
        assert max(one[1], other[1]) < min(one[2], other[2])


def commands(communities, x, folder):
    """Returns the arguments of each command, and phases that it must show."""
    out = folder / "out"
    weights = folder / "weights.safetensors"
    yield ["generate", "star", "-o", f"{out}.plait"], ["generate", "write"]
    yield ["convert", f"{out}.plait", f"{out}.mtx"], ["read graph", "write"]
    yield ["convert", f"{out}.mtx", f"{out}.plait"], ["build CSR", "write"]
    yield ["reorder", communities, f"{out}.plait", "--method", "rcm"], ["find order", "renumber", "write"]
    yield ["info", communities, "--communities"], ["read graph", "find communities"]
    yield ["partition", communities, "--ranks", 3], ["metis", "partition", "count halo"]
    yield ["plan", communities, "--dim", 8, "--train"], ["plan", "rehearse memory"]
    yield ["train", communities, "--epochs", 2, "--checkpoint", weights, "--ranks", 2], ["epoch", "checkpoint"]
    infer = ["infer", communities, "--checkpoint", weights, "--out", f"{out}.npy", "--ranks", 2]
    yield infer, ["load checkpoint", "forward", "write"]
    yield [*infer, "--memory-limit", "1G"], ["layer 1 of 2", "layer 2 of 2", "sync rows", "write"]
    yield ["aggregate", communities, "--features", x, "--out", f"{out}.npy", "--op", "max", "--ranks", 2,
           "--reorder", "rcm"], ["reorder", "work on edges"]
    yield ["tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, "--dry-run"], [
        "measuring edges with bulk", "place graph", "steps", "bring rows"]


def test_every_command_has_a_table_and_a_trace(plait, tmp_path, communities, x):
    trace = tmp_path / "trace.json"
    for arguments, phases in commands(communities, x, tmp_path):
        result = plait(*arguments, "--profile", "--trace", trace)
        assert result.code == RIGHT and result.out, result
        rows = check_table(result.err)
        spans = spans_of(trace)
        assert len(spans) == (2 if "--ranks" in arguments and arguments[0] != "partition" else 1)
        noted = {name for process in spans for name, _, _ in process}
        # The table leaves out rows that took no time.
        assert set(phases) <= noted, arguments
        assert {name for _, name, _, _ in rows} <= noted | {"other", "total"}, arguments
        trace.unlink()


def test_what_tune_measures_is_one_phase(plait, communities):
    """Phases inside of the measured steps would make the times longer that later runs choose by."""
    tune = ["tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, "--dry-run"]
    result = plait.json(*tune, "--profile")
    check_sums(result, 2)
    phases, _ = profile_of(result)
    assert "measuring edges with bulk/check/aggregate/bring rows" in phases
    assert phases["measuring edges with bulk/steps"]["calls"] == [1, 1]
    assert not [path for path in phases if "/steps/" in path]


def test_table_follows_the_result(plait, communities):
    run = ["train", communities, "--epochs", EPOCHS, "--ranks", 2, "--quiet", "--profile"]
    result = plait(*run)
    heading = result.lines[0].split()
    assert heading[:6] == ["phase", "calls", "median", "ms", "slowest", "ms"]
    assert heading[-3:] == ["of", "memory", "copy"]
    calls = {name: calls for depth, name, calls, _ in check_table(result.err) if depth < 2}
    assert calls["epoch"] == calls["forward"] == EPOCHS
    assert re.fullmatch(r"memory copy: \d+\.\d\d GB/s into each rank, with all ranks at work",
                        result.lines[-1])
    assert result.out.startswith("gcn on 2 ranks") and len(result.out.splitlines()) == 3


def test_without_the_options_there_is_nothing(plait, tmp_path, communities):
    assert "profile" not in plait.json("info", communities)
    assert "profile" not in plait.json("info", communities, "--trace", tmp_path / "t.json")
    assert plait.ok("info", communities, "--trace", tmp_path / "t.json").out.startswith("dcsbm")


def test_traces_are_refused_before_the_work(plait, tmp_path, communities, x):
    """fails() checks that no file is made or changed."""
    run = ["aggregate", communities, "--features", x, "--out", tmp_path / "y.npy", "--ranks", 2]
    plait.fails(FAILED, *run, "--trace", tmp_path / "none" / "t.json", names=["cannot be written"])
    plait.fails(USAGE, *run, "--trace", x, names=["--features", "--trace"])
    plait.fails(USAGE, *run, "--trace", tmp_path / "y.npy", names=["--out", "--trace"])
    plait.fails(USAGE, *run, "--trace", tmp_path / "." / "y.npy", names=["--out", "--trace"])
    plait.fails(FAILED, "info", communities, "--trace", tmp_path / "none" / "t.json")


def test_a_run_that_fails_has_no_profile(plait, tmp_path, communities):
    options = ["--profile", "--trace", tmp_path / "t.json"]
    plait.fails(FAILED, "info", tmp_path / "missing.plait", *options)
    plait.fails(FAILED, "train", tmp_path / "missing.plait", "--ranks", 2, *options, "--json")
    plait.fails(DOES_NOT_FIT, "plan", communities, "--dim", 10**12, *options)
    result = plait.fails(DOES_NOT_FIT, "plan", communities, "--dim", 10**12, *options, "--json")
    assert result.json["fits"] is False and "profile" not in result.json


def test_ranks_must_agree(communities):
    """Ranks that profile wait for each other at the end."""
    run = ["train", communities, "--epochs", 1]
    results = [result_of(p) for p in start_ranks(([*run, "--profile"], {}), (run, {}))]
    assert all(result.code == USAGE for result in results)
    assert any("--profile" in result.err for result in results)


def test_an_interrupted_training_has_a_profile(tmp_path, communities):
    trace, weights = tmp_path / "t.json", tmp_path / "weights.safetensors"
    process = start("train", communities, "--epochs", 1000000, "--ranks", 2, "--json", "--profile",
                    "--trace", trace, "--checkpoint", weights, "--checkpoint-every", 1)
    wait_until(weights.exists, 60, "the first epoch")
    process.send_signal(signal.SIGINT)
    result = result_of(process)
    assert result.code == INTERRUPTED and len(result.lines) <= 2, result
    assert result.json["interrupted"] is True
    check_sums(result.json, 2)
    phases, _ = profile_of(result.json)
    assert phases["epoch"]["calls"] == [result.json["epochs"]] * 2
    assert len(spans_of(trace)) == 2


def test_a_trace_that_cannot_be_written_leaves_the_result(plait, tmp_path, communities):
    """As on a disk that fills up during the run."""
    result = plait("train", communities, "--epochs", 2, "--json", "--trace", tmp_path / "t.json",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    assert result.code == FAILED and "t.json" in result.lines[0]
    assert len(result.json["loss"]) == 2 and not (tmp_path / "t.json").exists()


def test_the_table_shows_what_moved(plait, tmp_path, communities):
    np.save(tmp_path / "x.npy", np.ones((600, 4), np.float32))
    table = plait("aggregate", communities, "--features", tmp_path / "x.npy", "--out", tmp_path / "y.npy",
                  "--ranks", 2, "--profile").err
    assert "bring rows" in table

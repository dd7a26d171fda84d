"""plait train's trials of other strategies in its first epochs, and the runs after it that begin with the best."""

import json

import numpy as np
import pytest

from program import USAGE, environment, run_by_hand

EPOCHS = 400
TWO = ("--ranks", 2, "--seed", 5)
RUN = ("--epochs", EPOCHS, *TWO)
WAYS = ["bulk", "get", "replicate"]


@pytest.fixture
def routes(tmp_path):
    return {"env": environment(PLAIT_ROUTES=str(tmp_path / "routes"))}


def timed(trials):
    return [t for t in trials if t["epoch_ms"] is not None]


def run_that_tries(plait, *arguments, **keywords):
    """Repeats a run until it has timed several ways: on a busy machine a set-up may take too long to be repaid."""
    for _ in range(10):
        run = plait("train", *arguments, "--json", **keywords)
        assert run.code == 0, run
        if len(timed(run.json["trials"])) > 1:
            return run
    pytest.fail("no run has timed several ways")


def test_trials_find_a_way_and_change_no_loss(plait, communities, routes):
    found = run_that_tries(plait, communities, *RUN, **routes).json
    trials = found["trials"]
    assert [t["strategy"] for t in trials] == WAYS
    for t in trials:
        assert (t["epoch_ms"] is None) == (t["left_out"] is not None)
        assert t["passes"] == 0 and 0 <= t["epochs"] <= 3
    assert trials[0]["epochs"] == 3 and trials[0]["setup_ms"] > 0
    times = {t["strategy"]: t["epoch_ms"] for t in timed(trials)}
    least = min(times, key=times.get)
    assert found["strategy"] == ("bulk" if times["bulk"] < 1.15 * times[least] else least)
    assert len(found["loss"]) == found["epochs"] == EPOCHS
    plain = plait.json("train", communities, *RUN, "--optimise", "off")
    assert plain["trials"] == [] and plain["strategy"] == "bulk"
    assert found["loss"] == plain["loss"]  # every way on the CPU sums in the same order
    # The bytes are those of the strategy that stayed.
    same = plait.json("train", communities, "--epochs", 1, *TWO, "--strategy", found["strategy"])
    assert found["bytes_per_rank"] == same["bytes_per_rank"]


def test_the_next_run_begins_with_the_best(plait, communities, routes, tmp_path):
    first = run_that_tries(plait, communities, *RUN, **routes).json
    [path] = (tmp_path / "routes").iterdir()
    kept = json.loads(path.read_text())
    assert kept["routes"][0]["strategy"] == first["strategy"]
    assert len(kept["routes"]) == len(timed(first["trials"]))
    # As if another way had stayed, so that the run can only have it from the file.
    kept["routes"][0]["strategy"] = "replicate"
    path.write_text(json.dumps(kept))
    second = plait("train", communities, *RUN, "--explain", "--json", **routes)
    assert second.json["strategy"] == "replicate" and second.json["trials"] == []
    assert second.lines[0] == ("plait: strategy replicate, partition edges: by epochs that an earlier run tried, "
                               "per step:")
    assert len(second.lines) == 1 + len(kept["routes"])
    assert second.json["loss"] == first["loss"]
    off = plait.json("train", communities, "--epochs", 1, *TWO, "--optimise", "off", **routes)
    assert off["strategy"] == "bulk"
    # A model of other widths, other ranks and other kinds of runs find nothing, and tuning comes first.
    for options in (("--hidden", 24, *TWO), ("--model", "sage", *TWO), ("--exact", *TWO), ("--ranks", 3),
                    ("--partition", "hash", *TWO)):
        other = plait.json("train", communities, "--epochs", 1, *options, **routes)
        assert other["strategy"] == "bulk"
    plait.ok("tune", communities, "--ranks", 2, "--widths", 16, "--repetitions", 1, **routes)
    lines = plait("train", communities, *TWO, "--epochs", 1, "--explain", **routes).lines
    assert "by the times that plait tune measured" in lines[0]


def test_explanations(plait, communities, routes):
    told = plait("train", communities, *RUN, "--explain", **routes).lines
    assert told[0].endswith("nothing was measured for this graph; see plait tune")
    tried = sum("set up in" in line for line in told[2:]) > 1
    assert told[1].endswith(": stayed after trials, per step:" if tried else ": no other way was tried, per step:")
    assert [line.split()[2] for line in told[2:]] == WAYS
    assert all("set up in" in line or "not tried: a trial costs" in line for line in told[2:])


@pytest.mark.parametrize("options", [
    ("--ranks", 2, "--optimise", "off"), ("--ranks", 2, "--strategy", "bulk"), ("--ranks", 1)])
def test_runs_without_trials(plait, communities, routes, options, tmp_path):
    found = plait.json("train", communities, "--epochs", 100, *options, **routes)
    assert found["trials"] == [] and found["strategy"] == "bulk"
    assert not (tmp_path / "routes").exists()


def test_short_runs_try_nothing(plait, communities, routes, tmp_path):
    """Even if trials cost no set-up, their epochs could not be repaid."""
    found = plait.json("train", communities, "--epochs", 6, "--ranks", 2, **routes)
    assert found["strategy"] == "bulk" and [t["epochs"] for t in found["trials"]] == [3, 0, 0]
    assert all("in the 3 epochs left" in t["left_out"] for t in found["trials"][1:])
    assert not (tmp_path / "routes").exists()


def test_trials_that_were_asked_for_say_why_none_is_made(plait, communities, routes):
    run = ("train", communities, "--optimise", "on", "--epochs", 6)
    why = "plait: --optimise on tries no other way: "
    short = plait(*run, *TWO, **routes)
    assert [line.startswith(why + "a trial costs") for line in short.lines] == [True]
    assert plait(*run, *TWO, "--explain", **routes).lines[1].endswith(": no other way was tried, per step:")
    assert plait(*run, "--ranks", 1, **routes).lines == [why + "one rank moves no rows"]
    plait.ok("tune", communities, "--ranks", 2, "--widths", 16, "--repetitions", 1, **routes)
    assert plait(*run, *TWO, **routes).lines == [why + "plait tune has measured this graph"]
    assert plait(*run, *TWO, "--quiet", **routes).lines == []
    assert why not in plait("train", communities, "--epochs", 6, *TWO, **routes).err


def test_samples_are_not_trained_by_trials_on_the_whole_graph(plait, communities, routes, tmp_path):
    run_that_tries(plait, communities, *RUN, **routes)
    [path] = (tmp_path / "routes").iterdir()
    kept = json.loads(path.read_text())
    kept["routes"][0]["strategy"] = "replicate"
    path.write_text(json.dumps(kept))
    run = ("train", communities, "--epochs", 1, *TWO, "--explain")
    assert "by epochs that an earlier run tried" in plait(*run, **routes).err
    assert "by epochs that an earlier run tried" not in plait(*run, "--sampled", "--fanout", "3,3", **routes).err


def test_exact_losses_stay_the_same_bits(plait, communities, routes):
    run = ("train", communities, "--epochs", 60, "--exact")
    assert plait.json(*run, "--ranks", 2, **routes)["loss"] == plait.json(*run, "--ranks", 1)["loss"]


def test_resumed_runs_try_anew(plait, communities, tmp_path):
    checkpoint = tmp_path / "half.safetensors"
    run = ("train", communities, "--ranks", 2, "--seed", 5)
    plait.ok(*run, "--epochs", 100, "--checkpoint", checkpoint)
    resumed = plait.json(*run, "--epochs", 200, "--resume", checkpoint)
    assert resumed["trials"][0]["epochs"] == 3
    whole = plait.json(*run, "--epochs", 200, "--optimise", "off")
    np.testing.assert_allclose(resumed["loss"], whole["loss"], rtol=1e-5)


def test_two_hosts(communities, tmp_path):
    """They have no common memory, which get needs."""
    variables = {"PLAIT_ROUTES": str(tmp_path / "routes")}
    hosts = [variables | {"PLAIT_HOST_ID": name} for name in "ab"]
    first = run_by_hand(["train", communities, "--epochs", 150, "--json"], *hosts)[0]
    assert first.code == 0 and [t["strategy"] for t in first.json["trials"]] == ["bulk", "replicate"]


def test_mistakes(plait, communities, tmp_path):
    plait.fails(USAGE, "train", communities, "--optimise", "maybe", names=["'maybe'", "auto, on, off"])
    (tmp_path / "file").write_text("")
    told = run_that_tries(plait, communities, *RUN, env=environment(PLAIT_ROUTES=str(tmp_path / "file" / "routes")))
    assert [line.startswith("plait: warning: the trials are not kept") for line in told.lines] == [True]

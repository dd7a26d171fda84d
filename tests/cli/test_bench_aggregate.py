"""plait bench aggregate on CPU ranks. tests/cli/test_json.py has its fields, tests/gpu what it does on GPUs."""

import pytest

from program import USAGE, run_by_hand

RUN = ("bench", "aggregate")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_strategies_on_ranks(plait, communities, ranks):
    found = plait.json(*RUN, communities, "--ranks", ranks, "--widths", "8,33", "--strategies", "bulk,get,replicate",
                       "--partition", "vertices", "--repetitions", 2)
    assert [(row["strategy"], row["width"]) for row in found["rows"]] == [
        (s, w) for s in ("bulk", "get", "replicate") for w in (8, 33)]
    assert (found["device"], found["ranks"], found["gpus"], len(found["place_s"])) == ("cpu", ranks, 0, 3)
    part = plait.json("partition", communities, "--ranks", ranks, "--partition", "vertices")["schemes"][0]["ranks"][0]
    assert (found["edges"], found["halo_rows"]) == (part["edges"], part["halo_rows"])
    for row in found["rows"]:
        assert 0 < row["least_ms"] <= row["median_ms"] <= row["most_ms"] and row["error"] < 1e-5
        assert row["passes"] == 1 and "limit_ms" not in row
        rows = row["link_bytes"] / (4 * (row["width"] + 3 & ~3))  # padded to 16 bytes
        assert rows == {"bulk": part["halo_rows"], "replicate": 600 - part["vertices"],
                        "get": part["remote_edges"]}[row["strategy"]]


def test_text_and_default(plait, communities):
    text = plait.ok(*RUN, communities, "--ranks", 2, "--widths", 8, "--repetitions", 1).out
    assert "on 2 ranks, fp32 on the wire" in text and text.count("\nbulk ") == 1 and "pipelined" not in text


def test_rows_of_bf16_between_hosts(communities):
    """Messages have half the bytes. Sums are still exact, as benchmarks sum numbers that bfloat16 can hold."""
    found = {}
    for wire in ("fp32", "bf16"):
        run = [*RUN, communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, "--wire", wire, "--json"]
        result = run_by_hand(run, *({"PLAIT_HOST_ID": name} for name in "ab"))[0].json
        found[wire] = result["rows"][0]
        assert result["wire"] == found[wire]["wire"] == wire and found[wire]["error"] < 1e-5
    assert found["fp32"]["link_bytes"] == 2 * found["bf16"]["link_bytes"] > 0


@pytest.mark.parametrize("options,names", [
    (("--strategies", "cusparse"), ["cusparse", "--gpus"]), (("--strategies", "pipelined"), ["pipelined", "--gpus"]),
    (("--strategies", "none"), ["none"]), (("--wire", "bf16", "--strategies", "get"), ["strategy get", "fp32"]),
    (("--strategies", "get", "--dw", 8), ["--dw", "--gpus"]), (("--gpus", 2), ["--gpus", "--ranks"]),
    (("--transport", "nvshmem"), ["--transport", "--gpus"])])
def test_mistakes_on_ranks(plait, communities, options, names):
    plait.fails(USAGE, *RUN, communities, "--ranks", 2, *options, names=names)


def test_a_trace_needs_gpus(plait, communities):
    plait.fails(USAGE, *RUN, communities, "--ranks", 2, "--trace", plait.folder / "t.json", names=["--trace", "--gpus"])

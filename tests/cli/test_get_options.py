"""The settings of strategy get on GPUs as options: --ps, --remote-ps, --dist, --wpb, --get,
--interleave, --read-by, --read-with, --dw and --sums. tests/gpu/test_get_settings.py runs them on GPUs."""

import itertools

import numpy as np
import pytest

from program import USAGE, environment

NUMBERS = {"--ps": (512, True), "--remote-ps": (512, True), "--dist": (16, False), "--wpb": (16, False)}
WORDS = {"--get": ("blocking", "async"), "--interleave": ("on", "off"),
         "--read-by": ("thread", "warp", "block"), "--read-with": ("addresses", "nvshmem"), "--dw": ("auto", "1", "2", "4", "8", "16", "32"),
         "--sums": ("ordered", "atomic")}
GET = ["--strategy", "get", "--gpus", 2]
NVSHMEM = ["--transport", "nvshmem"]
COMMANDS = ("aggregate", "train", "infer", "plan", "bench aggregate")


def arguments_of(command, graph):
    """Returns a command that is right but for its strategy; its files need not be there."""
    return {"aggregate": ["aggregate", graph, "--features", "x.npy", "--out", "y.npy"],
            "train": ["train", graph], "plan": ["plan", graph, "--width", 8],
            "infer": ["infer", graph, "--checkpoint", "c.safetensors", "--out", "y.npy"],
            "bench aggregate": ["bench", "aggregate", graph]}[command]


@pytest.mark.parametrize("command", COMMANDS)
def test_help(plait, command):
    out = plait.ok(*command.split(), "--help").out
    assert out.count("\nStrategy get on GPUs:\n") == 1
    under = out.partition("\nStrategy get on GPUs:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in under.splitlines() if line.startswith("  --")] == [*NUMBERS, *WORDS]
    for default in ("16", "as --ps", "2", "4", "blocking", "on", "warp", "addresses", "auto", "ordered"):
        assert f"[default: {default}]" in under


def test_other_commands_have_none(plait):
    for command in (["tune"], ["bench", "zoo"], ["bench", "model"], ["partition"]):
        assert "--read-by" not in plait.ok(*command, "--help").out


OTHERS = [[], ["--strategy", "bulk", "--gpus", 2], ["--gpus", 2], ["--strategy", "get"],
          ["--strategy", "get", "--ranks", 2]]


def options_for(command, options):
    """Returns all options for plan and, as commands declare them by one function, one in three for others."""
    return list(options) if command == "plan" else list(options)[COMMANDS.index(command) % 3::3]


@pytest.mark.parametrize("command", COMMANDS)
def test_refused_without_the_strategy_on_gpus(plait, communities, command):
    others = [[], ["--strategies", "pipelined,cusparse"]] if command.startswith("bench") else OTHERS
    for option, other in zip(options_for(command, [*NUMBERS, *WORDS]), itertools.cycle(others)):
        plait.fails(USAGE, *arguments_of(command, communities), option, WORDS.get(option, ("3",))[0], *other,
                    names=[f"{option} does nothing in this run; it is read with"])


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_values_are_refused_by_their_range(plait, communities, command):
    used = ["--strategies", "bulk,get", "--gpus", 2] if command.startswith("bench") else GET
    run = [*arguments_of(command, communities), *used]
    for option in options_for(command, NUMBERS):
        most, none = NUMBERS[option]
        range_ = f"which is not 1 to {most}" + (" or none" if none else "")
        for bad in (str(most + 1), "0x8" if none else "none"):
            plait.fails(USAGE, *run, option, bad, names=[f"{option} is '{bad}', {range_}"])
    for option in options_for(command, WORDS):
        plait.fails(USAGE, *run, option, "luck", names=[option, "luck", *WORDS[option]])


def test_all_values_are_taken(plait, communities):
    run = arguments_of("plan", communities)
    for option, (most, none) in NUMBERS.items():
        for good in (1, most, *(("none",) if none else ())):
            plait.ok(*run, *GET, option, good)
    for option, words in WORDS.items():
        for word in words:
            plait.ok(*run, *GET, option, word, *(NVSHMEM if word == "nvshmem" else []))


def sums(found):
    """Returns the bytes of rank 0 for groups and for their sums, of plait plan."""
    by_name = {item["name"]: item["bytes"][0] for item in found["arrays"]}
    return by_name["neighbour groups"], by_name["sums of neighbour groups"]


def test_plan_counts_the_groups(plait, tmp_path):
    """100 vertices read 40 others each: a row of n edges is cut into n / ps groups, and one more for
    its remote edges."""
    vertices, degree = 100, 40
    row = np.repeat(np.arange(vertices), degree)
    column = (row + 1 + np.tile(np.arange(degree), vertices)) % vertices
    lines = [f"{c} {r}" for r, c in zip(row, column)]
    (tmp_path / "g.txt").write_text("\n".join(lines) + "\n")

    def planned(*options):
        return sums(plait.json("plan", tmp_path / "g.txt", "--width", 4, *GET, *options))

    standard = planned()
    assert planned("--ps", 16) == standard and planned("--dist", 16, "--wpb", 16) == standard
    for ps, groups in ((1, 40), (8, 5), (39, 2), (512, 1), ("none", 1)):
        for options in (("--ps", ps), ("--remote-ps", ps, "--ps", "none")):
            assert planned(*options)[1] == vertices // 2 * (groups + 1) * 16, options
    assert planned("--ps", 1)[0] > standard[0] > planned("--ps", "none")[0]
    assert planned("--sums", "atomic") == (standard[0], 0) and standard[1] > 0


def test_few_dimension_workers_are_for_warps(plait, communities):
    run = [*arguments_of("plan", communities), *GET]
    for option in (["--dw", 2, "--read-by", "thread"], ["--read-by", "block", "--dw", 1]):
        plait.fails(USAGE, *run, *option, names=["--read-by warp", "--dw of 4 or more"])
    plait.ok(*run, "--dw", 4, "--read-by", "thread")
    by_nvshmem = [*run, *NVSHMEM, "--read-with", "nvshmem"]
    plait.fails(USAGE, *by_nvshmem, "--dw", 2, names=["--read-with addresses", "--dw of 4 or more"])
    plait.ok(*by_nvshmem, "--dw", 4)


@pytest.mark.parametrize("command", COMMANDS)
def test_device_functions_need_the_memory_of_nvshmem(plait, communities, command):
    used = ["--strategies", "bulk,get", "--gpus", 2] if command.startswith("bench") else GET
    run = [*arguments_of(command, communities), *used, "--read-with", "nvshmem"]
    for transport in ([], ["--transport", "cuda"]):
        plait.fails(USAGE, *run, *transport, names=["--read-with nvshmem", "add --transport nvshmem"])


def test_device_functions_that_cannot_run_are_one_line(plait, communities):
    """Without a GPU, or without these functions in the build, nothing is read before the refusal."""
    run = ["aggregate", communities, "--features", "x.npy", "--out", "y.npy", *GET, *NVSHMEM,
           "--read-with", "nvshmem"]
    failed = plait.fails(USAGE, *run, env=environment(CUDA_VISIBLE_DEVICES=""))
    assert any(words in failed.err for words in ("asks for 2 GPUs", "cannot read by NVSHMEM's device functions")), failed


def test_explanation_counts_the_batches_of_device_functions(plait, communities):
    run = [*arguments_of("plan", communities)[:2], "--width", 64, *GET, *NVSHMEM, "--explain"]
    lines = {with_: next(line for line in plait(*run, "--read-with", with_).err.splitlines() if "  here" in line)
             for with_ in ("addresses", "nvshmem")}
    assert " 0 bytes of shared memory" in lines["addresses"] and " 16384 bytes of" in lines["nvshmem"]

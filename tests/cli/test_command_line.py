"""The command line itself: help, version, and options that do not exist or make no sense."""

import re
import resource

import numpy as np
import pytest

from program import DOES_NOT_FIT, FAILED, RIGHT, USAGE, environment

COMMANDS = ("doctor", "info", "generate", "convert", "partition", "plan", "aggregate", "train",
            "infer", "tune", "study", "bfs", "components", "sssp", "kcore", "pagerank", "triangles",
            "walk", "louvain", "leiden")
KINDS = ("dcsbm", "rmat", "grid", "star", "ring")


@pytest.mark.parametrize("command", [[], *[[c] for c in COMMANDS],
                                     *[["generate", k] for k in KINDS]])
def test_help(plait, command):
    out = plait.ok(*command, "--help").out
    assert "Usage" in out or "plait" in out
    if len(command) == 1:
        assert f"plait {command[0]}" in out and "--json" in out
        assert "Examples:" in out or command == ["doctor"]
    if not command:
        assert all(name in out for name in COMMANDS)


def test_words_that_are_no_command(plait):
    plait.fails(USAGE, "louvian", "graph.el", names=["there is no command 'louvian'"])
    plait.fails(USAGE, "bfs", "graph.el", "twice", "--sources", names=["unexpected arguments: twice --sources"])


LONG_COMMANDS = [["plan"], ["aggregate"], ["train"], ["infer"], ["tune"], ["bench", "aggregate"],
                 ["bench", "model"], ["study"], ["bfs"], ["components"], ["sssp"], ["kcore"],
                 ["pagerank"], ["triangles"], ["walk"], ["louvain"], ["leiden"]]


@pytest.mark.parametrize("command", [*[[c] for c in COMMANDS], *[["generate", k] for k in KINDS],
                                     ["report"], ["completion"], ["bench", "aggregate"], ["bench", "model"]])
def test_help_has_plain_types(plait, command):
    """There are no names of C++ types or of checks; lines fit a page; long commands have headings."""
    options = plait.ok(*command, "--help").out.partition("Examples:")[0]
    assert not re.search(r"TEXT|INT|FLOAT|NONNEGATIVE|POSITIVE| in \[", options), options
    assert all(len(line) <= 100 for line in options.splitlines()[2:])
    headings = re.findall(r"^(\w.*):$", options, re.MULTILINE)
    if command in LONG_COMMANDS:
        assert "Options" not in headings and headings[-1] == "Output", headings


def test_help_of_train(plait):
    """Graph, model and number of processors come first; ranges and defaults are in words."""
    text = plait.ok("train", "--help").out
    first = [text.index(name) for name in ("  graph PATH", "  --model", "  --ranks", "  --gpus")]
    assert first == sorted(first) and first[-1] < min(
        text.index(name) for name in ("--layers", "--epochs", "--strategy", "--json"))
    assert "--layers N (1 to 64)" in text and "[default: by model]" in text
    assert "--dropout X (0 to 0.99)" in text and "--model {gcn,mlp,sage,gin,gat,gatv2,transformer}" in text


def test_width_is_also_called_dim(plait, communities):
    for command in (["plan", communities], ["partition", communities, "--partition", "edges"]):
        by_name = [plait.json(*command, name, 24) for name in ("--width", "--dim")]
        assert [result["width"] for result in by_name] == [24, 24]


def test_version(plait):
    name, version = plait.ok("--version").out.split()
    assert name == "plait" and len(version.split(".")) == 3


def test_doctor(plait):
    found = plait.json("doctor")
    findings = {f["what"]: f for f in found["findings"]}
    assert {"plait", "processor", "memory", "shared memory", "libtorch", "GPU engine",
            "GPUs"} <= set(findings)
    assert found["missing"] == sum(not f["ok"] for f in findings.values())
    assert all(f["ok"] == (f["remedy"] == "") for f in findings.values())
    for gpu in found["gpus"]:
        assert 0 < gpu["free"] <= gpu["memory"] and len(gpu["reaches"]) == len(found["gpus"])
        assert gpu["link"] and (gpu["link"].startswith("NVLink") == (gpu["nvlinks"] > 0))
    assert sum(what.startswith("GPU ") for what in findings) == 1 + len(found["gpus"])
    text = plait.ok("doctor").out
    assert all(what in text for what in findings)


def test_doctor_without_gpus(plait):
    """A machine without GPUs lacks nothing; a build for GPUs names the libraries that it has found."""
    found = plait.json("doctor", env=environment(CUDA_VISIBLE_DEVICES=""))
    findings = {f["what"]: f for f in found["findings"]}
    assert found["gpus"] == [] and findings["GPUs"]["found"].startswith("none")
    assert findings["GPUs"]["ok"] and not {"GPU 0", "links", "peer access"} & set(findings)
    built = findings["GPU engine"]["found"] == "built in"
    assert built or findings["GPU engine"]["found"] == "built without the GPU engine"
    assert all((library in findings) == built for library in ("NCCL", "cuSPARSE", "NVSHMEM"))


@pytest.mark.parametrize("arguments,names", [
    ([], ["a command is missing"]),
    (["frobnicate"], ["frobnicate"]),
    (["--frobnicate"], ["--frobnicate"]),
    (["info"], ["graph"]),
    (["info", "GRAPH", "--frobnicate"], ["--frobnicate"]),
    (["info", "GRAPH", "second"], ["second"]),
    (["partition", "GRAPH", "--partition", "cake"], ["cake", "metis"]),
    (["partition", "GRAPH", "--ranks", "0"], ["--ranks", "0", "4096"]),
    (["partition", "GRAPH", "--dim", "-3"], ["-3"]),
    (["plan", "GRAPH"], ["--width"]),
    (["plan", "GRAPH", "--width", "wide"], ["--width", "wide"]),
    (["plan", "GRAPH", "--dim", "-1"], ["-1"]),
    (["plan", "GRAPH", "--dim", "8", "--strategy", "luck"], ["luck", "bulk"]),
    (["train", "GRAPH", "--model", "gpt"], ["gpt", "gcn, mlp, sage, gin, gat"]),
    (["train", "GRAPH", "--model", "gat", "--hidden", "10", "--heads", "4"], ["10", "multiple"]),
    (["train", "GRAPH", "--model", "gat", "--hidden", "9", "--heads", "2", "--ranks", "2"], ["9"]),
    (["train", "GRAPH", "--model", "gat", "--heads", "0"], ["--heads", "0"]),
    (["train", "GRAPH", "--model", "gat", "--output-heads", "0"], ["--output-heads", "0"]),
    (["train", "GRAPH", "--norm", "cake"], ["cake", "batch"]),
    (["train", "GRAPH", "--model", "sage", "--aggregation", "median"], ["median", "mean", "max"]),
    (["train", "GRAPH", "--activation", "tanh"], ["tanh", "relu", "elu"]),
    (["train", "GRAPH", "--ranks", "-2"], ["--ranks", "-2"]),
    (["train", "GRAPH", "--ranks", "many"], ["--ranks", "many"]),
    (["train", "GRAPH", "--timeout", "0"], ["--timeout"]),
    (["train", "GRAPH", "--epochs", "0"], ["--epochs", "0"]),
    (["train", "GRAPH", "--layers", "0"], ["--layers", "0"]),
    (["train", "GRAPH", "--hidden", "-1"], ["--hidden", "-1"]),
    (["train", "GRAPH", "--hidden", "1.5"], ["--hidden", "'1.5' is not a whole number"]),
    (["train", "GRAPH", "--hidden", "08"], ["--hidden", "'08' is not a whole number"]),
    (["train", "GRAPH", "--ranks", "2,3"], ["--ranks", "'2,3' is not a whole number"]),
    (["train", "GRAPH", "--dropout", "1"], ["--dropout", "1"]),
    (["train", "GRAPH", "--dropout", "nan"], ["dropout", "nan"]),
    (["train", "GRAPH", "--lr", "-1"], ["-1"]),
    (["train", "GRAPH", "--weight-decay", "-1"], ["-1"]),
    (["train", "GRAPH", "--lr", "1e38"], ["--lr", "1e38"]),
    (["train", "GRAPH", "--weight-decay", "1e38", "--ranks", "2"], ["--weight-decay", "1e38"]),
    *((["train", "GRAPH", option, value], [f"{option}: '{value}' is not a finite number of 0 or more"])
      for option in ("--lr", "--weight-decay", "--dropout", "--timeout", "--gpu-timeout")
      for value in ("inf", "nan", "-0.5", "1e999", "0x1p3", "much")),
    *((["bench", "model", "GRAPH", "--dropout", value], [f"--dropout: '{value}' is not a finite number of 0 or more"])
      for value in ("inf", "-inf", "nan")),
    (["train", "GRAPH", "--lr", "1e38"], ["--lr: 1e38 is not in 0.."]),
    (["train", "GRAPH", "--timeout", "0.1"], ["--timeout: 0.1 is not in 0.5..86400"]),
    (["train", "GRAPH", "--dropout", "1"], ["--dropout: 1 is not in 0..0.99"]),
    (["train", "GRAPH", "--epochs", "1e3"], ["--epochs: '1e3' is not a whole number"]),
    (["train", "GRAPH", "--layers", "65"], ["--layers: 65 is not in 1..64"]),
    (["tune", "GRAPH", "--widths", "16,-1"], ["--widths: '-1' is not a whole number"]),
    (["bench", "zoo", "--scale", "2"], ["--scale: 2 is not in 1e-06..1"]),
    *((["infer", "GRAPH", "--checkpoint", "c", "--out", "y.npy", "--memory-limit", size],
       [f"--memory-limit: '{size}' is not a size in bytes above 0 and below 2^64"])
      for size in ("-1G", "-5", "0", "0G", "1.5G", "G", "1X", "inf", "1iB", "17179869184G", "1 2", "1GG")),
    (["train", "GRAPH", "--normalize", "columns"], ["columns", "rows"]),
    (["train", "GRAPH", "--split", "1"], ["split 1", "0..0"]),
    (["train", "GRAPH", "--strategy", "luck"], ["luck", "bulk"]),
    (["train", "GRAPH", "--partition", "cake"], ["cake", "metis"]),
    (["train", "GRAPH", "--partition", "cake", "--ranks", "2"], ["cake", "metis"]),
    (["train", "GRAPH", "--strategy", "pipelined", "--ranks", "2"], ["pipelined", "--gpus"]),
    (["plan", "GRAPH", "--dim", "8", "--strategy", "partial"], ["partial", "--gpus"]),
    (["train", "GRAPH", "--strategy", "paged", "--ranks", "2"], ["paged", "--gpus"]),
    (["train", "GRAPH", "--transport", "nvshmem", "--ranks", "2"], ["nvshmem", "--gpus"]),
    (["train", "GRAPH", "--transport", "vmm", "--gpus", "1"], ["vmm", "nvshmem"]),
    (["bench", "aggregate", "GRAPH", "--transport", "pigeon"], ["pigeon", "nvshmem"]),
    (["bench"], ["subcommand is required"]),
    (["bench", "zoo", "unicorn"], ["unicorn", "tiny-star"]),
    (["bench", "zoo", "--scale", "0"], ["--scale"]),
    (["generate", "dcsbm", "--scale", "0.5", "-o", "g.plait"], ["--scale", "--like"]),
    (["bench", "aggregate", "GRAPH", "--strategies", "luck"], ["luck", "pipelined"]),
    (["bench", "aggregate", "GRAPH", "--wire", "fp8"], ["--wire", "fp8"]),
    (["train", "GRAPH", "--gpus", "0"], ["--gpus", "0"]),
    (["train", "GRAPH", "--gpus", "1", "--ranks", "2"], ["--gpus", "--ranks"]),
    (["infer", "GRAPH", "--out", "y.npy"], ["--checkpoint"]),
    (["train", "GRAPH", "--epochs", "3", "--epochs", "4"], ["--epochs was given more than once"]),
    (["train", "GRAPH", "--sampled", "--fanout=", "--quiet"], ["--fanout", "its value is empty"]),
    (["train", "GRAPH", "--sampled", "--fanout", ""], ["--fanout", "its value is empty"]),
    (["bench", "aggregate", "GRAPH", "--widths", "16,0"], ["--widths", "0"]),
])
def test_wrong_usage(plait, communities, arguments, names):
    plait.fails(USAGE, *[communities if a == "GRAPH" else a for a in arguments], names=names)


LONG = "9" * 309
NUMBERS = [["train", "GRAPH", option] for option in (
    "--timeout", "--gpu-timeout", "--lr", "--weight-decay", "--dropout", "--seed", "--ranks")] + [
    ["generate", "dcsbm", "-o", "g.plait", "--leaving"],
    ["bench", "aggregate", "GRAPH", "--widths"],
    ["infer", "GRAPH", "--checkpoint", "c", "--out", "y.npy", "--memory-limit"]]


@pytest.mark.parametrize("arguments", NUMBERS, ids=lambda arguments: arguments[-1])
def test_what_is_no_number_for_any_option(plait, communities, arguments):
    """The command line refuses it before a rank starts or a file is read; a text that is too long
    for a number is not printed."""
    arguments = [communities if a == "GRAPH" else a for a in arguments]
    more = ("inf", "-inf", "1e999", "x", "", f"0.{LONG}") if arguments[-1] == "--lr" else ()
    for value in ("nan", LONG, *more):
        result = plait.fails(USAGE, *arguments, value, names=[arguments[-1], "plait --help"])
        assert len(result.err) < 250, result


@pytest.mark.parametrize("value", ["18446744073709551616", "9" * 38, "010", "0x10", "1e3", "+1"])
def test_whole_numbers(plait, communities, value):
    """They are decimal digits: none is taken for another number."""
    plait.fails(USAGE, "train", communities, "--seed", value, names=["--seed", value])


def test_largest_seed(plait, communities):
    seed = 2**64 - 1
    assert plait.json("train", communities, "--epochs", 1, "--seed", seed)["seed"] == seed


INFER = ["infer", "GRAPH", "--checkpoint", "c", "--out"]


@pytest.mark.parametrize("arguments", [
    ["info"], ["convert", "GRAPH"], ["convert", "GRAPH", "g.mtx", "--features"],
    ["convert", "GRAPH", "g.mtx", "--out-format"], ["generate", "ring", "-o"],
    ["train", "GRAPH", "--checkpoint"], ["train", "GRAPH", "--resume"], INFER, INFER[:3],
    [*INFER, "y.npy", "--memory-limit", "1G", "--work"], ["report"]],
    ids=" ".join)
def test_empty_values(plait, communities, arguments):
    """They are refused by every option and argument that takes a name."""
    arguments = [communities if a == "GRAPH" else a for a in arguments]
    plait.fails(USAGE, *arguments, "", names=["its value is empty"])


@pytest.mark.parametrize("arguments", [
    ["partition", "GRAPH", "--partition", "metis,"], ["partition", "GRAPH", "--partition=,metis"],
    ["partition", "GRAPH", "--predict", "16,,32"], ["partition", "--predict", "16", ",", "GRAPH"],
    ["tune", "GRAPH", "--widths=,"], ["bench", "model", "GRAPH", "--strategies", "bulk,"],
    ["plan", "--store", "--width", 4, "--embeddings", "1000,"]], ids=str)
def test_empty_items_of_lists(plait, communities, arguments):
    arguments = [communities if a == "GRAPH" else a for a in arguments]
    [option] = (a.partition("=")[0] for a in map(str, arguments)
                if a.startswith("--") and a.partition("=")[0] not in ("--store", "--width"))
    plait.fails(USAGE, *arguments, names=[option, "has an empty item"])


@pytest.mark.parametrize("files", [5, 10, 20])
def test_too_few_files_may_be_open(plait, communities, files):
    """With the limit of ulimit -n, ranks would wait for connections that nobody can accept."""
    plait.fails(FAILED, "train", communities, "--ranks", 2, names=["ulimit -n", f"open {files}"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_reader_warns_once(plait, tmp_path, communities_npz, ranks, quiet):
    """It does not warn once per rank, and not with --quiet."""
    graph = tmp_path / "g.npz"
    arrays = dict(np.load(communities_npz))
    for name in ("x_data", "x_indices", "x_indptr", "x_shape"):
        arrays.pop(name, None)
    np.savez(graph, **arrays | {"x": np.ones((600, 0), np.float32)})
    result = plait("train", graph, "--ranks", ranks, *quiet)
    assert result.code == USAGE and "no features" in result.lines[-1]
    assert [line.startswith("plait: warning: ") for line in result.lines] == (
        [False] if quiet else [True, False]), result


def test_shared_memory_counts_as_a_file(plait, communities):
    """The limit of ulimit -f counts it."""
    limit = 4096
    plait.fails(DOES_NOT_FIT, "train", communities, "--ranks", 2, names=["shared memory",
                                                                         "ulimit -f"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def test_a_limit_on_open_files_that_may_be_raised(plait, communities):
    assert plait("train", communities, "--epochs", 2, "--ranks", 2, preexec_fn=lambda:
                 resource.setrlimit(resource.RLIMIT_NOFILE, (10, 1024))).code == RIGHT


@pytest.mark.parametrize("ranks,words", [(1, "1 rank:"), (2, "2 ranks:")])
def test_one_is_no_plural(plait, tmp_path, communities, ranks, words):
    assert words in plait.ok("train", communities, "--epochs", 1, "--ranks", ranks).out
    np.save(tmp_path / "x.npy", np.ones((600, 2), np.float32))
    assert words.replace(":", " in") in plait.ok("aggregate", communities, "--features", tmp_path /
                                                 "x.npy", "--out", tmp_path / "y.npy", "--ranks",
                                                 ranks).out


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("command", ["train", "infer", "aggregate", "bench", "bfs"])
def test_more_gpus_than_there_are(plait, tmp_path, communities, command, gpus):
    """Builds with and without the GPU engine refuse this, in one line however many ranks start."""
    y = ["--out", tmp_path / "y.npy"]
    words = {"train": ["train", communities],
             "infer": ["infer", communities, "--checkpoint", "c.safetensors", *y],
             "aggregate": ["aggregate", communities, "--features", "x.npy", *y],
             "bench": ["bench", "aggregate", communities], "bfs": ["bfs", communities]}
    plait.fails(USAGE, *words[command], "--gpus", gpus,
                env=environment(CUDA_VISIBLE_DEVICES=""), names=[f"asks for {gpus} GPU"])


def test_order_of_options_does_not_matter(plait, communities):
    assert plait.json("info", "--json", communities) == plait.json("info", communities)


@pytest.mark.parametrize("variables,names", [
    ({"RANK": "0"}, ["RANK", "WORLD_SIZE"]),
    ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
     ["RANK", "'2'", "0..1"]),
    ({"RANK": "0", "WORLD_SIZE": "two"}, ["WORLD_SIZE", "'two'"]),
    ({"RANK": "0", "WORLD_SIZE": "2"}, ["MASTER_ADDR"]),
    ({"OMPI_COMM_WORLD_RANK": "-1", "OMPI_COMM_WORLD_SIZE": "2"}, ["OMPI_COMM_WORLD_RANK", "'-1'"]),
])
def test_wrong_worlds(plait, communities, variables, names):
    plait.fails(USAGE, "train", communities, env=environment(**variables), names=names)


@pytest.mark.parametrize("command", [["info"], ["train", "--ranks", 2]])
def test_more_threads_than_there_can_be(plait, communities, command):
    plait.fails(USAGE, command[0], communities, *command[1:], names=["OMP_NUM_THREADS", "100000"],
                env=environment(OMP_NUM_THREADS="100000"))


@pytest.mark.parametrize("variable,value", [
    ("PLAIT_INTERFACE", "bogus0"), ("PLAIT_INTERFACE", "203.0.113.7"), ("PLAIT_INTERFACE", "::x"),
    ("PLAIT_GPU_TIMEOUT_MS", "-5")])
def test_settings_of_ranks_that_make_no_sense(plait, communities, variable, value):
    """One line refuses them, before a rank starts."""
    plait.fails(USAGE, "train", communities, "--ranks", 3, names=[variable, f"'{value}'"],
                env=environment(**{variable: value}))


def test_train_needs_features_labels_and_a_split(plait, tmp_path):
    plait.ok("generate", "ring", "--vertices", 9, "-o", tmp_path / "ring.plait")
    for ranks in (1, 2):
        plait.fails(USAGE, "train", tmp_path / "ring.plait", "--ranks", ranks,
                    names=["ring", "features"])


@pytest.mark.parametrize("options", [["--hidden", 65536, "--layers", 64], ["LABEL"]])
@pytest.mark.parametrize("ranks", [1, 2])
def test_training_that_does_not_fit(plait, tmp_path, options, ranks):
    """Layers, or as many classes as a large label makes, would take terabytes: they are refused with
    the figures before they are allocated. The limit on addresses is for the machine's sake."""
    ids = np.arange(100)
    y = ids % 5
    if options == ["LABEL"]:
        y[7], options = 2**31 - 3, ["--hidden", 4096]
    np.savez(tmp_path / "g.npz", edge_index=np.stack([ids, (ids + 1) % 100]), y=y, train=ids[:50],
             x=np.ones((100, 4), np.float32), val=ids[50:70], test=ids[70:])
    limit = 12 << 30
    plait.fails(DOES_NOT_FIT, "train", tmp_path / "g.npz", *options, "--ranks", ranks,
                names=["needs ", "iB", "free"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def test_without_progress_on_a_file(plait, tmp_path, communities):
    """Progress is for terminals: stderr that is none stays empty, with and without --quiet."""
    for quiet in ([], ["--quiet"]):
        assert plait("train", communities, "--epochs", 2, *quiet).err == ""
    (tmp_path / "bad.txt").write_text("1\n")
    plait.fails(FAILED, "info", tmp_path / "bad.txt", "--quiet", names=["line 1"])
    assert plait("info", communities, "--quiet").code == RIGHT

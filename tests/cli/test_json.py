"""--json of every command: the fields and types that docs/json.md lists, no others."""

import json
import os
import re

import numpy as np
import pytest

import program
from container_file import container, triangle
from program import DOES_NOT_FIT, FAILED, INTERRUPTED, RIGHT, USAGE, Plait

TYPES = {"integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
         "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "text": lambda v: isinstance(v, str),
         "boolean": lambda v: isinstance(v, bool),
         "null": lambda v: v is None}


def documented():
    """Returns, by command, {path: (types, whether it is optional)}, as the tables say."""
    commands, fields = {}, None
    for line in (program.CHECKOUT / "docs/json.md").read_text().splitlines():
        if line.startswith("## "):
            fields = commands[line.removeprefix("## plait ")] = {}
        elif fields is not None and (row := re.match(r"\| `([^`]+)` \| ([^|]+) \|", line)):
            kinds, _, optional = row[2].strip().partition(", ")
            assert optional in ("", "optional") and row[1] not in fields, line
            fields[row[1]] = ([TYPES[kind] for kind in kinds.split(" or ")], bool(optional))
    return commands


DOCUMENTED = documented()
PROFILE = DOCUMENTED.pop("## `--profile`")


def leaves(value, path=""):
    """Yields every value that is no object and no list, with its path; an empty list has none."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path + "[]")
    else:
        yield path, value


def empty_lists(value, path=""):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from empty_lists(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        if not value:
            yield path + "[]"
        for inner in value:
            yield from empty_lists(inner, path + "[]")


def check(command, found):
    fields = DOCUMENTED[command] | (PROFILE if "profile" in found else {})
    met = set()
    for path, value in leaves(found):
        assert path in fields, f"{path} is not in docs/json.md"
        assert any(fits(value) for fits in fields[path][0]), (path, value)
        met.add(path)
    empty = tuple(empty_lists(found))
    for path, (_, optional) in fields.items():
        assert optional or path in met or path.startswith(empty), f"{path} is documented only"
    assert found["schema"] == 1


@pytest.fixture(scope="module")
def files(communities, tmp_path_factory):
    """Makes the files that commands read, and the runs of all commands."""
    folder = tmp_path_factory.mktemp("json")
    plait = Plait(folder)
    np.save(folder / "x.npy", np.ones((600, 3), np.float32))
    plait.ok("train", communities, "--epochs", 2, "--checkpoint", folder / "c.safetensors")
    (folder / "run.json").write_text(plait.ok("train", communities, "--epochs", 2, "--json").out)
    plait.ok("generate", "ring", "-o", folder / "ring.mtx")
    (folder / "weighted.el").write_text("0 1 2.5\n1 2 1\n2 0 4\n")
    return folder


def runs(communities, folder):
    """Returns (command of docs/json.md, arguments), in all forms that print other fields."""
    ring, out = folder / "ring.mtx", folder / "out"
    aggregate = ["aggregate", communities, "--features", folder / "x.npy", "--out", f"{out}.npy"]
    infer = ["infer", communities, "--checkpoint", folder / "c.safetensors", "--out", f"{out}.npy"]
    yield "doctor", ["doctor"]
    yield "doctor", ["doctor", "--measure", "--ranks", 2]
    for graph in (communities, ring):
        yield "info", ["info", graph]
        yield "info", ["info", graph, "--communities"]
        yield "partition", ["partition", graph, "--ranks", 3]
        yield "partition", ["partition", graph, "--gpus", 3, "--predict", "8,100"]
    for kind in (["dcsbm", "--vertices", 100, "--edges", 400], ["star"], ["grid"],
                 ["rmat", "--vertices", 64, "--edges", 100]):
        yield "generate", ["generate", *kind, "-o", f"{out}.plait"]
    yield "convert", ["convert", ring, f"{out}.plait"]
    for options in ([], ["--method", "rcm"], ["--undo"]):
        yield "reorder", ["reorder", communities, f"{out}.plait", *options]
    yield "plan", ["plan", communities, "--dim", 8, "--ranks", 2, "--train"]
    yield "plan", ["plan", communities, "--dim", 8, "--gpus", 2]
    yield "aggregate", [*aggregate, "--ranks", 2]
    yield "infer", infer
    for options in ([], ["--ranks", 2], ["--model", "mlp", "--ranks", 3], ["--model", "gat"]):
        yield "train", ["train", communities, "--epochs", 3, *options]
    for options in ([], ["--dry-run"]):
        yield "tune", ["tune", communities, "--ranks", 2, "--widths", 8, "--repetitions", 1, *options]
    for options in (["--ranks", 2], []):
        yield "train", ["train", communities, "--epochs", 2, *options, "--profile"]
    yield "info", ["info", communities, "--profile"]
    for options in ([], ["--ranks", 2, "--training", "--width", 8]):
        yield "bench model", ["bench", "model", communities, "--repetitions", 1, *options]
    yield "bench aggregate", ["bench", "aggregate", communities, "--ranks", 2, "--repetitions", 1]
    yield "bench messages", ["bench", "messages", communities, "--ranks", 2, "--repetitions", 1]
    for options in ([], ["--ranks", 2, "--verify", "-o", f"{out}.csv"]):
        yield "bfs", ["bfs", communities, *options]
        yield "components", ["components", communities, *options]
        yield "kcore", ["kcore", communities, *options]
        yield "pagerank", ["pagerank", communities, *options]
        yield "triangles", ["triangles", communities, *options]
        yield "louvain", ["louvain", communities, *options]
        yield "leiden", ["leiden", communities, *options]
        yield "sssp", ["sssp", folder / "weighted.el", *options]
        yield "walk", ["walk", communities, *options]
    yield "train", ["train", communities, "--epochs", 2, "--sampled"]
    yield "plan", ["plan", "--store", "--embeddings", "1000,30", "--width", 8, "--split", "table", "--ranks", 2]
    yield "study", ["study", "latency", "--repetitions", 1]
    for study in (["nccl"], ["renumbering"], ["split", "--ranks", 2], ["epochs"], ["gathers"], ["memory"]):
        yield "study", ["study", *study, communities, "--repetitions", 1, "--width", 8]
    yield "study", ["study", "row-bytes", "--repetitions", 1]
    yield "study --list", ["study", "--list"]
    yield "report", ["report", folder / "run.json", "-o", f"{out}.html"]
    for shell in ("bash", "zsh", "fish"):
        yield "completion", ["completion", shell]


def test_every_command(files, communities):
    """Each prints one line on stdout and nothing on stderr."""
    plait, met = Plait(files), set()
    for command, arguments in runs(communities, files):
        result = plait.ok(*arguments, "--json")
        assert result.out.count("\n") == 1, result
        check(command, json.loads(result.out))
        met.add(command)
    assert met == set(DOCUMENTED) - {"bench zoo"}


def test_bench(plait, communities):
    """This needs a GPU."""
    if not plait.json("doctor")["gpus"]:
        pytest.skip("no GPU")
    for strategies in ("pipelined,bulk,cusparse", "get"):
        check("bench aggregate", plait.json("bench", "aggregate", communities, "--strategies",
                                            strategies, "--repetitions", 2))
    check("bench zoo", plait.json("bench", "zoo", "tiny-grid", "tiny-star", "--repetitions", 2))
    check("study", plait.json("study", "group-size", communities, "--gpus", 1, "--repetitions", 2))


def test_all_commands_are_documented(plait):
    """Completion knows all commands; bench has words of its own."""
    script = plait.ok("completion", "fish").out
    names = re.findall(r"complete -c plait -n '__plait_at ' -a (\S+)", script)
    assert len(names) >= 12
    bench = {name for name in DOCUMENTED if name.startswith("bench ")}
    assert set(names) - {"bench"} | bench | {"study --list"} == set(DOCUMENTED)


HOSTILE = [b"caf\xe9", b"\x1b[31mred", b"\xc2\x9b31m", b"a\nb"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_files(plait, tmp_path, communities, name):
    """For any bytes, the output is one line of ASCII that parses, and a graph takes the text in its
    file's name for its own."""
    graph, again = (tmp_path / os.fsdecode(name + ending) for ending in (b".mtx", b".npz"))
    assert plait.ok("convert", communities, graph, "--quiet").out.removesuffix("\n").isprintable()
    for arguments in (["info", graph], ["convert", graph, again], ["partition", graph]):
        result = plait.ok(*arguments, "--json")
        line = result.out.removesuffix("\n")
        assert line.isascii() and line.isprintable() and json.loads(line)["schema"] == 1
    assert all(map(str.isprintable, plait.ok("info", graph).out.split("\n")))
    graph.unlink()
    line = plait.fails(FAILED, "info", graph, names=["cannot be opened"]).lines[0]
    assert line.isprintable()


@pytest.mark.parametrize("name,known", [(b"caf\xe9", False), (b"\xc2\x9b31m", False),
                                        (b"\x1b[31m", False), ("gr\u00e4ph".encode(), True)])
def test_names_in_files(plait, tmp_path, name, known):
    """A .plait file names its graph itself."""
    path = tmp_path / "g.plait"
    path.write_bytes(container(triangle(), name=name))
    if known:
        assert plait.json("info", path)["name"].encode() == name
    else:
        plait.fails(FAILED, "info", path, "--json", names=[path, "the name holds"])


@pytest.mark.parametrize("code,arguments", [
    (FAILED, ["info", "missing.plait"]),
    (FAILED, ["train", "missing.plait", "--ranks", 2]),
    (USAGE, ["train", "GRAPH", "--split", 7]),
    (USAGE, ["info"]),
    (USAGE, ["partition", "GRAPH", "--partition", "cake"]),
    (DOES_NOT_FIT, ["train", "GRAPH", "--hidden", 65536, "--layers", 64]),
])
def test_failures_print_no_json(plait, communities, code, arguments):
    arguments = [communities if a == "GRAPH" else a for a in arguments]
    assert plait.fails(code, *arguments, "--json").out == ""


def test_plan_that_does_not_fit_tells_it(plait, communities):
    result = plait("plan", communities, "--dim", 10**12, "--json")
    assert result.code == DOES_NOT_FIT and len(result.lines) == 1
    check("plan", result.json)
    assert result.json["fits"] is False


def test_exit_codes_are_documented():
    table = re.findall(r"^\| (\d+) \|", (program.CHECKOUT / "docs/json.md").read_text(),
                       re.MULTILINE)
    assert {int(code) for code in table} == {RIGHT, FAILED, USAGE, 3, DOES_NOT_FIT, INTERRUPTED}

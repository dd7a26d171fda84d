"""Checkpoints of plait train: training goes on from them after an end or an interruption; other
programs read them; they are refused if they are damaged or of another model."""

import json
import os
import signal
import struct

import numpy as np
import pytest
import safetensors.numpy
import xxhash

import program
from program import FAILED, INTERRUPTED, USAGE
from training import SCHEMES, check_same_curve, history_of, metadata_of


@pytest.fixture(scope="module")
def trained(communities, tmp_path_factory):
    """Returns the bytes of a checkpoint of two epochs."""
    path = tmp_path_factory.mktemp("trained") / "c.safetensors"
    program.Plait(path.parent).ok("train", communities, "--epochs", 2, "--checkpoint", path)
    return path.read_bytes()


@pytest.mark.parametrize("ranks", [["--ranks", 1], ["--ranks", 3, "--partition", "hash"]])
def test_resume_goes_on_exactly(plait, tmp_path, communities, ranks):
    """Curve, accuracies and weights equal the results of a run without a break."""
    names = ("whole", "first", "second")
    whole, first, second = (tmp_path / f"{name}.safetensors" for name in names)
    train = ["train", communities, *ranks]
    wanted = plait.json(*train, "--epochs", 40, "--checkpoint", whole)
    begun = plait.json(*train, "--epochs", 15, "--checkpoint", first)
    assert begun["loss"] == wanted["loss"][:15]
    done = plait.json(*train, "--epochs", 40, "--resume", first, "--checkpoint", second)
    for name in ("loss", "val_accuracy_by_epoch", "best_epoch", "test_accuracy", "epochs"):
        assert done[name] == wanted[name], name
    one, other = safetensors.numpy.load_file(whole), safetensors.numpy.load_file(second)
    assert set(one) == set(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], name)


def test_resume_on_another_number_of_ranks(plait, tmp_path, communities):
    checkpoint = tmp_path / "c.safetensors"
    wanted = plait.json("train", communities, "--epochs", 60)["loss"]
    plait.ok("train", communities, "--epochs", 20, "--ranks", 2, "--checkpoint", checkpoint)
    for ranks, scheme in [(1, "edges"), (3, SCHEMES[2])]:
        found = plait.json("train", communities, "--epochs", 60, "--ranks", ranks, "--partition",
                           scheme, "--resume", checkpoint)["loss"]
        check_same_curve(found, wanted)


def test_resume_over_the_same_file(plait, tmp_path, communities):
    checkpoint = tmp_path / "c.safetensors"
    for epochs in (5, 10):
        resume = ["--resume", checkpoint] * (epochs > 5)
        plait.ok("train", communities, "--epochs", epochs, "--checkpoint", checkpoint, *resume)
    assert len(history_of(checkpoint)) == 10


def test_resume_with_nothing_left_to_do(plait, tmp_path, communities):
    checkpoint = tmp_path / "c.safetensors"
    wanted = plait.json("train", communities, "--epochs", 5, "--checkpoint", checkpoint)
    found = plait.json("train", communities, "--epochs", 5, "--resume", checkpoint)
    assert found["loss"] == wanted["loss"] and found["test_accuracy"] == wanted["test_accuracy"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_resume_for_fewer_epochs_than_are_done(plait, tmp_path, communities, trained, ranks):
    """It is refused before it replaces a checkpoint."""
    checkpoint, other = tmp_path / "c.safetensors", tmp_path / "other.safetensors"
    checkpoint.write_bytes(trained)
    for kept in (checkpoint, other):
        plait.fails(USAGE, "train", communities, "--epochs", 1, "--resume", checkpoint, "--checkpoint", kept,
                    "--ranks", ranks, names=[checkpoint, "2 epochs", "--epochs 1"])
    assert checkpoint.read_bytes() == trained and not other.exists()


def test_what_a_checkpoint_holds(plait, tmp_path, communities):
    checkpoint = tmp_path / "c.safetensors"
    plait.ok("train", communities, "--epochs", 5, "--hidden", 12, "--layers", 3, "--checkpoint",
             checkpoint, "--seed", 9)
    shapes = {name: value.shape for name, value in safetensors.numpy.load_file(checkpoint).items()}
    wanted = {"convs.0.lin.weight": (12, 32), "convs.0.bias": (12,),
              "convs.1.lin.weight": (12, 12), "convs.1.bias": (12,),
              "convs.2.lin.weight": (7, 12), "convs.2.bias": (7,)}
    assert {name: shapes[name] for name in wanted} == wanted
    for name, shape in wanted.items():
        for kept in ("resume.", "resume.adam.exp_avg.", "resume.adam.exp_avg_sq."):
            assert shapes.pop(kept + name) == shape
        shapes.pop(name)
    assert not shapes
    metadata = metadata_of(checkpoint)
    assert (metadata["kind"], metadata["layers"], metadata["seed"]) == ("gcn", "3", "9")
    assert [epoch["epoch"] for epoch in history_of(checkpoint)] == list(range(5))


@pytest.mark.parametrize("ranks,whole_group,number", [
    (1, False, signal.SIGINT), (1, False, signal.SIGTERM), (2, False, signal.SIGINT),
    (2, True, signal.SIGINT), (2, False, signal.SIGTERM), (1, False, signal.SIGHUP),
    (2, False, signal.SIGHUP), (2, True, signal.SIGHUP)])
def test_interruption(plait, tmp_path, communities, ranks, whole_group, number):
    """The signal comes as by Ctrl-C, which reaches every process, or as by kill, which reaches one:
    the epoch in flight is finished, and the checkpoint goes on as if nothing had been."""
    checkpoint = tmp_path / "c.safetensors"
    process = program.start("train", communities, "--epochs", 1000000, "--ranks", ranks, "--json",
                            "--checkpoint", checkpoint, "--checkpoint-every", 2,
                            start_new_session=True)
    program.wait_until(checkpoint.exists, 30, "a checkpoint")
    (os.killpg if whole_group else os.kill)(process.pid, number)
    result = program.result_of(process, 20)
    assert result.code == INTERRUPTED, result
    program.check_one_line(result, ["interrupted after", f"--resume {checkpoint}"])
    epochs = len(history_of(checkpoint))
    assert result.json["interrupted"] is True and result.json["epochs"] == epochs
    assert f"after {epochs} epochs" in result.err
    assert list(program.contents(tmp_path)) == [checkpoint]
    more = ["train", communities, "--ranks", ranks, "--epochs", epochs + 3]
    resumed = plait.json(*more, "--resume", checkpoint)["loss"]
    assert resumed[:epochs] == result.json["loss"]
    assert resumed == plait.json(*more)["loss"]


@pytest.mark.parametrize("option,value,names", [
    ("--hidden", 8, ["hidden", "16", "8"]),
    ("--layers", 3, ["layers", "2", "3"]),
    ("--model", "mlp", ["kind", "gcn", "mlp"]),
    ("--norm", "batch", ["norm", "none", "batch"]),
    ("--residual", None, ["residual", "0", "1"]),
    ("--dropout", 0.25, ["dropout", "0.5", "0.25"]),
    ("--seed", 4, ["seed", "0", "4"]),
    ("--normalize", "rows", ["normalize", "none", "rows"]),
    ("--folds", 5, ["split", "split 0", "fold 0 of 5"]),
])
def test_resume_of_another_model(plait, tmp_path, communities, trained, option, value, names):
    checkpoint = tmp_path / "c.safetensors"
    checkpoint.write_bytes(trained)
    given = [option] if value is None else [option, value]
    plait.fails(FAILED, "train", communities, "--epochs", 4, "--resume", checkpoint, *given,
                "--ranks", 2 if option == "--hidden" else 1, names=[checkpoint, "; ", *names])


def test_resume_with_other_folds_of_a_set_of_graphs(plait, tmp_path):
    """A set of graphs without a split gets ten folds, also if they are named. Vertices that were
    trained on must not test."""
    graphs, checkpoint = tmp_path / "graphs.npz", tmp_path / "c.safetensors"
    ids = np.arange(60)
    np.savez(graphs, edge_index=np.stack([ids, ids ^ 1]), y=np.arange(30) % 2, graph_id=ids // 2,
             x=np.eye(60, 4, dtype=np.float32))
    plait.ok("train", graphs, "--epochs", 2, "--fold", 3, "--checkpoint", checkpoint)
    resume = ["train", graphs, "--epochs", 4, "--resume", checkpoint]
    plait.fails(FAILED, *resume, "--fold", 4, "--ranks", 2,
                names=[checkpoint, "'split'", "fold 3 of 10", "fold 4 of 10", "; "])
    plait.fails(FAILED, *resume, "--folds", 5, "--fold", 3, names=["fold 3 of 10", "fold 3 of 5"])
    plait.ok(*resume, "--folds", 10, "--fold", 3)


def test_rates_may_change_on_the_way(plait, tmp_path, communities, trained):
    checkpoint = tmp_path / "c.safetensors"
    checkpoint.write_bytes(trained)
    plait.ok("train", communities, "--epochs", 4, "--resume", checkpoint, "--lr", 0.001,
             "--weight-decay", 0)


@pytest.mark.parametrize("more", [[], ["--ranks", 2], ["--memory-limit", "2G"]])
def test_infer_normalises_as_training_did(plait, tmp_path, communities, more):
    """No option is needed; an option for another normalisation is refused."""
    out, checkpoint = tmp_path / "y.npy", tmp_path / "c.safetensors"
    train = ["train", communities, "--epochs", 2, "--checkpoint", checkpoint]
    infer = ["infer", communities, "--checkpoint", checkpoint, "--out", out, *more]
    scores = {}
    for normalize in ("none", "unit"):
        plait.ok(*train, "--normalize", normalize)
        plait.ok(*infer, "--normalize", normalize)
        scores[normalize] = np.load(out)
        plait.ok(*infer)
        np.testing.assert_array_equal(np.load(out), scores[normalize])
    assert not np.allclose(scores["none"], scores["unit"])
    plait.fails(FAILED, *infer, "--normalize", "rows",
                names=[checkpoint, "'normalize'", "unit", "rows", "; "])


@pytest.fixture(scope="module")
def other_graph(communities, tmp_path_factory):
    """Returns a graph of the same shapes and structure, in which one feature differs."""
    folder = tmp_path_factory.mktemp("other")
    plait = program.Plait(folder)
    plait.ok("convert", communities, folder / "same.npz")
    arrays = dict(np.load(folder / "same.npz"))
    arrays["x"][0, 0] += 1
    np.savez(folder / "other.npz", **arrays)
    return folder / "other.npz"


@pytest.mark.parametrize("ranks", [1, 2])
def test_resume_on_another_graph(plait, tmp_path, communities, communities_npz, other_graph,
                                 trained, ranks):
    """It is refused, though the model fits; the same graph from another file is accepted."""
    checkpoint = tmp_path / "c.safetensors"
    checkpoint.write_bytes(trained)
    resume = ["--epochs", 4, "--resume", checkpoint, "--ranks", ranks]
    plait.fails(FAILED, "train", other_graph, *resume, names=[
        checkpoint, "trained on another graph: the checksum of its features is ", " there and "])
    plait.ok("train", communities_npz, *resume)
    plait.ok("infer", other_graph, "--checkpoint", checkpoint, "--out", tmp_path / "y.npy")


def with_header(content, change):
    """Returns the file with another JSON header; `change` gets it as a dictionary."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size:]


def checksum_of(content):
    """Follows plait/io/safetensors.h."""
    size = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    held = {"metadata": {k: v for k, v in header.pop("__metadata__").items() if k != "checksum"},
            "tensors": {name: {"shape": array["shape"], "checksum": xxhash.xxh3_64_hexdigest(
                data[slice(*array["data_offsets"])])} for name, array in header.items()}}
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return xxhash.xxh3_64_hexdigest(text.encode())


def updated(name, fields):
    return lambda content: with_header(content, lambda h: h[name].update(fields))


def whole(change):
    """Makes the change, and sets the checksum that then belongs to the file."""
    def change_whole(content):
        changed = change(content)
        return updated("__metadata__", {"checksum": checksum_of(changed)})(changed)
    return change_whole


def metadata(**fields):
    return whole(updated("__metadata__", fields))


def with_array(count, **fields):
    """Adds an array that no model has, and sets fields of the metadata."""
    def add(content):
        data = len(content) - 8 - struct.unpack("<Q", content[:8])[0]
        content = updated("__metadata__", fields)(content) + bytes(4 * count)
        return with_header(content, lambda h: h.update(
            more={"dtype": "F32", "shape": [count], "data_offsets": [data, data + 4 * count]}))
    return whole(add)


def flipped(content, byte):
    return content[:byte] + bytes([content[byte] ^ 1]) + content[byte + 1:]


WEIGHT = "convs.0.lin.weight"
DAMAGE = {
    "empty": (lambda c: b"", []),
    "cut in the header": (lambda c: c[:100], ["header"]),
    "cut in the data": (lambda c: c[:-40], []),
    "longer": (lambda c: c + bytes(8), ["data"]),
    "huge header": (lambda c: struct.pack("<Q", 2**63) + c[8:], [str(2**63)]),
    "no JSON": (lambda c: c[:8] + b"?" + c[9:], ["JSON"]),
    "other type": (updated(WEIGHT, {"dtype": "F16"}), [WEIGHT, "F16"]),
    "other shape": (whole(updated(WEIGHT, {"shape": [4, 128]})), [WEIGHT]),
    "endless shape": (updated(WEIGHT, {"shape": [2**40, 2**40]}), [WEIGHT]),
    "negative shape": (updated(WEIGHT, {"shape": [-16, -32]}), [WEIGHT]),
    "overlap": (updated(WEIGHT, {"data_offsets": [4, 2052]}), []),
    "no metadata": (lambda c: with_header(c, lambda h: h.pop("__metadata__")), ["metadata"]),
    "other format": (metadata(format="plait-checkpoint-9"), ["format", "plait-checkpoint-9"]),
    "other kind": (metadata(kind="gat"), ["convs.0.att_src", "missing"]),
    "no checksum": (lambda c: with_header(c, lambda h: h["__metadata__"].pop("checksum")),
                    ["checksum", "missing"]),
    "other checksum": (lambda c: c.replace(checksum_of(c).encode(), b"0" * 16), ["checksum"]),
    "flipped in the data": (lambda c: flipped(c, len(c) - 5), ["checksum", "damaged"]),
    "flipped in the metadata": (lambda c: c.replace(b'"seed":"0"', b'"seed":"1"'),
                                ["checksum", "damaged"]),
    "unknown kind": (metadata(kind="gpt"), ["gpt", "gcn"]),
    "unknown norm": (metadata(norm="cake"), ["cake", "batch"]),
    "unknown activation": (metadata(activation="tanh"), ["tanh", "elu"]),
    "unknown aggregation": (metadata(aggregation="median"), ["median", "max"]),
    "no heads": (metadata(heads="0"), ["metadata"]),
    "huge model": (metadata(hidden="1000000000000"), ["metadata"]),
    # Fields that the number of elements allows, but not the arrays: the square of 200,000 takes 160 GB.
    "large model": (with_array(200_000, hidden="200000", inputs="200000"), [WEIGHT, "200000, 200000"]),
    "many layers": (metadata(layers="1000"), ["metadata", "sizes"]),
    "word for a number": (metadata(layers="two"), ["layers", "two"]),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_checkpoints(plait, tmp_path, communities, trained, case):
    change, names = DAMAGE[case]
    checkpoint = tmp_path / "c.safetensors"
    checkpoint.write_bytes(change(trained))
    names = [checkpoint, *names]
    plait.fails(FAILED, "infer", communities, "--checkpoint", checkpoint, "--out",
                tmp_path / "y.npy", names=names)
    plait.fails(FAILED, "train", communities, "--resume", checkpoint, names=names[:1])


@pytest.mark.parametrize("change", [metadata(history="[]"), metadata(history="{}"),
                                    metadata(history="[[1, 2]]"), metadata(best_epoch="7"),
                                    metadata(under_way="[1, 0, [0.5]]"), metadata(under_way="[]")])
def test_damaged_history(plait, tmp_path, communities, trained, change):
    checkpoint = tmp_path / "c.safetensors"
    checkpoint.write_bytes(change(trained))
    plait.fails(FAILED, "train", communities, "--resume", checkpoint,
                names=[checkpoint, "metadata"])


@pytest.mark.parametrize("name,words", [("none", "no such file"), (".", "folder")])
def test_no_checkpoint(plait, tmp_path, communities, name, words):
    path = tmp_path / name
    plait.fails(FAILED, "train", communities, "--resume", path, "--ranks", 2, names=[path, words])
    plait.fails(FAILED, "infer", communities, "--checkpoint", path, "--out", tmp_path / "y.npy",
                names=[path, words])

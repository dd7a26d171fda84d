"""In a folder to which all may write, no command writes through a name that another user has put there."""

import os
import resource

import numpy as np
import pytest

from program import FAILED, Plait, check_one_line

ANOTHER = 12345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture
def shared(tmp_path):
    """A folder like /tmp, beside a file that must stay as it is."""
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder
    assert victim.read_bytes() == b"precious\n"


@pytest.fixture(scope="module")
def infer(communities, tmp_path_factory):
    """Returns the arguments of an inference through files, without its output."""
    checkpoint = tmp_path_factory.mktemp("trained") / "c.safetensors"
    Plait(checkpoint.parent).ok("train", communities, "--epochs", 1, "--checkpoint", checkpoint)
    return ["infer", communities, "--checkpoint", checkpoint, "--memory-limit", "2G"]


def given_to_another(path):
    os.chown(path, ANOTHER, ANOTHER, follow_symlinks=False)
    return path


@pytest.fixture(scope="module")
def manifest(infer, tmp_path_factory):
    """The manifest of the run, which others can write as well. A limit on the size of files ends a run."""
    folder = tmp_path_factory.mktemp("manifest")
    result = Plait(folder)(*infer, "--out", folder / "y.npy", "--work", folder / "w", preexec_fn=lambda:
                           resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert result.code == FAILED, result
    return (folder / "w" / "manifest.json").read_text()


def trap(folder, victim, manifest):
    """A work folder of another user that looks like the run's, and in which rows lead to a file of this
    user."""
    folder.mkdir()
    (folder / "manifest.json").write_text(manifest)
    for stage in range(4):
        (folder / f"rows-{stage}.f32").symlink_to(victim)
    for path in (*folder.iterdir(), folder):
        given_to_another(path)


def test_work_folders_of_another_user(infer, manifest, shared):
    out, victim = shared / "y.npy", shared.parent / "victim"
    names = [shared / "y.npy.layers", shared / "y.npy.layers-aaaaaa"]
    for name in names:
        trap(name, victim, manifest)
    Plait(shared).ok(*infer, "--out", out)
    assert np.load(out).ndim == 2
    assert sorted(shared.iterdir()) == [out, *names]  # the folder of the run is gone
    out.unlink()
    for ranks in (1, 2):
        result = Plait(shared)(*infer, "--out", out, "--work", names[0], "--ranks", ranks)
        assert result.code == FAILED and not out.exists(), result
        check_one_line(result, [names[0], "another user's"])


def test_outputs_that_are_links_of_another_user(plait, infer, communities, shared):
    commands = {".plait": ["generate", "ring", "-o"], ".mtx": ["convert", communities],
                ".npy": [*infer, "--out"], ".json": ["generate", "ring", "-o", shared / "g.plait", "--trace"],
                ".safetensors": ["train", communities, "--epochs", 1, "--checkpoint"]}
    for ending, command in commands.items():
        path = shared / f"out{ending}"
        path.symlink_to(shared.parent / "victim")
        given_to_another(path)
        result = plait(*command, path)
        assert result.code == FAILED, result
        check_one_line(result, [path, "a link of another user"])

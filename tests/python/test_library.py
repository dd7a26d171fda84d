"""The loaded library itself."""

import pathlib
import re
import subprocess
import sys

import pytest
import torch

import plait
import plait._library

USE_AND_TELL = """
import sys
sys.path.insert(0, sys.argv[1])
import plait, torch
plait.aggregate(plait.Graph(torch.zeros(2, 9, dtype=torch.long)), torch.ones(1, 1))
print(open("/proc/self/maps").read())
"""


def test_one_openmp_runtime():
    # Two OpenMP libraries would share no threads: the machine would be overloaded, or the process hang.
    folder = pathlib.Path(plait.__file__).parents[1]
    maps = subprocess.run([sys.executable, "-c", USE_AND_TELL, folder], check=True, timeout=300,
                          capture_output=True, text=True).stdout
    assert "_ops.so" in maps
    runtimes = set(re.findall(r"/\S*lib(?:gomp|omp|iomp5)[-.\w]*\.so\S*", maps))
    assert len({pathlib.Path(path).resolve() for path in runtimes}) == 1, runtimes


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", plait.__version__)


def test_operations_are_registered():
    schema = str(torch.ops.plait.aggregate.default._schema)
    assert schema.startswith("plait::aggregate(Tensor x, __torch__.torch.classes.plait.Graph graph")


@pytest.mark.parametrize("content,words", [(None, "is missing; build"),
                                           (b"not a library", "does not load beside torch")])
def test_a_library_that_cannot_be_loaded(tmp_path, content, words):
    path = tmp_path / "_ops.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ImportError, match=words) as error:
        plait._library.load(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)

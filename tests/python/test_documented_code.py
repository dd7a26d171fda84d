"""The Python of README.md, docs/ and docstrings runs as it stands, on small files of the names that it uses."""

import numpy as np
import pytest
import torch

import documented
from documented import NOT_RUN, PAGES, SMALLER, blocks_of_docstrings, blocks_of_page, run
from edges import assert_close
from ranks import HERE, Ranks
from test_checkpoint import run as run_program

WITH_CODE = [page for page in PAGES if blocks_of_page(page)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("documented")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        documented.make_files()
        run_program("convert", "cora.npz", "products.plait")
        run_program("train", "cora.npz", "--epochs", 3, "--checkpoint", "model.safetensors")
        run_program("infer", "cora.npz", "--checkpoint", "model.safetensors", "--out", "scores.npy")
    return path


@pytest.mark.parametrize("page", WITH_CODE)
def test_pages(page, folder, monkeypatch, recwarn):
    monkeypatch.chdir(folder)
    names = run(blocks_of_page(page), documented.names_for_pages, page)
    if page == "docs/python.md":  # its checkpoint gives the numbers of the program
        scores = torch.from_numpy(np.load("scores.npy"))
        assert_close(names["scores"], scores)
        assert_close(names["checkpoint"].model()(names["graph"].x, names["graph"]), scores)


def test_docstrings(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run(blocks_of_docstrings(), documented.names_for_docstrings, "docstrings")


def test_several_ranks(folder):
    losses = [output.split()[-1] for output in Ranks(2, HERE / "documented.py", "docs/parallel.md", folder).succeed()]
    assert losses[0] == losses[1]


def test_no_block_is_passed_over():
    """Each page has as many blocks as it had fences of Python, and every exception is of one block."""
    pages = {page: blocks_of_page(page) for page in PAGES}
    for page, blocks in pages.items():
        assert len(blocks) >= (documented.CHECKOUT / page).read_text().count("```python"), page
    assert {"README.md", "docs/python.md", "docs/parallel.md"} <= {*WITH_CODE}
    every = [*(code for blocks in pages.values() for code in blocks), *blocks_of_docstrings()]
    for words in NOT_RUN:
        assert sum(words in code for code in every) == 1, words
    for number in SMALLER:
        assert any(number in code for code in every), number
    assert len(blocks_of_docstrings()) >= 10

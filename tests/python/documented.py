"""The Python of pages and docstrings, and what it finds when it runs. As a program (PAGE FOLDER), it runs a page's
blocks on every rank."""

import ast
import itertools
import os
import pathlib
import re
import sys
import textwrap

import numpy as np
import torch
import torch.nn.functional
import torch_geometric.nn as pyg
from torch_geometric.data import Data

import plait
import plait.parquet

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("docs/*.md"))]
NODES, WORDS, CLASSES = 60, 20, 7

# Blocks that are compiled alone: words that one of them has, and why.
NOT_RUN = {
    "graph = torch.cuda.CUDAGraph()": "it needs a GPU; tests/gpu/captured_steps.py has such steps",
    '"""A GCN of PyTorch Geometric, trained': "it is examples/train_pyg.py, which test_parallel_example.py runs",
}
# Numbers that are smaller here: whole tables of embeddings would take 20 GB.
SMALLER = {"40_000_000": "4_000", "10**6": "10**3"}


def blocks_of_page(name):
    """Returns the Python of a page: fenced blocks, and indented ones from their first import on."""
    text = (CHECKOUT / name).read_text()
    found = [(m.start(), m[1]) for m in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    rest = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", "#", m[0]), text, flags=re.MULTILINE | re.DOTALL)
    for m in re.finditer(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+", rest):
        _, begins, code = textwrap.dedent(m[0]).partition("import plait\n")
        if begins:
            found.append((m.start(), begins + code))
    return [code for _, code in sorted(found)]


def blocks_of_docstrings():
    """Returns the indented code of the package's docstrings that uses the package, without lines for a shell."""
    found = []
    for path in sorted((CHECKOUT / "python/plait").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
                continue
            for block in re.findall(r"(?:^|\n\n)((?: {4}.*\n?)+)", ast.get_docstring(node) or ""):
                lines = [line for line in textwrap.dedent(block).splitlines() if not line.startswith("python ")]
                if re.search(r"plait[.\w]*\(|import plait|from plait", "\n".join(lines)):
                    found.append("\n".join(lines) + "\n")
    return found


def make_files():
    """Writes, into this folder, the files that documents name, but checkpoints."""
    random = np.random.default_rng(1)
    y = np.arange(NODES) % CLASSES
    x = (random.random((NODES, WORDS)) < 0.3).astype(np.float32)
    index = random.integers(0, NODES, (2, 150))
    train, val, test = np.split(random.permutation(NODES), 3)
    np.savez("cora.npz", edge_index=np.hstack([index, index[::-1]]), x=x, y=y, train=train, val=val, test=test)
    graph = plait.Graph.load("cora.npz")
    plait.parquet.write(graph, "edges.parquet", "nodes.parquet")


def data_of_files():
    graph = plait.Graph.load("cora.npz")
    masks = {f"{split}_mask": getattr(graph, f"{split}_mask") for split in ("train", "val", "test")}
    return Data(x=graph.x, y=graph.y, edge_index=graph.edge_index, **masks)


def names_for_pages():
    """Returns what pages leave to the reader. Each block finds it anew."""
    torch.manual_seed(1)
    data = data_of_files()
    offsets = list(itertools.accumulate([3, 3, 2, 2, 1], initial=0))
    return {
        "torch": torch, "plait": plait, "F": torch.nn.functional, "data": data, "x": data.x,
        "edge_index": data.edge_index, "num_nodes": NODES, "start": torch.tensor([0, 5]),
        "model": pyg.GCN(WORDS, 16, 2, CLASSES), "pyg_model": pyg.GCN(WORDS, 16, 2, CLASSES).eval(),
        "ids": torch.randint(0, 300, (12,)), "offsets": torch.tensor(offsets),
    }


def names_for_docstrings():
    """As names_for_pages(), on one rank: there, data that is spread has all rows."""
    names = names_for_pages()
    names["data"].edge_label_index = names["edge_index"][:, :8]
    data = names["data"] = plait.spread(names["data"])
    out = pyg.GCNConv(WORDS, CLASSES)(names["x"], names["edge_index"])
    return names | {"out": out, "z": out, "y": data.y, "mask": data.train_mask}


def run(blocks, names_for, where):
    """Runs blocks one after another. Returns all names in the end. A mistake is an error that has the block."""
    names = {}
    for number, code in enumerate(blocks):
        compiled = compile(code, f"{where}, block {number + 1}", "exec")
        if any(words in code for words in NOT_RUN):
            continue
        for large, small in SMALLER.items():
            code = code.replace(large, small)
        names |= names_for()
        try:
            exec(compile(code, compiled.co_filename, "exec"), names)
        except Exception as error:
            raise AssertionError(f"{compiled.co_filename}: {type(error).__name__}: {error}\n{code}") from error
    return names


if __name__ == "__main__":
    page, folder = sys.argv[1:]
    os.chdir(folder)
    names = run(blocks_of_page(page), names_for_pages, page)
    print("\n", names["loss"].item())

"""bench/nn/model_pyg.py: it times plait bench model and the same models of PyTorch Geometric, and refuses to
compare models whose losses differ."""

import json
import pathlib
import subprocess
import sys

import pytest
import torch

import plait
from ranks import environment

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/nn/model_pyg.py"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    torch.manual_seed(4)
    path = tmp_path_factory.mktemp("graph") / "g.mtx"
    lines = {f"{u} {v}" for u, v in torch.randint(1, 41, (150, 2)).tolist()}
    path.write_text("\n".join(["%%MatrixMarket matrix coordinate pattern general", f"40 40 {len(lines)}",
                               *sorted(lines)]) + "\n")
    assert plait.Graph.load(str(path)).num_nodes == 40
    return path


def run(*arguments):
    return subprocess.run([sys.executable, *map(str, arguments)], env=environment(OMP_WAIT_POLICY="passive"),
                          capture_output=True, text=True)


def test_side_by_side(graph, tmp_path):
    out = tmp_path / "times.json"
    done = run(SCRIPT, graph, "--models", "gin", "sage", "--width", 6, "--classes", 3, "--hidden", 4, "--layers", 2,
               "--norm", "batch", "--steps", 2, "--ranks", 1, 2, "--json", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("times plait's") == 2 * 2 * 2
    entries = [json.loads(line) for line in out.read_text().splitlines()]
    met = {(e["case"]["model"], e["case"]["work"], e["case"]["by"], e["case"].get("strategy"),
            e["case"].get("ranks")) for e in entries}
    assert len(met) == len(entries) == 2 * 2 * (1 + 3 + 2)
    assert all(e["case"]["graph"] == "g" and e["median_ms"] > 0 for e in entries)


def test_other_models_are_not_compared(graph, tmp_path):
    """A rate of Adam that is not plait's gives other losses in the second step."""
    code = (f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import model_pyg\n"
            "model_pyg.DEFAULTS['gcn'] = (2, 16, 1, 0.02)\n"
            f"sys.argv[1:] = [{str(graph)!r}, '--models', 'gcn', '--json', {str(tmp_path / 'o')!r}]\n"
            "model_pyg.main()")
    done = run("-c", code)
    assert done.returncode == 1 and "as plait's" in done.stderr, done
    assert "PyG" not in done.stdout

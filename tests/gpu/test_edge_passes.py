"""Attention and maxima in passes, while rows of other GPUs arrive, have the loss curve of one process on
the CPU: in steps that are enqueued one by one and, from the third on, in steps that are recorded.
scripts/gpu-test runs it.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from training import directed_archive

GPUS = torch.cuda.device_count()
EPOCHS = 30
MODELS = {
    "gat": ["--model", "gat", "--hidden", 24, "--heads", 4],
    "gatv2": ["--model", "gatv2", "--hidden", 24, "--heads", 4],
    "transformer": ["--model", "transformer", "--hidden", 24, "--heads", 4],
    "max": ["--model", "sage", "--aggregation", "max", "--hidden", 17],
    "min": ["--model", "sage", "--aggregation", "min", "--hidden", 12],
}
# Passes cost nothing, and a small graph's rows take as long to cross as its edges to be worked on: so
# that there are two to sixteen passes after the first.
MANY_PASSES = {"name": "many passes", "first_row": 1e-9, "pass": 1e-9, "row": 1e-16, "y_byte": 1e-16,
               "attention_row": 1e-16, "extremum_row": 1e-16, "link": 1e11}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("passes")
    program.Plait(folder).ok("generate", "dcsbm", "--vertices", 600, "--edges", 12000, "--seed", 1,
                             "-o", folder / "communities.plait")
    directed_archive(folder / "directed.npz", vertices=300)
    (folder / "machine.json").write_text(json.dumps(MANY_PASSES))
    return folder


@pytest.mark.skipif(GPUS < 2, reason="--gpus needs a GPU for each rank")
@pytest.mark.parametrize("graph", ["communities.plait", "directed.npz"])
@pytest.mark.parametrize("model", MODELS)
def test_has_the_course_of_the_cpu(inputs, tmp_path, model, graph):
    plait = program.Plait(tmp_path)
    run = ["train", inputs / graph, *MODELS[model], "--epochs", EPOCHS, "--seed", 5]
    wanted = plait.json(*run)["loss"]
    assert len(wanted) == EPOCHS
    for profile in ("", str(inputs / "machine.json")):
        for gpus in {2, min(GPUS, 4)}:
            found = plait.json(*run, "--gpus", gpus, "--partition", "hash", "--strategy", "pipelined",
                               env=program.environment(PLAIT_MACHINE=profile))["loss"]
            np.testing.assert_allclose(found, wanted, rtol=1e-3, err_msg=f"{gpus} GPUs, {profile}")

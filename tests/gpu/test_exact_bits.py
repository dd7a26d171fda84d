"""--exact on GPUs gives the same bits of weights and losses on one GPU and on several, however the graph
is cut and rows are brought. scripts/gpu-test runs it.
"""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import program
from exact_cases import CASES, arguments_of, layout_of, make_archives, outcome

GPUS = torch.cuda.device_count()
LAYOUTS = [["--partition", "hash"], ["--partition", "metis", "--strategy", "bulk"],
           ["--partition", "vertices", "--strategy", "replicate"]]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    communities = folder / "communities.plait"
    program.Plait(folder).ok("generate", "dcsbm", "--vertices", 600, "--edges", 6000, "--seed", 1,
                             "-o", communities)
    return {**make_archives(folder), "communities": communities}


@pytest.mark.skipif(GPUS < 2, reason="--gpus needs a GPU for each rank")
@pytest.mark.parametrize("name", CASES)
def test_same_bits(tmp_path, graphs, name):
    plait, checkpoint = program.Plait(tmp_path), tmp_path / "c.safetensors"
    arguments = arguments_of(name, graphs)
    wanted = outcome(plait, checkpoint, *arguments, "--gpus", 1)
    # Attention and maxima need rows that pipelined alone brings on GPUs.
    rows_alone = {"gat", "gatv2", "transformer", "max"} & set(map(str, arguments))
    for layout in LAYOUTS[:1] if rows_alone else LAYOUTS:
        for gpus in {2, min(GPUS, 4)}:
            found = outcome(plait, checkpoint, *arguments, "--gpus", gpus, *layout_of(name, layout))
            assert [key for key in wanted if found[key] != wanted[key]] == [], (gpus, layout)

"""Whole models in plait bench model and in PyTorch Geometric, side by side, on the same graph.

    model_pyg.py GRAPH [--models gcn sage gin gat gatv2 transformer] [--width 64] [--classes 16] [--layers N] [--hidden N]
                 [--heads N] [--norm none] [--ranks 1 2 ...] [--steps 5] [--device cpu|cuda] [--json FILE]

GRAPH: a graph without weights of edges that plait.Graph.load reads; features and labels are made, the same
for both. Both begin with the same weights, take steps of Adam without dropout, and use all processors, or one
GPU. PyTorch Geometric is given the edges as edge_index and as a sparse CSR tensor; the normalised edges of
GCN are cached. The losses of the first three steps have to agree to 1e-4 before anything of PyTorch Geometric
is timed. Prints the median time of inference and of a training step, and the ratio to Plait's fastest
strategy on as many processes, one; FILE (build/bench/models-DEVICE.json) receives the times as JSON.
"""

import argparse
import pathlib
import sys
import tempfile
import time
import warnings

import numpy as np
import torch

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/nn"), str(ROOT / "tests/cli")]
THREADS = torch.get_num_threads()
import pyg_reference  # sets the number of threads
import results
from keep import measurements
from made_data import made_features, made_labels
from pyg_layers import csr_of, failure
from running import result_of

WARM_UP = 3  # steps, as plait bench model takes
DEFAULTS = {"gcn": (2, 16, 1, 0.01), "sage": (2, 64, 1, 0.01), "gin": (5, 64, 1, 0.01), "gat": (2, 64, 8, 0.005),
            "gatv2": (2, 64, 8, 0.005), "transformer": (2, 64, 4, 0.005)}


def settings_of(kind, options):
    layers, hidden, heads, _ = DEFAULTS[kind]
    return pyg_reference.Settings(kind, options.hidden or hidden, layers=options.layers or layers,
                                  heads=options.heads or heads, norm=options.norm,
                                  activation="elu" if kind in ("gat", "gatv2") else "relu")


def arguments_of(settings):
    """The options of the program that say the same."""
    return [*settings.options(), "--dropout", "0"]


def initial_model(settings, options):
    """Returns the model with the weights that the program draws: those of a training that moves none. They
    depend on neither the graph nor its data."""
    with tempfile.TemporaryDirectory() as folder:
        graph, weights = pathlib.Path(folder) / "g.npz", pathlib.Path(folder) / "w.safetensors"
        np.savez(graph, edge_index=np.zeros((2, 1), np.int64), x=made_features(options.classes, options.width),
                 y=np.arange(options.classes), train=np.arange(options.classes))
        result_of("train", graph, *arguments_of(settings), "--epochs", 1, "--lr", 0, "--weight-decay", 0,
                  "--checkpoint", weights)
        model = settings.vertex_model(options.width, options.classes)
        plait.load_checkpoint(weights, model)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.reset_running_stats()
        if hasattr(module, "cached"):
            module.cached = True
    return model.to(options.device)


class Contest:
    """PyTorch Geometric's model on the edges in one form."""

    def __init__(self, settings, options, data, edges):
        self.settings, self.edges, (self.x, self.y) = settings, edges, data
        self.model = initial_model(settings, options)
        named = list(self.model.named_parameters())
        self.adam = torch.optim.Adam(
            [{"params": [p for name, p in named if pyg_reference.decayed(settings, name) == wanted],
              "weight_decay": 5e-4 if wanted else 0.0} for wanted in (True, False)],
            lr=DEFAULTS[settings.model][3], fused=self.x.is_cuda)

    def inference(self):
        self.model.eval()
        with torch.no_grad():
            self.model(self.x, self.edges)
        if self.x.is_cuda:
            torch.cuda.synchronize()

    def training(self):
        self.model.train()
        self.adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(self.x, self.edges), self.y)
        loss.backward()
        self.adam.step()
        return loss.item()

    def times(self, work, steps):
        """Returns the milliseconds of each step, after some that are not timed."""
        found = []
        for _ in range(WARM_UP + steps):
            begin = time.perf_counter()
            work()
            found.append((time.perf_counter() - begin) * 1e3)
        return found[WARM_UP:]


def plaits(kind, settings, options, ranks, kept):
    """Times plait. Returns its losses, and the median of the fastest strategy for each kind of work."""
    on = ["--gpus" if options.device == "cuda" else "--ranks", ranks]
    found = result_of("bench", "model", options.graph, *arguments_of(settings), "--width", options.width, "--classes",
                      options.classes, "--training", "--repetitions", options.steps, *on)
    best = {}
    for bench, case, fields in measurements(found, {}):
        work, median = case["work"], fields["median_ms"]
        best[work] = min(best.get(work, median), median)
        print(f"{kind:5} {work:9} plait, {case['strategy'] + ',':10} {ranks} ranks {median:10.2f} ms "
              f"({fields['least_ms']:.2f} to {fields['most_ms']:.2f})", flush=True)
        kept.add(bench, case | {"graph": options.name}, **fields)
    return found["loss"], best


def case_of(kind, work, options):
    return {"graph": options.name, "model": kind, "work": work, "device": options.device}


def theirs(kind, settings, options, data, forms, ours, kept):
    """Times PyTorch Geometric in each form, once its losses are those of plait."""
    losses, best = ours
    for form, edges_of in forms.items():
        edges = contest = failed = None
        try:
            edges = edges_of()
            contest = Contest(settings, options, data, edges)
            for expected in losses:
                loss = contest.training()
                if not abs(loss - expected) <= 1e-4 * abs(expected):
                    sys.exit(f"model_pyg: {kind} by {form}: a loss is {loss}, not {expected} as plait's")
            times = {work: contest.times(getattr(contest, work), options.steps) for work in best}
        except (RuntimeError, NotImplementedError, ValueError) as error:
            failed = failure(error)
        del contest, edges
        torch.cuda.empty_cache()  # for the next model of plait, which is another process
        if failed:
            print(f"{kind:5} {form}: {failed}", flush=True)
            for work in best:
                kept.add("model", case_of(kind, work, options) | {"by": form}, failed=failed)
            continue
        for work, ms in times.items():
            found = results.spread(ms)
            print(f"{kind:5} {work:9} PyG, {form + ',':11}        {found['median_ms']:10.2f} ms "
                  f"({min(ms):.2f} to {max(ms):.2f}), {found['median_ms'] / best[work]:.2f} times plait's",
                  flush=True)
            kept.add("model", case_of(kind, work, options) | {"by": form}, **found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--models", nargs="+", choices=DEFAULTS, default=list(DEFAULTS))
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--layers", type=int, help="the model's default if not given; likewise --hidden, --heads")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--norm", choices=["none", "batch", "layer"], default="none")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1], help="of plait; 1 is compared")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--json", help="file for the times; build/bench/models-DEVICE.json if not given")
    options = parser.parse_args()
    options.name = pathlib.Path(options.graph).stem  # in results: two graphs may be like the same known one
    warnings.simplefilter("ignore")  # torch warns that sparse CSR tensors are young
    torch.set_num_threads(THREADS)
    kept = results.Results(options.json or results.FOLDER / f"models-{options.device}.json")
    graph = plait.Graph.load(options.graph)
    if graph.edge_weight is not None:
        parser.error("the graph has weights of edges; plait convert --no-weights leaves them out")
    data = (torch.from_numpy(made_features(graph.num_nodes, options.width)).to(options.device),
            torch.from_numpy(made_labels(graph.num_nodes, options.classes, 0)).to(options.device))
    forms = {"edge_index": lambda: graph.edge_index.to(options.device),
             "sparse CSR": lambda: csr_of(graph, options.device)}
    for kind in options.models:
        settings = settings_of(kind, options)
        ours = {ranks: plaits(kind, settings, options, ranks, kept) for ranks in options.ranks}
        theirs(kind, settings, options, data, forms, ours.get(1) or next(iter(ours.values())), kept)


if __name__ == "__main__":
    main()

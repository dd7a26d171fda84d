"""Rows that cross between GPUs as bf16, against fp32 and against CPU ranks that round the same rows.

    PYTHONPATH=build/python bench/nn/wire_rows.py GPUS     as scripts/gpu-wire calls it

Runs plait aggregate, train and infer, and plait.parallelize, with and without --wire bf16. Prints a table: the time,
the bytes that were brought to rank 0, and the largest difference from fp32 and from the CPU's result, relative to the
largest number. Exits 1 if a difference is larger than the type of rows explains."""
import json
import pathlib
import sys
import tempfile

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import running

STRATEGIES = "bulk", "pipelined", "partial"
TWO_TIMES = 2.0**-8  # the most by which one rounding to 8 bits changes a number is half of it

PARALLEL = """
import json, sys, time, torch, torch.nn.functional as F, plait
from torch_geometric.nn import GCN
path, wire, kind = sys.argv[1:]
device = plait.device() if kind == "gpu" else torch.device("cpu")
torch.manual_seed(1)
graph = plait.Graph.load(path).to(device)
model = GCN(graph.x.size(1), 32, 2, int(graph.y.max()) + 1).to(device)
model, data = plait.parallelize(model, graph, partition="edges", wire=wire)
optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
for step in range(30):
    began = time.perf_counter()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = plait.mean(F.cross_entropy(out[data.train_mask], data.y[data.train_mask], reduction="none"))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
if plait.rank() == 0:
    print(json.dumps({"loss": losses, "epoch_ms": 1e3 * (time.perf_counter() - began)}))
"""


def difference(found, wanted):
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


class Table:
    """One line per run; remembers whether all differences are allowed."""

    def __init__(self):
        self.right = True
        print(f"{'run':<22}{'wire':<6}{'ms':>10}{'MB':>9}{'from fp32':>12}{'from CPU':>12}  limit")

    def add(self, run, wire, ms, size, from_fp32, from_cpu, limit):
        met = from_cpu <= limit and from_fp32 <= 8 * TWO_TIMES and (wire == "fp32" or from_fp32 > 0)
        self.right &= met
        print(f"{run:<22}{wire:<6}{ms:>10.3f}{size / 1e6:>9.2f}{from_fp32:>12.2e}{from_cpu:>12.2e}  {limit:.0e}"
              f"{'' if met else '  WRONG'}", flush=True)


def main():
    gpus = sys.argv[1]
    on = {"gpu": ("--gpus", gpus, "--partition", "edges"), "cpu": ("--ranks", gpus, "--partition", "edges")}
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        files = "g.plait", "x.npy", "y.npy", "w.safetensors", "parallel.py"
        graph, x, y, weights, script = (pathlib.Path(folder) / name for name in files)
        running.output_of("generate", "dcsbm", "--vertices", 50000, "--edges", 1000000, "-o", graph, "--quiet")
        script.write_text(PARALLEL)
        np.save(x, np.random.default_rng(1).standard_normal((50000, 65), dtype=np.float32))

        def aggregate(device, strategy, wire):
            run = running.result_of("aggregate", graph, "--features", x, "--out", y, "--strategy", strategy, "--wire",
                                    wire, *on[device])
            return run["milliseconds"], run["bytes_fetched"], np.load(y)

        def infer(device, strategy, wire):
            running.result_of("infer", graph, "--checkpoint", weights, "--out", y, "--strategy", strategy, "--wire",
                              wire, *on[device])
            return 0, 0, np.load(y)

        def train(device, strategy, wire):
            run = running.result_of("train", graph, "--epochs", 30, "--dropout", 0, "--strategy", strategy, "--wire",
                                    wire, *on[device])
            return run["epoch_ms"], run["bytes_per_rank"], run["loss"]

        def parallelize(device, _, wire):
            ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", gpus)
            out = running.output_of(*ranks, script, graph, wire, device, program=sys.executable)
            run = json.loads(out.splitlines()[-1])
            return run["epoch_ms"], 0, run["loss"]

        running.result_of("train", graph, "--epochs", 30, "--checkpoint", weights, *on["gpu"])
        for run, strategies, limit in ((aggregate, STRATEGIES, 2e-6), (train, ("pipelined",), 1e-3),
                                       (infer, ("pipelined",), 1e-4), (parallelize, ("auto",), 1e-3)):
            cpu = {wire: run("cpu", "auto" if run is parallelize else "bulk", wire)[2] for wire in ("fp32", "bf16")}
            for strategy in strategies:
                gpu = {wire: run("gpu", strategy, wire) for wire in ("fp32", "bf16")}
                for wire, (ms, size, result) in gpu.items():
                    # Sums, and not rows, are rounded where partial sends them.
                    most = TWO_TIMES if (strategy, wire) == ("partial", "bf16") else limit
                    table.add(f"{run.__name__} {strategy}", wire, ms, size, difference(result, gpu["fp32"][2]),
                              difference(result, cpu[wire]), most)
    sys.exit(0 if table.right else 1)


if __name__ == "__main__":
    main()

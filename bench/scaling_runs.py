"""The commands of scaling tables: what is run for each entry, and the lines that become of what it prints
(bench/scaling.py decides the order, bench/scaling_sums.py computes)."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from results import line_of
from scaling_sums import latency_ms

# By name: graph like, features, classes, options. The first four are those of scripts/gpu-train-bench.
MODELS = {
    "gcn": ("products", 100, 47, {"layers": 3, "hidden": 256}),
    "sage": ("products", 100, 47, {"layers": 3, "hidden": 256}),
    "gin": ("products", 100, 47, {"layers": 5, "hidden": 64}),
    "gat": ("products", 100, 47, {"layers": 2, "hidden": 64, "heads": 4}),
}
SAMPLED = ("products", 100, 47, {"layers": 3, "hidden": 256})
SAMPLED_FOLDS = 3  # one trains
BUILT_IN = "H200, as built in"  # whose constants predict what was not measured
WAYS = {"cuda": ("pipelined", "partial", "bulk", "cusparse"), "cpu": ("bulk", "get", "replicate")}


class Failed(Exception):
    """Why an entry has no time."""


def ended(process, wait_seconds=10):
    """Ends a process and those that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(wait_seconds)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            continue
        return


def run(command, seconds, env):
    """Returns what a command printed. Throws Failed, with its last line or the limit that it passed."""
    try:
        process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"longer than {seconds:g} s") from None
    finally:
        if process.poll() is None:
            ended(process)
    if process.returncode != 0:
        lines = err.strip().splitlines() or [f"exit code {process.returncode}"]
        raise Failed(lines[-1].removeprefix("plait: ")[:200])
    return out


class Runs:
    """All runs on one machine. `o`: the options of scaling.py."""

    def __init__(self, o, device):
        self.o, self.device = o, device
        self.many = "--gpus" if device == "cuda" else "--ranks"
        self.machines = {}  # by number of ranks: the machine's name, once rates() has measured it
        self.rates_of = {}  # by number of ranks: {rate: value}
        # Earlier measurements on this machine decide nothing; the profile of this run does.
        self.env = os.environ | {"PLAIT_ROUTES": "", "PLAIT_MACHINES": str(o.folder.resolve() / "machines")}
        self.env.pop("PLAIT_MACHINE", None)

    def plait(self, *words, seconds=None):
        """The object that a command prints."""
        return json.loads(run([self.o.plait, *words, "--json", "--quiet"], seconds or self.o.seconds, self.env))

    def place(self, ranks):
        """The fields of a case that tell where it was measured, or of what it was predicted."""
        return {"device": self.device, "machine": self.machines.get(ranks, BUILT_IN), "ranks": ranks}

    def case(self, part, ranks, **more):
        return {"part": part} | self.place(ranks) | more

    # --- what comes before ---

    def rates(self, ranks):
        """Measures the machine for so many ranks, by which predictions go. Returns lines."""
        found = self.plait("doctor", "--measure", self.many, ranks)
        self.machines[ranks] = found["device"]
        self.rates_of[ranks] = {r["rate"]: r["value"] for r in found["rates"] if r["row_bytes"] is None}
        return [line_of("scaling-rates", self.place(ranks) | {"rate": r["rate"], "row_bytes": r["row_bytes"] or 0},
                        value=r["value"]) for r in found["rates"]]

    def graph(self, like, scale, width=0, classes=0):
        """The file of a graph, which is made if it is not there."""
        file = self.o.graphs_folder / (f"{like}-{scale:g}" + (f"-{width}-{classes}" if width else "") + ".plait")
        if not file.exists():
            features = ["--width", width] if width else ["--no-features"]
            self.plait("generate", "dcsbm", "--like", like, "--scale", scale, "--classes", classes, *features,
                       "-o", file, seconds=self.o.making_seconds)
        return file

    def predict(self, like, scale, ranks, schemes):
        """Predicts y = A x on so many ranks. Returns ({(partition, strategy, width): ms}, {width: way}, lines)."""
        found = self.plait("partition", self.graph(like, scale), self.many, ranks, "--partition", ",".join(schemes),
                           "--predict", ",".join(map(str, self.o.widths)), seconds=self.o.making_seconds)
        ms = {(s["scheme"], p["strategy"], p["width"]): p["ms"] for s in found["schemes"] for p in s["predicted"]}
        chosen = {c["width"]: (c["partition"], c["strategy"]) for c in found["chosen"]}
        case = self.place(ranks) | {"graph": like, "scale": scale}
        lines = [line_of("scaling-predicted", case | {"partition": p, "strategy": s, "width": w}, ms=value)
                 for (p, s, w), value in ms.items()]
        lines += [line_of("scaling-chosen", case | {"width": w}, partition=p, strategy=s)
                  for w, (p, s) in chosen.items()]
        return ms, chosen, lines

    # --- sums over neighbours ---

    def aggregate(self, part, like, scale, ranks, predicted):
        """Lines of y = A x: of the way that predictions choose at each width beside its rivals on the same
        partition, and of all ways on ranges of edges, by which predictions are tested."""
        ms, chosen = predicted
        partitions = {"edges": list(self.o.widths)} if part == "aggregate" else {}
        for width, (partition, _) in chosen.items():
            if width not in partitions.setdefault(partition, []):
                partitions[partition].append(width)
        for partition, widths in partitions.items():
            file = self.graph(like, scale)
            for row in self.ways(file, ranks, partition, widths):
                width, strategy = row["width"], row["strategy"]
                case = self.case(part, ranks, graph=like, scale=scale, width=width, partition=partition,
                                 strategy=strategy, chosen=chosen[width] == (partition, strategy))
                names = ("failed", "median_ms", "least_ms", "most_ms", "passes", "link_ms", "sum_ms", "link_bytes")
                fields = {name: row[name] for name in names if name in row}
                fields["predicted_ms"] = ms.get((partition, strategy, width))
                if "passes" in row:
                    fields["latency_ms"] = latency_ms(self.rates_of.get(ranks, {}), row["passes"])
                yield line_of("scaling", case, **fields)

    def ways(self, file, ranks, partition, widths):
        """Rows of plait bench aggregate. If one strategy fails, the others are measured one by one."""
        strategies = [s for s in WAYS[self.device] if ranks > 1 or s not in ("partial", "get", "replicate")]
        try:
            return self.bench(file, ranks, partition, widths, strategies)
        except Failed:
            rows = []
        for strategy in strategies:
            try:
                rows += self.bench(file, ranks, partition, widths, [strategy])
            except Failed as why:
                rows += [{"strategy": strategy, "width": width, "failed": str(why)} for width in widths]
        return rows

    def bench(self, file, ranks, partition, widths, strategies):
        return self.plait("bench", "aggregate", file, self.many, ranks, "--partition", partition, "--widths",
                          ",".join(map(str, widths)), "--strategies", ",".join(strategies), "--repetitions",
                          self.o.repetitions)["rows"]

    # --- training ---

    def train(self, part, ranks, model, graph, more):
        """A line of training: whole-graph steps, or an epoch on samples."""
        like, width, classes, sizes = graph
        if self.o.hidden:
            sizes = sizes | {"hidden": self.o.hidden}
        name = f"{model}, {sizes['layers']} layers of {sizes['hidden']}"
        case = self.case(part, ranks, graph=like, scale=self.o.scale, model=name)
        words = [word for key, value in sizes.items() for word in (f"--{key}", value)]
        try:
            found = self.plait("train", self.graph(like, self.o.scale, width, classes), "--model", model, *words,
                               self.many, ranks, "--seed", 1, *more)
        except Failed as why:
            return line_of("scaling", case, failed=str(why))
        return line_of("scaling", case, median_ms=found["epoch_ms"], comm_share=found["comm_share"],
                       strategy=found["strategy"], partition=found["partition"], last_loss=found["loss"][-1])

    def whole(self, ranks, model):
        return self.train("train", ranks, model, MODELS[model], ["--epochs", self.o.epochs])

    def sampled(self, ranks, part="sampled"):
        return self.train(part, ranks, "sage", SAMPLED, [
            "--epochs", 1, "--sampled", "--fanout", self.o.fanout, "--batch", self.o.batch, "--folds", SAMPLED_FOLDS])

    # --- rows by id ---

    def visible(self, ranks):
        """The environment in which a program sees so many GPUs."""
        seen = self.env.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(ranks)))).split(",")
        return self.env | {"CUDA_VISIBLE_DEVICES": ",".join(seen[:ranks])}

    def gather(self, ranks):
        """Lines of rows gathered from all GPUs, by gather_cuda_bench beside plait."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "gather.json"
            run([pathlib.Path(self.o.plait).parent / "gather_cuda_bench", f"--json={file}"], self.o.seconds,
                self.visible(ranks))
            for line in file.read_text().splitlines():
                found = json.loads(line)
                case = self.case("gather", ranks, bytes=found["case"]["bytes"], **{"from": found["case"]["from"]})
                yield line_of("scaling-gather", case, **{k: v for k, v in found.items() if k not in ("bench", "case")})

    def embeddings(self, ranks):
        """Lines of sums of embedding rows, by bench/nn/embedding_bags.py."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "embeddings.json"
            launcher = ["-m", "torch.distributed.run", "--nproc-per-node", ranks] if ranks > 1 else []
            run([sys.executable, *launcher, pathlib.Path(__file__).parent / "nn/embedding_bags.py", "--samples",
                 self.o.samples, "--scale", self.o.embedding_scale, "--json", file,
                 *(["--gpu"] if self.device == "cuda" else [])], self.o.seconds, self.env)
            for line in file.read_text().splitlines():
                found = json.loads(line)
                names = {name: found["case"][name] for name in ("step", "by", "samples", "width", "scale", "power")}
                times = {name: value for name, value in found.items() if name.endswith("_ms")}
                yield line_of("scaling-embeddings", self.case("embeddings", ranks, **names), **times)

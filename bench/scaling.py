"""Measures how all of Plait scales from one GPU to many of one host: aggregation, training, training on samples,
rows gathered by id, sums of embedding rows, and a graph of the shape of papers100M.

    scaling.py PLAIT [--gpus 1,2,4,8 | --ranks 1,2] [OPTION...]

First measures the machine (plait doctor --measure) and writes what the cost model predicts for every number of GPUs
to scaling-predicted-NUMBERS.json; then measures, one file per part (scaling-PART-NUMBERS.json; bench/measured/README.md
has the format); last prints tables of times, speedups, errors of predictions and what bounds each entry. An entry that
fails, or takes more than --seconds, is told and has the reason in the place of its time. The exit code is 1 if one
failed or was left out. With --ranks, all of this runs on the CPU, for a dry run at a small --scale."""
import argparse
import json
import pathlib
import sys
import time

from arguments import count, numbers, positive, share, some_of
from results import FOLDER
from scaling_runs import MODELS, Failed, Runs
from scaling_sums import aggregate_rows, embedding_rows, gather_rows, sentences, training_rows

PARTS = ("aggregate", "train", "sampled", "gather", "embeddings", "papers100M")
GRAPHS = ("reddit", "products", "orkut", "proteins")
USUAL = (1, 2, 4, 8)
SCHEMES = ("edges", "vertices", "clusters")


def options(arguments):
    parser = argparse.ArgumentParser(prog="gpu-scaling", description=__doc__.partition("    scaling.py")[0],
                                     epilog=__doc__.partition("[OPTION...]\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plait", help=argparse.SUPPRESS)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--gpus", type=numbers, metavar="N,...", help="numbers of GPUs (1,2,4,8, as far as there are so many)")
    where.add_argument("--ranks", type=numbers, metavar="N,...", help="numbers of CPU ranks, instead of GPUs")
    add = parser.add_argument
    add("--parts", type=some_of(PARTS), metavar="PART,...", help="of " + ", ".join(PARTS) + " (all; gather needs GPUs)")
    add("--graphs", type=some_of(GRAPHS), default=list(GRAPHS), metavar="GRAPH,...", help="to aggregate: of " + ", ".join(GRAPHS))
    add("--models", type=some_of(list(MODELS)), default=list(MODELS), metavar="MODEL,...", help="to train: of " + ", ".join(MODELS))
    add("--scale", type=share, default=1.0, help="factor of the graphs' vertices and edges (1)")
    add("--papers-scale", type=share, help="the same of papers100M (a tenth of --scale)")
    add("--widths", type=numbers, default=[16, 64, 128], metavar="N,...", help="features of a row to aggregate (16,64,128)")
    add("--hidden", type=count, help="features between layers (by model)")
    add("--epochs", type=count, default=15, help="of training on whole graphs (15)")
    add("--fanout", default="30,30,30", help="edges to sample per vertex and layer (30,30,30)")
    add("--batch", type=count, default=512, help="examples per rank and step on samples (512)")
    add("--samples", type=count, default=8192, help="samples per rank of embeddings (8192)")
    add("--embedding-scale", type=share, default=0.1, help="factor of the rows of embedding tables (0.1)")
    add("--repetitions", type=count, default=7, help="of each time of an aggregation (7)")
    add("--seconds", type=positive, default=300.0, help="limit of one command (300)")
    add("--making-seconds", type=positive, default=1800.0, help="limit of making a graph, or of counting its partitions (1800)")
    add("--seconds-most", type=positive, default=1e8, help="time after which no entry begins")
    add("--predict-only", action="store_true", help="write predictions, and measure no more than the machine's rates; "
        "also for more GPUs than there are, by the constants of the H200")
    add("--graphs-folder", type=pathlib.Path, default=pathlib.Path("build/graphs"), metavar="FOLDER")
    add("--folder", type=pathlib.Path, default=FOLDER, help="for files of JSON (build/bench)")
    o = parser.parse_args(arguments)
    o.papers_scale = o.papers_scale or o.scale / 10
    if o.ranks and "gather" in (o.parts or ()):
        parser.error("gather needs GPUs")
    o.parts = o.parts or [part for part in PARTS if not o.ranks or part != "gather"]
    return o, parser


class Scaling:
    def __init__(self, o, runs, counts, here):
        self.o, self.runs, self.counts, self.here = o, runs, counts, here
        self.begun, self.lost, self.lines = time.monotonic(), 0, []
        self.predicted = {}  # by (graph, ranks)

    def file(self, part):
        return self.o.folder / f"scaling-{part}-{'-'.join(map(str, self.counts))}.json"

    def tell(self, text):
        print(f"{time.monotonic() - self.begun:6.0f} s  {text}", file=sys.stderr, flush=True)

    def lose(self, name, why):
        self.lost += 1
        self.tell(f"{name}: {why}")

    def entry(self, name, file, lines):
        """Measures an entry, whose lines the function `lines` gives, and keeps them as soon as they are there."""
        if time.monotonic() - self.begun > self.o.seconds_most:
            return self.lose(name, "left out, the time is over")
        try:
            found = list(lines())
        except Failed as why:
            return self.lose(name, why)
        with file.open("a") as out:
            out.write("".join(found))
        self.lines += map(json.loads, found)
        failed = {line["failed"] for line in map(json.loads, found) if "failed" in line}
        self.lost += bool(failed)
        self.tell(f"{name}: {'; '.join(sorted(failed)) or 'measured'}")

    def graphs(self):
        """(part, graph, scale, partitions that may be chosen) of all aggregations."""
        if "aggregate" in self.o.parts:
            yield from (("aggregate", graph, self.o.scale, SCHEMES) for graph in self.o.graphs)
        if "papers100M" in self.o.parts:
            yield "papers100M", "papers100M", self.o.papers_scale, SCHEMES

    def predict(self):
        file = self.file("predicted")
        file.write_text("")
        for ranks in self.counts if self.o.ranks else [n for n in self.counts if n <= self.here]:
            self.entry(f"rates of {ranks}", file, lambda ranks=ranks: self.runs.rates(ranks))
        for _, graph, scale, schemes in self.graphs():
            for ranks in self.counts:
                def lines(graph=graph, scale=scale, ranks=ranks, schemes=schemes):
                    ms, chosen, found = self.runs.predict(graph, scale, ranks, schemes if ranks > 1 else ("edges",))
                    self.predicted[graph, ranks] = ms, chosen
                    return found
                self.entry(f"prediction of {graph} on {ranks}", file, lines)
        self.tell(f"predictions are in {file}")

    def measure(self):
        o, runs = self.o, self.runs
        for part in o.parts:
            self.file(part).write_text("")
        for part, graph, scale, _ in self.graphs():
            for ranks in self.counts:
                if (graph, ranks) not in self.predicted:
                    self.lose(f"{graph} on {ranks}", "left out, as it has no prediction")
                    continue
                self.entry(f"{graph} on {ranks}", self.file(part),
                           lambda part=part, graph=graph, scale=scale, ranks=ranks: runs.aggregate(
                               part, graph, scale, ranks, self.predicted[graph, ranks]))
        for ranks in self.counts:
            for model in o.models if "train" in o.parts else ():
                self.entry(f"training of {model} on {ranks}", self.file("train"),
                           lambda ranks=ranks, model=model: [runs.whole(ranks, model)])
            if "sampled" in o.parts:
                self.entry(f"samples on {ranks}", self.file("sampled"), lambda ranks=ranks: [runs.sampled(ranks)])
            for part in ("gather", "embeddings"):
                if part in o.parts:
                    self.entry(f"{part} on {ranks}", self.file(part),
                               lambda part=part, ranks=ranks: getattr(runs, part)(ranks))

    def report(self):
        def show(header, rows):
            rows = list(rows)
            widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
            for row in [header, *rows] if rows else ():
                print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
            if rows:
                print()
        def of(bench):
            return [line for line in self.lines if line["bench"] == bench]
        entries = of("scaling")
        sums = [line for line in entries if line["case"]["part"] in ("aggregate", "papers100M")]
        show(("graph, width", "on", "way", "ms", "limit", "/ limit", "bulk /", "cusparse /", "predicted", "error",
              "from 1", "bound"), aggregate_rows(sums))
        show(("training", "on", "way", "ms of an epoch", "communication", "from 1", "bound"),
             training_rows([line for line in entries if line not in sums]))
        show(("bytes of a row", "on", "own, GB/s", "all", "zipf", "distinct", "hot"), gather_rows(of("scaling-gather")))
        show(("embeddings", "on", "plait ms", "torch ms", "ratio", "M samples/s"),
             embedding_rows(of("scaling-embeddings")))
        for sentence in sentences(sums):
            print(sentence)


def main(arguments=None):
    o, parser = options(arguments)
    runs = Runs(o, "cpu" if o.ranks else "cuda")
    try:
        here = len(runs.plait("doctor")["gpus"])
    except Failed as why:
        sys.exit(f"gpu-scaling: {why}")
    counts = o.ranks or o.gpus or [n for n in USUAL if n <= here or o.predict_only]
    if not o.ranks and not o.predict_only and (not counts or counts[-1] > here):
        parser.error(f"this host has {here} GPUs; --ranks 1,2 runs on the CPU")
    for folder in (o.folder, o.graphs_folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"{folder}: {error.strerror}")
    scaling = Scaling(o, runs, counts, here)
    scaling.predict()
    if not o.predict_only:
        scaling.measure()
        scaling.report()
    sys.exit(1 if scaling.lost else 0)


if __name__ == "__main__":
    main()

"""Measures aggregation by ranks on the CPU, for the test of what the cost model predicts.

    cpu_ranks.py PLAIT FILE [--ranks 2,4] [--runs 3] [GRAPH...]

Writes the rates of the machine (`plait doctor --measure`), the counts of each part (`plait partition`) and the
times of each strategy and width (`plait tune`) to FILE, one line each (bench/measured/README.md). Each
time is the least of the medians of all runs, which `medians` lists."""
import argparse
import os
import pathlib
import sys

from arguments import count, numbers
from results import line_of, rounded
from running import result_of

WIDTHS = "8,32,128"
GRAPHS = {
    "reddit": "dcsbm --like reddit --scale 0.015 --classes 0 --no-features",
    "products": "dcsbm --like products --scale 0.02 --classes 0 --no-features",
    "orkut": "dcsbm --like orkut --scale 0.01 --classes 0 --no-features",
    "uniform": "uniform --vertices 100000 --edges 2000000",
    "big": "uniform --vertices 600000 --edges 3000000",
    "rmat": "rmat --vertices 65536 --edges 1000000",
    "grid": "grid --rows 500 --columns 500",
    "ring": "ring --vertices 300000",
    "small": "small-world --vertices 100000 --degree 10",
    "crawl": "crawl --vertices 100000 --edges 1500000",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plait")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--ranks", type=numbers, default=[2, 4], metavar="N,...")
    parser.add_argument("--runs", type=count, default=3)
    parser.add_argument("--graphs", type=pathlib.Path, default=pathlib.Path("build/graphs"))
    parser.add_argument("names", nargs="*", metavar="GRAPH", help=", ".join(GRAPHS))
    o = parser.parse_intermixed_args()
    if unknown := [name for name in o.names if name not in GRAPHS]:
        parser.error(f"there is no graph '{unknown[0]}', but {', '.join(GRAPHS)}")
    if o.ranks[0] == 1:
        parser.error("one rank moves no rows; --ranks begins at 2")

    def printed(*arguments):
        return result_of(*arguments, program=o.plait)

    try:
        o.graphs.mkdir(parents=True, exist_ok=True)
        printed("doctor")  # before the file is replaced
        out = o.file.open("w")
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    with out:
        for ranks in o.ranks:
            run = {"processors": os.cpu_count(), "ranks": ranks}
            for rate in printed("doctor", "--measure", "--ranks", ranks)["rates"]:
                case = {"rate": rate["rate"], "row_bytes": rate["row_bytes"] or 0}
                out.write(line_of("cpu-rates", run | case, value=rate["value"]))
            for name in o.names or GRAPHS:
                graph = o.graphs / f"ranks-{name}.plait"
                if not graph.exists():
                    printed("generate", *GRAPHS[name].split(), "-o", graph)
                case = run | {"graph": name}
                span = printed("info", graph)["averaged_edge_span"]
                parts = printed("partition", graph, "--ranks", ranks, "--partition", "edges")["schemes"][0]["ranks"]
                for rank, part in enumerate(parts):
                    counts = {key: part[key] for key in ("vertices", "edges", "remote_edges", "halo_rows")}
                    out.write(line_of("cpu-parts", case | {"rank": rank}, averaged_edge_span=span, **counts))
                medians = {}
                for _ in range(o.runs):
                    for row in printed("tune", graph, "--ranks", ranks, "--partitions", "edges", "--widths", WIDTHS,
                                       "--repetitions", 5, "--dry-run")["rows"]:
                        medians.setdefault((row["width"], row["strategy"]), []).append(row["median_ms"])
                for (width, strategy), ms in sorted(medians.items()):
                    out.write(line_of("cpu-ranks", case | {"width": width, "strategy": strategy},
                                      least_ms=min(ms), medians=[rounded(m) for m in ms]))
                print(f"{name} on {ranks} ranks", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

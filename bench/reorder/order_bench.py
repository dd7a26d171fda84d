"""Times plait reorder --method communities on graphs of many kinds, with one program or several in turns.

    order_bench.py [--data FOLDER] [--runs 7] [--threads 2] [--plait PROGRAM ...] [--json FILE]

Makes a block model like products, an R-MAT graph, a small world and a grid, and reads those of cnr-2000.npz,
email-enron.npz and coauthor-cs.npz that FOLDER has. Every run is a process of its own, whose time is that of
the whole order, without reading and writing. Prints the least and the median milliseconds, the modularity
and the averaged edge span of each program's order. Other work on the machine makes times longer: use idle
cores. FILE (build/bench/order.json) receives the measurements as JSON.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results
from running import PLAIT, result_of

MADE = {
    "like products, scale 0.1": "dcsbm --like products --scale 0.1 --no-features",
    "R-MAT": "rmat --vertices 262144 --edges 8000000",
    "small world": "small-world --vertices 300000 --degree 10",
    "grid": "grid --rows 1000 --columns 1000",
}
READ = ("cnr-2000", "email-enron", "coauthor-cs")


def graphs(options, folder):
    """Yields names of graphs and their files, of which only one exists at a time."""
    path = folder / "graph.plait"
    for name, words in MADE.items():
        result_of("generate", *words.split(), "-o", path, program=options.plait[0])
        yield name, path
    for name in READ:
        archive = options.data / f"{name}.npz" if options.data else None
        if archive and archive.exists():
            result_of("convert", archive, path, program=options.plait[0])
            yield name, path


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plait", nargs="+", default=[PLAIT])
    parser.add_argument("--json", default=results.FOLDER / "order.json")
    options = parser.parse_args()
    kept = results.Results(options.json)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for graph, path in graphs(options, folder):
            found = {program: [] for program in options.plait}
            for _ in range(options.runs):
                for program, runs in found.items():
                    runs.append(result_of("reorder", path, folder / "ordered.plait", "--method", "communities",
                                          "--threads", options.threads, program=program))
            for program, runs in found.items():
                ms, last = [1e3 * run["seconds"] for run in runs], runs[-1]
                print(f"{graph:25} {last['edges']:9} edges {min(ms):8.1f} {statistics.median(ms):8.1f} ms, modularity "
                      f"{last['modularity']:.4f}, span {last['averaged_edge_span']:8.0f}  {program}", flush=True)
                kept.add("order", {"graph": graph, "threads": options.threads, "program": str(program)},
                         edges=last["edges"], modularity=last["modularity"],
                         span=last["averaged_edge_span"], **results.spread(ms))


if __name__ == "__main__":
    main()

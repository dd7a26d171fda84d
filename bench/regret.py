"""Measures every way to aggregate on generated graphs, for the test of what Plait chooses unmeasured.

    regret.py PLAIT FILE [--gpus N] [--seconds S] [GRAPH...]

For each graph of GRAPHS, writes the counts of each partition (`plait partition`) and the times of each way
and width (`plait tune`) to FILE, one line each (bench/measured/README.md). No graph begins after S seconds."""
import argparse
import concurrent.futures
import pathlib
import sys
import time

from results import line_of
from running import result_of

PARTITIONS = ("edges", "vertices", "clusters")
WIDTHS = ("3,32,100,256", "16,47,128,300", "8,64,200,512")


def dcsbm(vertices, edges, leaving, exponent, communities=50):
    return (f"dcsbm --vertices {vertices} --edges {edges} --leaving {leaving} --exponent {exponent} "
            f"--communities {communities} --classes 0 --no-features")


# Sizes, mixing and exponents are spread so that neighbours in the list differ; half of the graphs by the
# parity of a checksum of their names are set aside (tests/plan/regret_test.cpp).
GRAPHS = {
    "mixed-05": dcsbm(400000, 8000000, 0.05, 2.5),
    "rmat-s": "rmat --vertices 262144 --edges 4000000",
    "grid-s": "grid --rows 1000 --columns 1000",
    "mixed-60": dcsbm(400000, 8000000, 0.6, 2.5),
    "crawl-s": "crawl --vertices 500000 --edges 6000000",
    "star": "star --vertices 1000000",
    "flat-40": dcsbm(300000, 6000000, 0.2, 4.0),
    "small-world": "small-world --vertices 1000000 --degree 8",
    "bipartite-wide": "bipartite --vertices 600000 --edges 6000000 --left 20000",
    "heavy-16": dcsbm(300000, 6000000, 0.2, 1.6),
    "uniform": "uniform --vertices 500000 --edges 5000000",
    "dense-30": dcsbm(60000, 16000000, 0.3, 2.0, 20),
    "tiny": dcsbm(50000, 1000000, 0.1, 2.2),
    "rmat-l": "rmat --vertices 1048576 --edges 20000000",
    "mixed-20": dcsbm(1000000, 16000000, 0.2, 3.0, 200),
    "bipartite-even": "bipartite --vertices 400000 --edges 4000000 --left 200000",
    "crawl-l": "crawl --vertices 2000000 --edges 24000000",
    "uniform-thin": "uniform --vertices 2000000 --edges 6000000",
    "grid-l": "grid --rows 2000 --columns 2500",
    "heavy-mixed": dcsbm(500000, 10000000, 0.4, 1.8, 100),
    "ring-near": "small-world --vertices 1500000 --degree 4 --rewired 0.01",
    "mixed-10": dcsbm(200000, 20000000, 0.1, 2.5, 41),
    "dense-05": dcsbm(30000, 6000000, 0.05, 3.5, 10),
    "large": dcsbm(2000000, 40000000, 0.15, 2.2, 400),
}


def counts(ranks):
    """The counts of one partition as tests/plan/regret_test.cpp reads them, one list per part."""
    parts = []
    for r in ranks:
        gpus, partial = r["gpus"], r["gpus"]["partial"]
        parts.append([r["vertices"], r["edges"], r["remote_edges"], r["halo_rows"], gpus["rows"], gpus["listed_rows"],
                      gpus["packed_rows"], *(partial[name] for name in (
                          "rows", "listed_rows", "packed_rows", "kept_edges", "sums", "summed_edges"))])
    return parts


def prepare(plait, name, gpus, folder):
    """Generates the graph, unless it is there. Returns its counts by partition."""
    file = folder / f"{name}.plait"
    if not file.exists():
        result_of("generate", *GRAPHS[name].split(), "--seed", 1, "-o", file, program=plait)
    found = {}
    for scheme in PARTITIONS:
        one = result_of("partition", file, "--ranks", gpus, "--partition", scheme, program=plait)["schemes"][0]
        found[scheme] = counts(one["ranks"]), one["seconds"]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plait")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--graphs", type=pathlib.Path, default=pathlib.Path("build/graphs"))
    parser.add_argument("names", nargs="*")
    o = parser.parse_intermixed_args()
    begun = time.monotonic()
    o.graphs.mkdir(parents=True, exist_ok=True)
    names = o.names or list(GRAPHS)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        prepared = dict(zip(names, pool.map(lambda name: prepare(o.plait, name, o.gpus, o.graphs), names)))
    with open(o.file, "w") as out:
        for name in names:
            if time.monotonic() - begun > o.seconds:
                print(f"{name}: left out, the time is over", file=sys.stderr)
                continue
            widths = WIDTHS[list(GRAPHS).index(name) % len(WIDTHS)]
            found = result_of("tune", o.graphs / f"{name}.plait", "--gpus", o.gpus, "--widths", widths, "--partitions",
                              ",".join(PARTITIONS), "--dry-run", program=o.plait)
            case = {"graph": name, "gpus": o.gpus}
            for scheme, (parts, seconds) in prepared[name].items():
                out.write(line_of("counts", case | {"partition": scheme}, seconds=seconds, parts=parts))
            for row in found["rows"]:
                way = {key: row[key] for key in ("partition", "strategy", "width")}
                out.write(line_of("tune", case | way, median_ms=row["median_ms"]))
            out.flush()
            print(f"{name}: {len(found['rows'])} times, {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()

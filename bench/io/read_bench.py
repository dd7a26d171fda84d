"""Times reading of graph files, beside fast_matrix_market, SciPy and a plain read of the same file.

    read_bench.py [--vertices 200000] [--edges 10000000] [--repeat 5] [--threads 2] [--folder DIR]
                  [--json FILE]

Generates an R-MAT graph, writes it in every format, and checks that Plait and SciPy read the same
entries. Then prints one table: Matrix Market by Plait (its edge list: `parse`), by fast_matrix_market and by
SciPy, taken in turns, and for each format the time of a plain read into memory that is there already,
of numpy.fromfile, of the format's reader, and of the whole way to a validated graph. Times are medians,
in milliseconds, of files in the page cache; FILE (build/bench/read.json) receives them as JSON.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import fast_matrix_market
import numpy as np
import scipy.io

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results
from running import ROOT, output_of, result_of

READER = ROOT / "build/bin/read_bench"
ENDINGS = [".mtx", ".graph", ".adj", ".sg", ".wsg", "_beg_pos.bin"]


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def make_files(options, folder):
    graph = folder / "g.plait"
    result_of("generate", "rmat", "--vertices", options.vertices, "--edges", options.edges, "--seed", 1, "-o", graph,
              threads=options.threads)
    # METIS and the GAP suite's short form hold undirected graphs.
    both = folder / "u.plait"
    result_of("convert", graph, both, "--undirected", "--no-loops", threads=options.threads)
    for ending in ENDINGS:
        source = both if ending == ".graph" else graph
        result_of("convert", source, folder / f"g{ending}", threads=options.threads)


def check(options, folder):
    output_of(folder / "g.mtx", "--rows", folder / "rows.npy", program=READER, threads=options.threads)
    found = np.load(folder / "rows.npy")
    matrix = scipy.io.mmread(folder / "g.mtx", spmatrix=False)
    wanted = np.stack([matrix.row, matrix.col, np.ones(matrix.nnz)]).astype(np.float64)
    wanted = wanted[:, np.lexsort(wanted[1::-1])]
    if not np.array_equal(found, wanted):
        sys.exit("read_bench: Plait and SciPy do not read the same entries")


def compare_matrix_market(options, folder, kept):
    path = folder / "g.mtx"
    fast_matrix_market.PARALLELISM = options.threads
    times = {"plait": [], "fast_matrix_market": [], "scipy": []}
    for _ in range(options.repeat):
        times["plait"].append(json.loads(
            output_of(path, "--repeat", 1, program=READER, threads=options.threads))["parse"])
        times["fast_matrix_market"].append(seconds(
            lambda: fast_matrix_market.mmread(path, parallelism=options.threads)))
        times["scipy"].append(seconds(lambda: scipy.io.mmread(path, spmatrix=False)))
    medians = {name: statistics.median(values) for name, values in times.items()}
    size = path.stat().st_size
    print(f"Matrix Market, {size / 1e6:.0f} MB, {options.threads} threads")
    versions = {name: importlib.metadata.version(name) for name in ("fast_matrix_market", "scipy")}
    for name, median in medians.items():
        low, high = min(times[name]), max(times[name])
        print(f"  {name:20} {median * 1e3:8.1f} ms ({low * 1e3:.1f} to {high * 1e3:.1f}), "
              f"{size / median / 1e9:.2f} GB/s, {median / medians['plait']:.2f} times plait's")
        kept.add("read-mtx", {"reader": name}, **results.spread([1e3 * t for t in times[name]]),
                 **({"version": versions[name]} if name in versions else {}))


def files_of(path):
    """MGG's graphs are three files."""
    if not path.name.endswith("_beg_pos.bin"):
        return [path]
    return sorted(path.parent.glob(path.name.replace("beg_pos", "*")))


def from_file_seconds(options, path):
    """Reads a file with NumPy into fresh memory, which any reader's result takes, too."""
    return statistics.median(
        seconds(lambda: [np.fromfile(each, np.uint8) for each in files_of(path)])
        for _ in range(options.repeat))


def compare_formats(options, folder, kept):
    print(f"{'format':14} {'MB':>7} {'plain':>8} {'numpy':>8} {'parse':>8} {'whole':>8} {'/plain':>7} "
          f"{'/numpy':>7}")
    for ending in ENDINGS:
        result = json.loads(output_of(folder / f"g{ending}", "--repeat", options.repeat, program=READER,
                                      threads=options.threads))
        plain, parse, whole = (result[name] * 1e3 for name in ("plain", "parse", "whole"))
        numpy = from_file_seconds(options, folder / f"g{ending}") * 1e3
        for step, ms in {"plain": plain, "numpy": numpy, "parse": parse, "whole": whole}.items():
            kept.add("read", {"format": ending, "step": step}, median_ms=ms, mb=result["bytes"] / 1e6)
        print(f"{ending:14} {result['bytes'] / 1e6:7.1f} {plain:8.2f} {numpy:8.2f} {parse:8.2f} "
              f"{whole:8.2f} {parse / plain:7.2f} {parse / numpy:7.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vertices", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", help="where files are made; a temporary one if not given")
    parser.add_argument("--json", default=results.FOLDER / "read.json")
    options = parser.parse_args()
    kept = results.Results(options.json)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        make_files(options, pathlib.Path(folder))
        check(options, pathlib.Path(folder))
        compare_matrix_market(options, pathlib.Path(folder), kept)
        compare_formats(options, pathlib.Path(folder), kept)


if __name__ == "__main__":
    main()

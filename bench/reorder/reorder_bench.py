"""Times plait reorder's communities beside NetworKit's label propagation (PLP) on the same graph.

    reorder_bench.py [--like products] [--scale 0.05] [--repeat 5] [--threads 2] [--folder DIR]
                     [--json FILE]

Generates a graph with communities and shuffled ids, and finds communities with both in turns: Plait's
time is that of the whole order, NetworKit's that of PLP.run() alone; neither counts reading. Prints
medians in millions of edges (both directions) per second, and the modularity that each reaches, also that
of NetworKit's Louvain method (PLM); then the averaged edge span and the rows that four ranks read from
each other, before and after. Needs networkit (PyPI), which the project does not install. FILE
(build/bench/reorder.json) receives the measurements as JSON.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

import networkit
import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results
from running import result_of


def graph_of(path):
    """Returns NetworKit's graph, which has each undirected edge once."""
    with np.load(path) as archive:
        source, target = archive["edge_index"]
    once = source < target
    data = np.ones(int(once.sum())), (source[once].astype(np.uint64), target[once].astype(np.uint64))
    return networkit.GraphFromCoo(data, n=int(max(source.max(), target.max())) + 1, directed=False)


def communities(method, graph):
    """Returns the seconds that the method takes, and the modularity of what it finds."""
    algorithm = method(graph)
    begin = time.perf_counter()
    algorithm.run()
    seconds = time.perf_counter() - begin
    return seconds, networkit.community.Modularity().getQuality(algorithm.getPartition(), graph)


def halo_rows(path, threads):
    figures = result_of("partition", path, "--ranks", 4, "--partition", "edges", threads=threads)
    return figures["schemes"][0]["halo_rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--like", default="products")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", help="where files are made; a temporary one if not given")
    parser.add_argument("--json", default=results.FOLDER / "reorder.json")
    options = parser.parse_args()
    kept, threads = results.Results(options.json), options.threads
    networkit.setNumberOfThreads(threads)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        before, after, arrays = (pathlib.Path(folder) / name for name in ("g.plait", "r.plait", "g.npz"))
        edges = result_of("generate", "dcsbm", "--like", options.like, "--scale", options.scale,
                          "--no-features", "-o", before, threads=threads)["edges"]
        result_of("convert", before, arrays, threads=threads)
        graph = graph_of(arrays)
        times = {"plait": [], "PLP": [], "PLM": []}
        modularity = {}
        for _ in range(options.repeat):
            found = result_of("reorder", before, after, "--method", "communities", threads=threads)
            times["plait"].append(found["seconds"])
            modularity["plait"] = found["modularity"]
            for name in ("PLP", "PLM"):
                seconds, modularity[name] = communities(getattr(networkit.community, name), graph)
                times[name].append(seconds)
        medians = {name: float(np.median(list_of)) for name, list_of in times.items()}
        print(f"{options.like} x {options.scale}: {graph.numberOfNodes()} vertices, {edges} edges, "
              f"{threads} threads, networkit {networkit.__version__}")
        for name, median in medians.items():
            print(f"  {name:6} {median * 1e3:9.1f} ms ({min(times[name]) * 1e3:.1f} to "
                  f"{max(times[name]) * 1e3:.1f}), {edges / median / 1e6:7.1f} M edges/s, "
                  f"{median / medians['plait']:5.2f} times plait's, modularity {modularity[name]:.4f}")
            kept.add("reorder", {"graph": options.like, "scale": options.scale, "method": name,
                                 "threads": threads}, edges=edges, modularity=modularity[name],
                     **results.spread([1e3 * t for t in times[name]]))
        print(f"  averaged edge span {found['averaged_edge_span_before']:.0f} before, "
              f"{found['averaged_edge_span']:.0f} after; halo rows of 4 ranks "
              f"{halo_rows(before, threads)} before, {halo_rows(after, threads)} after")


if __name__ == "__main__":
    main()

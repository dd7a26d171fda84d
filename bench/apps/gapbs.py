"""Times analytics apps on the CPU beside the GAP Benchmark Suite (Beamer, Asanovic and Patterson, 2015), whose
programs are built elsewhere, on the same graphs with as many threads.

    gapbs.py GAPBS [--apps bfs components triangles] [--graphs rmat grid dcsbm path] [--threads 2] [--repetitions 15] [--json FILE]

GAPBS: a folder with its programs bfs, cc, tc and converter. Both sides are timed in turn, three times each, and the best
of three medians counts on either side, as other programs may have the cores meanwhile. Plait's answers are verified
first. Its bfs finds distances and the least parents, that of GAP any parents. Its triangles are those of every vertex,
of edges in any directions; GAP counts all together, of a graph that its converter has made undirected and simple."""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import json as jsons

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from results import FOLDER, Results

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIT = ROOT / "build/bin/plait"
GRAPHS = {
    "rmat": ["rmat", "--vertices", "1048576", "--edges", "16777216", "--seed", "1"],
    "grid": ["grid", "--rows", "1000", "--columns", "1000"],
    "dcsbm": ["dcsbm", "--vertices", "300000", "--edges", "3750000", "--no-features"],
    "path": ["path", "--vertices", "1000000"],
}
PROGRAMS = {"bfs": "bfs", "components": "cc", "triangles": "tc"}
SOURCE = {"rmat": 69614}  # a vertex of the largest component


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def prepare(name, folder, gapbs):
    """Returns the files of a graph: Plait's, GAP's, and GAP's for programs that need it marked as undirected."""
    ours, theirs, undirected = folder / f"{name}.plait", folder / f"{name}.sg", folder / f"{name}-undirected.sg"
    if not ours.exists():
        run(PLAIT, "generate", *GRAPHS[name], "-o", folder / f"{name}-directed.plait", "--quiet")
        run(PLAIT, "convert", folder / f"{name}-directed.plait", ours, "--undirected", "--quiet")
    if not theirs.exists():
        text = folder / f"{name}.txt"
        run(PLAIT, "convert", ours, text, "--quiet")
        lines = [line for line in text.read_text().splitlines(True) if not line.startswith("#")]
        (folder / f"{name}.el").write_text("".join(lines))
        run(gapbs / "converter", "-f", folder / f"{name}.el", "-b", theirs)
    if not undirected.exists():
        run(gapbs / "converter", "-s", "-f", folder / f"{name}.el", "-b", undirected)
    return ours, theirs, undirected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gapbs", type=pathlib.Path)
    parser.add_argument("--apps", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=list(GRAPHS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--json", default=FOLDER / "apps-cpu.json")
    o = parser.parse_args()
    folder = ROOT / "build/graphs"
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(o.json)
    threads = {"env": {"OMP_NUM_THREADS": str(o.threads), "PATH": "/usr/bin:/bin"}}
    for graph in o.graphs:
        ours, theirs, undirected = prepare(graph, folder, o.gapbs)
        for app in o.apps:
            program, file = PROGRAMS[app], undirected if app == "triangles" else theirs
            source = SOURCE.get(graph, 7)
            asked = ["--source", source] if app == "bfs" else []
            given = ["-r", source] if app == "bfs" else []
            plait, rival = [], []
            for _ in range(3):
                found = jsons.loads(run(PLAIT, app, ours, *asked, "--verify", "--json", "--quiet",
                                        "--repetitions", o.repetitions, **threads))
                plait.append((found["milliseconds"], found["least_ms"], found["most_ms"]))
                out = run(o.gapbs / program, "-f", file, *given, "-n", o.repetitions, **threads)
                ms = [1e3 * float(t) for t in re.findall(r"Trial Time:\s*([\d.]+)", out)]
                rival.append((statistics.median(ms), min(ms), max(ms)))
            for by, times in (("plait", plait), ("gapbs", rival)):
                median, least, most = min(times)
                results.add("apps", {"app": app, "graph": graph, "device": "cpu", "ranks": 1, "by": by},
                            median_ms=median, least_ms=least, most_ms=most)
            print(f"{graph} {app}: plait {min(plait)[0]:.2f} ms, gapbs {min(rival)[0]:.2f} ms, "
                  f"{min(rival)[0] / min(plait)[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()

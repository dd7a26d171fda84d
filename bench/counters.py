"""Reads hardware counters of the kernels of one aggregation, by settings, for docs/studies.md.

    counters.py PLAIT FILE GRAPH NAME [--width 64]

Runs `plait bench aggregate GRAPH --gpus 1` under Nsight Compute (ncu) once for each entry of ENTRIES, and writes
one line per entry to FILE (bench/measured/README.md): times and bytes are of all kernels of a step, added; rates
are those of the kernel that takes longest."""
import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import sys

from results import line_of

KERNELS = "get_kernel|add_partial_sums|spmm_kernel|add_few|add_hubs"
# By the key of a line: the counter, and the number that turns it into the key's unit. Sums are added.
SUMS = {"kernel_ms": ("gpu__time_duration.sum", 1e-6),
        "read_mb": ("dram__bytes_read.sum", 1e-6),
        "written_mb": ("dram__bytes_write.sum", 1e-6),
        "atomics": ("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", 1)}
RATES = {"l1_hits": "l1tex__t_sector_hit_rate.pct",
         "l2_hits": "lts__t_sector_hit_rate.pct",
         "active_warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
         "sm_use": "sm__throughput.avg.pct_of_peak_sustained_elapsed"}


def get(**settings):
    return ["--strategies", "get", *([] if "get" in settings else ["--get", "async"]),
            *(word for key, value in settings.items() for word in (f"--{key}", value))]


ENTRIES = {
    **{f"ngs {ps}": get(ps=ps) for ps in (1, 4, 16, 64, 256)},
    **{f"dw {dw}": get(dw=dw) for dw in (1, 2, 4, 8, 16, 32)},
    "atomic": get(sums="atomic"), "ordered": get(sums="ordered"),
    "ngs 4, atomic": get(ps=4, sums="atomic"), "ngs 4, ordered": get(ps=4),
    **{f"{mode}, wpb {wpb}": get(get=mode, wpb=wpb) for mode in ("async", "blocking") for wpb in (1, 4, 16)},
    **{f"pipelined, {order}": ["--strategies", "pipelined", "--reorder", order]
       for order in ("none", "degree", "communities")},
}


def number(text):
    return float(text.replace(",", ""))


def counters(plait, graph, width, options):
    """The counters of the kernels of one step, by kernel: medians over the steps that were seen."""
    metrics = ",".join([name for name, _ in SUMS.values()] + list(RATES.values()))
    found = subprocess.run(
        ["ncu", "--clock-control", "none", "--csv", "--target-processes", "all", "--metrics", metrics, "-k",
         f"regex:{KERNELS}", "-c", "12", plait, "bench", "aggregate", str(graph), "--gpus", "1", "--widths", str(width),
         "--repetitions", "1", "--quiet", "--gpu-timeout", "0", "--timeout", "300", *map(str, options)],
        capture_output=True, check=False, text=True)
    lines = [line for line in found.stdout.splitlines() if line.startswith('"')]
    if found.returncode != 0 or not lines:
        raise SystemExit(f"ncu: {found.stderr.strip() or found.stdout.strip()[-500:]}")
    values = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in csv.DictReader(lines):
        values[row["Kernel Name"]][row["Metric Name"]].append(number(row["Metric Value"]))
    return {kernel: {name: statistics.median(of) for name, of in metrics.items()} for kernel, metrics in values.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plait")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("--width", type=int, default=64)
    o = parser.parse_args()
    with o.file.open("a") as out:
        for name, options in ENTRIES.items():
            kernels = counters(o.plait, o.graph, o.width, options)
            fields = {key: scale * sum(k[metric] for k in kernels.values()) for key, (metric, scale) in SUMS.items()}
            longest = max(kernels.values(), key=lambda k: k["gpu__time_duration.sum"])
            fields |= {key: longest[metric] for key, metric in RATES.items()}
            line = line_of("counters", {"graph": o.name, "width": o.width, "name": name}, **fields)
            out.write(line)
            out.flush()
            print(name, json.dumps({k: round(v, 3) for k, v in fields.items()}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

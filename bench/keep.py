"""Adds what `plait bench aggregate`, `plait bench model`, `plait bench messages`, `plait bench zoo`,
`plait study`, `plait train` or an analytics app printed, with --json, to a file of measurements.

    plait ... --json | keep.py FILE [NAME=VALUE...]

Prints a line of text for each measurement. NAME=VALUE tells more of the case than the JSON does."""
import json
import sys

from results import line_of


def measurements(run, more):
    """(bench, case, fields) of what plait printed."""
    if "study" in run:
        for row in run["rows"]:
            case = {"graph": run["graph"], "study": run["study"], "device": run["device"], "ranks": run["ranks"],
                    "name": row["name"], "timed": row["timed"]}
            names = ("median_ms", "least_ms", "most_ms", "ratio", "paper_ratio", "repaid_after_steps",
                     "ratio_to", "blocks_at_once", "registers", "occupancy", "link_bytes", "gb_s", "link_gb_s", "paper_link_gb_s",
                     "planned_bytes",
                     "measured_bytes", "test_metric", "test_deviation", "val_metric", "epochs_to_best")
            yield "study", case | more, {name: row[name] for name in names if row.get(name) is not None}
    elif "rounds" in run:
        case = {"graph": run["graph"], "device": run["device"], "ranks": run["ranks"]}
        names = ("median_ms", "least_ms", "most_ms", "rounds", "values", "bytes")
        yield "messages", case | more, {name: run[name] for name in names}
    elif "app" in run:
        case = {"app": run["app"], "graph": run["graph"], "device": run["device"], "ranks": run["ranks"], "by": "plait"}
        yield "apps", case | more, {"median_ms": run["milliseconds"], "least_ms": run["least_ms"],
                                    "most_ms": run["most_ms"]}
    elif "geometric_mean" in run:
        for row in run["rows"]:
            case = {"graph": row["graph"], "gpus": run["gpus"], "width": row["width"]}
            names = ("median_ms", "least_ms", "most_ms", "rival", "rival_median_ms", "shape")
            yield "zoo", case | more, {name: row[name] for name in names}
    elif "parameters" in run:
        for row in run["rows"]:
            case = {"graph": run["graph"], "model": run["model"], "work": row["work"], "device": run["device"],
                    "by": "plait", "strategy": row["strategy"], "ranks": run["ranks"]}
            names = ("median_ms", "least_ms", "most_ms", "setup_s", "bytes")
            yield "model", case | more, {name: row[name] for name in names}
    elif "rows" in run:
        for row in run["rows"]:
            case = {"graph": run["graph"], "gpus": run["gpus"], "wire": run["wire"],
                    "strategy": row["strategy"], "width": row["width"]}
            names = ("median_ms", "least_ms", "most_ms", "passes", "link_ms", "sum_ms")
            yield "aggregate", case | more, {name: row[name] for name in names if name in row}
    else:
        yield "train", more | {"ranks": run["ranks"], "epochs": run["epochs"]}, {
            "median_ms": run["epoch_ms"], "last_loss": run["loss"][-1]}


def main():
    file, *pairs = sys.argv[1:]
    printed = sys.stdin.read()
    if not printed:
        sys.exit(1)  # plait has told why
    for bench, case, fields in measurements(json.loads(printed), dict(p.split("=", 1) for p in pairs)):
        with open(file, "a") as out:
            out.write(line_of(bench, case, **fields))
        numbers = {name: value for name, value in fields.items() if not isinstance(value, str)}
        print(*case.values(), ":", *(f"{name} {value:.6g}" for name, value in numbers.items()), flush=True)


if __name__ == "__main__":
    main()

"""Writes measurements as lines of JSON; bench/measured/README.md has the format."""
import json
import pathlib
import statistics

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "build/bench"


def spread(ms):
    """The fields of a list of times in milliseconds."""
    return {"median_ms": statistics.median(ms), "least_ms": min(ms), "most_ms": max(ms)}


def rounded(value):
    """To six digits, which is more than any clock here gives."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def line_of(bench, case, **fields):
    return json.dumps({"bench": bench, "case": case} | {k: rounded(v) for k, v in fields.items()}) + "\n"


class Results:
    """A file that holds what one run of a benchmark measured. It replaces the file of the run before, and
    has each line as soon as it is measured."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")

    def add(self, bench, case, **fields):
        with self.path.open("a") as file:
            file.write(line_of(bench, case, **fields))

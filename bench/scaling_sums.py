"""The arithmetic of scaling tables: speedups from one GPU to many, the error of predictions, what bounds an entry,
and the goals. bench/scaling.py measures, and bench/tables.py shows.

An entry is a line of bench "scaling" (bench/measured/README.md): a dict with `case` and times. Cases of one graph,
width or model differ in `ranks`, the number of GPUs or of CPU ranks."""
import re

ERROR = 0.20  # of a prediction, above which it is flagged
LAUNCHES = 0.5  # share of a step from which waits and launches bound it
# 1 to 8 GPUs on whole graphs, with the way that the cost model picks.
GOAL_RANKS, GOAL_WIDTH = 8, 128
GOALS = {"reddit": 5.5, "proteins": 5.5, "orkut": 4.0, "products": 4.0}
OF_ONE = ("ranks", "partition", "strategy", "chosen")  # fields in which an entry and its base differ


def processors(case):
    """'2 H100', '8 H200', '4 ranks'."""
    if case["device"] == "cpu":
        return f"{case['ranks']} rank" + "s" * (case["ranks"] > 1)
    found = re.search(r"\b([A-Z]+\d+\w*)\b", case["machine"])
    return f"{case['ranks']} {found[1] if found else case['machine']}"


def key_of(case):
    """What entries have in common whose times are compared over numbers of GPUs."""
    return frozenset((name, value) for name, value in case.items() if name not in OF_ONE)


def latency_ms(rates, passes):
    """The time that a step of so many passes waits and launches at least, by the rates of plait doctor --measure
    ({name: seconds}): a signal to and from all others, and a wait and a launch for each pass."""
    if "launch" not in rates:
        return 0.0
    return 1e3 * (rates.get("signal", 0.0) + 2 * passes * rates["launch"])


def bound(entry):
    """What bounds an entry: 'launches', 'link', or 'memory' (of the GPU itself); '' if its parts were not measured."""
    if "sum_ms" not in entry:
        return ""
    if entry.get("latency_ms", 0) >= LAUNCHES * entry["median_ms"]:
        return "launches"
    return "link" if entry.get("link_ms", 0) > entry["sum_ms"] else "memory"


def bound_of_training(entry):
    """'link' if ranks spend half of a step or more on communication, else 'own work'."""
    if entry["case"]["ranks"] == 1:
        return "own work"
    return "link" if entry["comm_share"] >= 0.5 else "own work"


def bases(entries):
    """The median on one GPU, by key_of(): the least of those that are measured there."""
    found = {}
    for entry in entries:
        if entry["case"]["ranks"] == 1 and "median_ms" in entry and entry["case"].get("strategy") != "cusparse":
            key = key_of(entry["case"])
            found[key] = min(entry["median_ms"], found.get(key, float("inf")))
    return found


def speedup(entry, base):
    """How many times as fast an entry is as one GPU; None if that was not measured."""
    one = base.get(key_of(entry["case"]))
    return None if one is None else one / entry["median_ms"]


def error(entry):
    """predicted / measured - 1; None without a prediction."""
    if entry.get("predicted_ms") is None or "median_ms" not in entry:
        return None
    return entry["predicted_ms"] / entry["median_ms"] - 1


def errors(entries):
    """Sorted absolute errors of all predictions."""
    return sorted(abs(e) for e in map(error, entries) if e is not None)


def rivals(entries):
    """By graph, width, partition and number of GPUs: the median of each strategy, by its name."""
    found = {}
    for entry in entries:
        case = entry["case"]
        if "median_ms" in entry:
            key = key_of(case), case["ranks"], case["partition"]
            found.setdefault(key, {})[case["strategy"]] = entry["median_ms"]
    return found


def over(entry, strategy, times):
    """How many times as long a rival takes on the same partition; None if it was not measured."""
    case = entry["case"]
    other = times.get((key_of(case), case["ranks"], case["partition"]), {}).get(strategy)
    return None if other is None else other / entry["median_ms"]


def goals(entries):
    """Yields (graph, wanted, reached) for each goal that was measured."""
    base = bases(entries)
    for entry in entries:
        case = entry["case"]
        if (case["part"], case["ranks"], case.get("width")) != ("aggregate", GOAL_RANKS, GOAL_WIDTH):
            continue
        if case["graph"] in GOALS and case["scale"] == 1 and case["chosen"] and "median_ms" in entry:
            reached = speedup(entry, base)
            if reached is not None:
                yield case["graph"], GOALS[case["graph"]], reached


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def percent(value):
    return "" if value is None else f"{100 * value:+.0f}%" + ("!" if abs(value) > ERROR else "")


def graph_of(case):
    return case["graph"] if case["scale"] == 1 else f"{case['graph']} x {case['scale']:g}"


def order(entry):
    case = entry["case"]
    return (case["part"], case["device"] == "cpu", case["machine"], case["graph"], case["scale"],
            case.get("model", ""), case.get("width", 0), case["ranks"], not case.get("chosen", True))


def aggregate_rows(entries):
    """Rows of text of the ways that were chosen: graph and width, processors, way, ms, limit, time over the limit,
    bulk's and cuSPARSE's times over it, prediction, its error, speedup from one GPU, bound."""
    base, times = bases(entries), rivals(entries)
    for entry in sorted(entries, key=order):
        case = entry["case"]
        if not case["chosen"]:
            continue
        name = f"{graph_of(case)} {case['width']}"
        if "failed" in entry:
            yield (name, processors(case), f"{case['strategy']}, {case['partition']}", entry["failed"], *[""] * 8)
            continue
        limit = max(entry["link_ms"], entry["sum_ms"]) if "sum_ms" in entry else None
        yield (name, processors(case), f"{case['strategy']}, {case['partition']}",
               f"{entry['median_ms']:.3f} ({entry['least_ms']:.3f} to {entry['most_ms']:.3f})", number(limit, 3),
               number(limit and entry["median_ms"] / limit), number(over(entry, "bulk", times)),
               number(over(entry, "cusparse", times)), number(entry.get("predicted_ms"), 3), percent(error(entry)),
               number(speedup(entry, base)), bound(entry))


def training_rows(entries):
    """Rows of text: graph and model, processors, way, ms of an epoch, share of communication, speedup, bound."""
    base = bases(entries)
    for entry in sorted(entries, key=order):
        case = entry["case"]
        name = f"{graph_of(case)}, {case['model']}" + (" on samples" if case["part"] == "sampled" else "")
        if "failed" in entry:
            yield (name, processors(case), "", entry["failed"], *[""] * 3)
            continue
        way = "" if case["part"] == "sampled" else f"{entry['strategy']}, {entry['partition']}"
        yield (name, processors(case), way, f"{entry['median_ms']:.2f}", f"{100 * entry['comm_share']:.0f}%",
               number(speedup(entry, base)), bound_of_training(entry))


GATHERS = ("own", "all", "zipf", "distinct", "hot")


def gather_rows(entries):
    """Rows of text: bytes of a row, processors, GB/s by the ways of gather_cuda_bench."""
    rates = {}
    for entry in entries:
        case = entry["case"]
        rates.setdefault((case["machine"], case["bytes"], case["ranks"], processors(case)), {})[case["from"]] = entry
    for (_, size, _, on), found in sorted(rates.items()):
        yield str(size), on, *(f"{found[way]['median_gb_s']:.0f}" if way in found else "" for way in GATHERS)


def embedding_rows(entries):
    """Rows of text: step, processors, ms of Plait and of PyTorch, their ratio, millions of samples a second."""
    steps = {}
    for entry in entries:
        case = entry["case"]
        steps.setdefault((case["machine"], case["step"] != "forward", case["ranks"], case["samples"], processors(case)),
                         {})[case["by"]] = entry["median_ms"]
    for (_, both, ranks, samples, on), ms in sorted(steps.items()):
        yield ("forward and backward" if both else "forward", on, f"{ms['plait']:.2f}", f"{ms['torch']:.2f}",
               f"{ms['torch'] / ms['plait']:.2f}", f"{samples * ranks / ms['plait'] / 1e3:.2f}")


def sentences(entries):
    """What the aggregations show on the whole: errors of predictions and goals."""
    found = errors(entries)
    if found:
        yield (f"Of {len(found)} predictions, {sum(e <= ERROR for e in found)} are within {100 * ERROR:.0f}%; the median "
               f"error is {100 * found[len(found) // 2]:.0f}%, the largest {100 * found[-1]:.0f}%.")
    for graph, wanted, reached in goals(entries):
        yield (f"Goal of {graph} at width {GOAL_WIDTH} from 1 to {GOAL_RANKS} GPUs: {wanted:g} times, "
               f"{'reached' if reached >= wanted else 'missed'} with {reached:.2f}.")

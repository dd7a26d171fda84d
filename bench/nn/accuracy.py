"""Test accuracy of plait train over several seeds, in percent.

    accuracy.py GRAPH.plait... [--model gcn] [--normalize auto rows unit none] [--seeds 10] [--json FILE]
                [--ranks 1] [--wire fp32 bf16]

Trains with seeds from 0 on, and no other options. Prints the mean, the standard deviation and the least
accuracy for each graph, normalisation of features and type in which rows cross between ranks; FILE
(build/bench/accuracy-MODEL.json) receives them as JSON.
"""
import argparse
import itertools
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results
import running


def accuracy(graph, model, case, seed):
    options = (word for name, value in case.items() for word in (f"--{name}", value))
    found = running.result_of("train", graph, "--model", model, *options, "--seed", seed)
    return 100 * found["test_accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", nargs="+", type=pathlib.Path, metavar="GRAPH.plait")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--normalize", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--wire", nargs="+", default=["fp32"])
    parser.add_argument("--json", help="file for the results; build/bench/accuracy-MODEL.json if not given")
    o = parser.parse_args()
    kept = results.Results(o.json or results.FOLDER / f"accuracy-{o.model}.json")
    for graph in o.graphs:
        for normalize, wire in itertools.product(o.normalize, o.wire):
            case = {"normalize": normalize} | ({"ranks": o.ranks, "wire": wire} if o.ranks > 1 else {})
            found = [accuracy(graph, o.model, case, seed) for seed in range(o.seeds)]
            fields = {"mean": statistics.mean(found), "deviation": statistics.stdev(found), "least": min(found)}
            print(graph.stem, o.model, *case.values(), *(f"{name} {value:.2f}" for name, value in fields.items()))
            kept.add("accuracy", {"graph": graph.stem, "model": o.model} | case, **fields, seeds=o.seeds)


if __name__ == "__main__":
    main()

"""Test accuracy of plait train over several seeds, in percent.

    accuracy.py GRAPH.plait... [--model gcn] [--normalize auto rows unit none] [--seeds 10] [--json FILE]

Trains on one rank with seeds from 0 on, and no other options. Prints the mean, the standard deviation and
the least accuracy for each graph and normalisation of features; FILE (build/bench/accuracy-MODEL.json)
receives them as JSON.
"""
import argparse
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import results
import running


def accuracy(graph, model, normalize, seed):
    found = running.result_of("train", graph, "--model", model, "--normalize", normalize, "--seed", seed)
    return 100 * found["test_accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", nargs="+", type=pathlib.Path, metavar="GRAPH.plait")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--normalize", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", help="file for the results; build/bench/accuracy-MODEL.json if not given")
    o = parser.parse_args()
    kept = results.Results(o.json or results.FOLDER / f"accuracy-{o.model}.json")
    for graph in o.graphs:
        for normalize in o.normalize:
            found = [accuracy(graph, o.model, normalize, seed) for seed in range(o.seeds)]
            fields = {"mean": statistics.mean(found), "deviation": statistics.stdev(found), "least": min(found)}
            print(graph.stem, o.model, normalize, *(f"{name} {value:.2f}" for name, value in fields.items()))
            kept.add("accuracy", {"graph": graph.stem, "model": o.model, "normalize": normalize},
                     **fields, seeds=o.seeds)


if __name__ == "__main__":
    main()

"""Mistakes on some ranks end all of them, with one line that names the mistake."""

import re
import signal

import pytest

from ranks import HERE, Ranks

# The error of each check of spread_errors.py.
SAYS = {
    "graphs_of_other_edges": "ValueError: ranks pass different graphs: the fingerprint of "
                             "edge_index is [0-9a-f]{32} on rank 0, but [0-9a-f]{32} on rank 1",
    "graphs_of_other_size": "ValueError: ranks pass different graphs: num_nodes is 4 on rank 0, "
                            "but 5 on rank 1; give every rank the same",
    "graphs_of_other_weights": "ValueError: .* graphs: the fingerprint of edge_weight is",
    "graphs_with_other_partitions": "ValueError: .* the partition is edges on rank 0, but hash on",
    "unknown_partition": "ValueError: .*half.*edges, vertices, clusters, hash",
    "graphs_changed_in_place": "ValueError: .* graphs: the fingerprint of edge_index is",
    "models_of_other_shapes": r"ValueError: ranks pass different models: conv.bias is "
                              r"torch.float32\[3\] on rank 0, but torch.float32\[4\] on rank 1",
    "data_of_other_content": r"ValueError: ranks pass different data: x is torch.float32\[4, 2\]",
    "model_spread_twice": "ValueError: .* spread already",
    "loss_of_own_rows": "RuntimeError: the loss, or a part of it, is of this rank's.*plait.mean",
    "loss_partly_of_own_rows": "RuntimeError: the loss, or a part of it, is of this rank's rows",
    "losses_of_which_one_is_of_own_rows": "RuntimeError: the loss, or a part of it, is of this",
    "other_weights_frozen": r"ValueError: .* rank 0 the sum of 7 Float numbers on cpu: gradients "
                            r"of 1 parameters, not of 1 \(.*\): conv.bias, but rank 1 .* not of 1 "
                            r"\(.*\): conv.lin.weight;",
    "a_sum_and_a_mean": "ValueError: ranks call different operations: rank 0 plait.sum of "
                        "torch.float32 on cpu, but rank 1 plait.mean of torch.float32 on cpu; "
                        "every rank must make the same calls in the same order",
    "sums_of_other_types": "ValueError: .* rank 0 plait.sum of torch.float32.* torch.int64",
    "a_sum_and_rows": "ValueError: .* rank 0 plait.sum of .*, but rank 1 Graph.gather",
    "a_sum_and_a_graph": "ValueError: .* rank 0 plait.sum .*, but rank 1 an exchange of data",
    "rows_of_other_widths": "ValueError: .* rank 0 Graph.gather of rows of 2 .* of rows of 3",
    "rows_of_other_types": "ValueError: .* rank 0 Graph.gather of .*Float.* Graph.gather .*Double",
    "layers_with_and_without_loops": "ValueError: ranks pass different graphs: the weight of "
                                     "self-loops is 1.0 on rank 0, but None on rank 1",
    "aggregates_of_other_widths": "ValueError: ranks call different operations on a graph: rank 0 "
                                  "is to make room for rows of width 4, but rank 1 .* of width 5",
    "later_aggregates_of_other_widths": "ValueError: .* rank 0 .* of width 9, but rank 1 .* 3;",
    "an_aggregate_and_its_gradient": "ValueError: .* rank 0 is to bring, against edges, rows of "
                                     "width 2, but rank 1 to bring, along edges, rows of width 2",
    "mean_of_a_mean": 'ValueError: .*reduction="none"',
    "mean_of_nothing": "ValueError: .*no values on any rank",
    "method_that_is_not_named": "RuntimeError: GCNConv: the gradient of bias would.*methods=",
    "parameter_outside": r"RuntimeError: a parameter of shape \(3, 3\) was used outside.*methods=",
    "layer_on_a_tensor": "ValueError: .*several ranks.*plait.Graph",
    "all_rows_to_a_layer": "ValueError: x has 4 rows, but this rank owns .* of the graph's 4",
    "list_of_nodes": "NotImplementedError: data has train_index, .*plait.gather reads",
    "lazy_weights": "ValueError: 0.weight has no shape yet.*in_channels",
    "other_dropout": "NotImplementedError: alpha_dropout",
    "dropout_of_other_rows": r"NotImplementedError: dropout of a tensor of shape \(5, 2\)",
}


def test_errors_that_all_ranks_find():
    outputs = Ranks(2, HERE / "spread_errors.py").succeed()
    said = [dict(line.split(": ", 1) for line in output.splitlines()) for output in outputs]
    assert said[0].keys() == SAYS.keys()
    for name, pattern in SAYS.items():
        assert re.match(pattern, said[0][name]), (name, said[0][name])
    own = {"all_rows_to_a_layer", "dropout_of_other_rows"}  # they tell how many nodes a rank has
    assert {k: v for k, v in said[0].items() if k not in own} == {
        k: v for k, v in said[1].items() if k not in own}


PREFACE = """
import os, signal, sys, time
import torch
import plait
graph = plait.Graph(torch.tensor([[0, 1, 2], [1, 2, 0]]))
x = torch.ones(graph.num_own, 2)
plait.aggregate(graph, x)
"""


@pytest.mark.parametrize("ends,told,traceback", [
    ("raise ValueError('no more', 1)", r"rank 1 failed with ValueError: .*no more", True),
    ("sys.exit(3)", "rank 1 failed with exit code 3", False),
    ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 has not answered", False),
    ("sys.exit(0)", "rank 1 has ended, but rank 0 still waits for it", False),
], ids=["raises", "exits", "dies", "leaves"])
def test_a_rank_that_is_lost(tmp_path, ends, told, traceback):
    program = tmp_path / "program.py"
    program.write_text(PREFACE + f"if plait.rank() == 1: {ends}\nplait.aggregate(graph, x)\n")
    (code0, _, error0), (code1, _, error1) = Ranks(2, program, timeout_ms=2000).results()
    assert code0 == 1
    assert re.fullmatch(rf"plait: rank 0: {told}.*\n", error0), error0
    assert ("Traceback" in error1) == traceback
    wanted = {"raises": 1, "exits": 3, "dies": -signal.SIGKILL, "leaves": 0}
    assert code1 == 1 if traceback else code1 in wanted.values()


def test_ranks_leave_together(tmp_path):
    """A rank that is done early waits, however long the other works on by itself."""
    program = tmp_path / "program.py"
    program.write_text(PREFACE + "time.sleep(3 * (1 - plait.rank()))\nprint('done')\n")
    assert Ranks(2, program, timeout_ms=2000).succeed() == ["done\n", "done\n"]


FORKS = """
child = os.fork()
if child == 0:
    for call in (lambda: plait.sum(x), lambda: plait.aggregate(graph, x)):
        try:
            call()
        except ValueError as error:
            print(error, flush=True)
    sys.excepthook(ValueError, ValueError("of the child"), None)  # is no failure of its parent
    os._exit(0)
os.waitpid(child, 0)
plait.aggregate(graph, x)
print(plait.sum(x).item())
"""


def test_a_process_forked_from_a_rank_is_none(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PREFACE + FORKS)
    for rank, output in enumerate(Ranks(2, program).succeed(limit=60)):
        refused = rf"this process was forked from rank {rank} after the ranks had joined.*\n"
        assert re.fullmatch(rf"({refused}){{2}}6.0\n", output), output


OTHER_GRAPHS = """
graphs = graph, plait.Graph(torch.tensor([[0, 1], [1, 2]]), 3)
for each in graphs:
    plait.aggregate(each, x)
plait.aggregate(graphs[plait.rank()], x)
print("done")
"""


def test_ranks_that_use_different_graphs_are_ended(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PREFACE + OTHER_GRAPHS)
    for code, output, errors in Ranks(2, program, timeout_ms=5000).results(limit=60):
        assert code == 1 and output == ""
        assert re.search("has called an operation on a graph where rank . has called another one; "
                         "every rank must make the same calls", errors), errors


FROZEN_LATER = """
model, data = plait.parallelize(torch.nn.Linear(2, 2), graph)
for step in range(2):
    model.bias.requires_grad_(step == 0 or plait.rank() == 0)
    plait.mean(model(x)).backward()
"""


def test_weights_that_one_rank_freezes_later_end_all(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PREFACE + FROZEN_LATER)
    for code, _, errors in Ranks(2, program).results(limit=60):
        assert code == 1
        assert re.search("has called a .* every rank must make the same calls", errors), errors


def test_few_descriptors():
    """Memory that ranks share is handed over as descriptors: without them, all ranks raise and none waits."""
    outputs = Ranks(2, HERE / "few_descriptors.py").succeed()
    assert outputs[0] and outputs[0] == outputs[1]

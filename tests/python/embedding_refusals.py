"""Checks of plait.nn.EmbeddingBag and EmbeddingBags that are given something wrong, on any number of ranks: each rank
asserts the error, which is the same on all."""

import types
import unittest.mock

import pytest
import torch

import plait
from embedding_case import DEVICE, close
from plait.nn import EmbeddingBag, EmbeddingBags, _embedding_tables


def wrong_arguments_are_refused():
    with pytest.raises(NotImplementedError):
        EmbeddingBag(10, 4, dtype=torch.float64)
    for options in ({"mode": "least"}, {"max_norm": -1.0}, {"max_norm": 1.0, "norm_type": 0},
                    {"mode": "max", "scale_grad_by_freq": True}, {"padding_idx": 10}, {"split": "cells"},
                    {"_weight": torch.zeros(10, 5)}, {"mode": 3}, {"max_norm": [1]}, {"norm_type": None},
                    {"device": "x"}, {"device": 1.5}, {"split": 3}):
        with pytest.raises(ValueError):
            EmbeddingBag(10, 4, **options)
    for weight in ([1.0], torch.zeros(3)):
        with pytest.raises(ValueError, match="embeddings must be a tensor with one row for each id"):
            EmbeddingBag.from_pretrained(weight)
    for rows in (3, None, "33"):
        with pytest.raises(ValueError, match="give a list with the rows of each table"):
            EmbeddingBags(rows, 4)
    for rows, options in (([10, 20], {"splits": ["rows"]}), ([10, 20], {"splits": "rows"}), ([], {}), ([-1], {}),
                          ([2.5], {}), ([2**63], {}), ([10, 20], {"padding_idx": [1]}), ([9], {"padding_idx": 1.0}),
                          ([9], {"ids_per_sample": [float("nan")]}), ([9], {"samples": 0}), ([9], {"samples": 1.5}),
                          ([9], {"samples": "3"}), ([10, 20], {"splits": ["rows", None]}), ([9], {"splits": 3}),
                          ([9], {"ids_per_sample": 2}), ([9], {"ids_per_sample": ["many"]}),
                          ([9], {"ids_per_sample": [None]})):
        with pytest.raises(ValueError):
            EmbeddingBags(rows, 4, **options)
    weights = [torch.nn.Parameter(torch.zeros(2, 2))]
    for betas in ((1.0, 0.9), 0.5, "ab", (0.5,), ("a", 0.5)):
        with pytest.raises(ValueError, match="betas are .*; use two numbers from 0 up to 1"):
            plait.optim.RowAdam(weights, betas=betas)
    for wrong in ("0.1", None, -1.0, float("nan"), [0.1]):
        with pytest.raises(ValueError, match="lr is .*; use a number of 0 or more"):
            plait.optim.RowSGD(weights, lr=wrong)
        with pytest.raises(ValueError, match="lr is .*; use a number of 0 or more"):
            plait.optim.RowSGD([{"params": weights, "lr": wrong}])
        with pytest.raises(ValueError, match="eps is .*; use a number of 0 or more"):
            plait.optim.RowAdagrad(weights, eps=wrong)
    plait.optim.RowSGD(weights, lr=torch.tensor(0.1))
    dense = EmbeddingBag(10, 4, split="replicated")
    dense(torch.tensor([[1]])).sum().backward()
    with pytest.raises(ValueError, match="sparse=True"):
        plait.optim.RowSGD(dense.parameters()).step()
    row = torch.nn.Parameter(torch.zeros(4))
    row.grad = torch.zeros(4).to_sparse()
    with pytest.raises(ValueError, match="takes tables"):
        plait.optim.RowSGD([row]).step()
    if DEVICE.type == "cpu":
        with pytest.raises(RuntimeError, match="memory for embedding tables needs .* but only .* is free"):
            EmbeddingBag(10**9, 4096)
        with pytest.raises(RuntimeError, match="memory for embedding tables needs .* but only .* is free"):
            EmbeddingBag(2**32 - 2, 2**32 - 1, split="table")
        layer = EmbeddingBags([100, 50, 7], 4, splits=["table", "rows", "replicated"])
        asked = []
        with unittest.mock.patch.object(_embedding_tables, "ops", types.SimpleNamespace(
                require_memory=lambda needed, what: asked.append(needed))):
            layer._tables._require_memory(torch.float32)
        assert asked == [4 * 4 * (150 + 7 * plait.world_size())]


def pieces_of_another_rank_are_refused():
    """Their shapes may be the same. Weights without a note of their piece, as PyTorch's, are taken by their shape."""
    whole = plait.world_size() == 1
    for layer in (EmbeddingBag(10, 4, split="columns"), EmbeddingBags([10, 6], 4, splits=["replicated", "columns"])):
        state = layer.state_dict()
        layer.load_state_dict(state)
        layer.load_state_dict({name: value.clone() for name, value in state.items()})
        own, mine = state._metadata[""], f"columns of rank {plait.rank()} of {plait.world_size()}"
        mine = "whole table" if whole else mine
        assert own["pieces"] == (["whole table"] * (len(own["pieces"]) - 1) + [mine])
        before = {name: value.clone() for name, value in state.items()}
        own["pieces"] = [*own["pieces"][:-1], "columns of rank 7 of 8"]
        with pytest.raises(RuntimeError, match=f"has the piece 'columns of rank 7 of 8', but this rank has '{mine}'; load"):
            state.update({name: value + 1 for name, value in state.items()})
            layer.load_state_dict(state)
        assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    outer = torch.nn.Sequential(EmbeddingBag(10, 4, split="replicated"))
    outer.load_state_dict(outer.state_dict())
    if whole:
        EmbeddingBag(10, 4).load_state_dict(EmbeddingBag(10, 4, split="rows").state_dict())


def wrong_arguments_of_one_rank_are_refused_on_all():
    last = plait.world_size() - 1
    for options in ({"mode": "least"}, {"max_norm": -1.0}, {"padding_idx": 10}, {"split": "cells"},
                    {"_weight": torch.zeros(10, 5)}, {"dtype": torch.float64}, {"padding_idx": "1"},
                    {"device": "meta"}, {"max_norm": "large"}):
        with pytest.raises((ValueError, NotImplementedError)) as error:
            EmbeddingBag(10, 4, **(options if plait.rank() == last else {}))
        assert plait.rank() == last or f"rank {last}: " in str(error.value)
    for sizes, options in ((None, {}), ([-1], {}), ([10], {"splits": ["rows"] * 2}), ([10], {"samples": 0})):
        with pytest.raises(ValueError):
            EmbeddingBags(*((sizes, 4) if plait.rank() == last else ([10], 4)),
                          **(options if plait.rank() == last else {}))
    close(EmbeddingBag(10, 4)(torch.zeros(2, 0, dtype=torch.long)), torch.zeros(2, 4))


def different_tables_are_refused():
    if plait.world_size() > 1:
        with pytest.raises(ValueError, match="ranks make different embedding tables: table 0 is 10 rows"):
            EmbeddingBag(10 + plait.rank(), 4, split="rows")


def wrong_bags_are_one_error_on_every_rank():
    layer = EmbeddingBags([10, 20], 4, mode="sum")
    right = (torch.tensor([1, 2]), torch.tensor([0, 1]))
    last = plait.world_size() - 1
    prefix = f"rank {last}: " if last > 0 else ""
    long = torch.long
    # The device of the last rank.
    there = DEVICE if DEVICE.type == "cpu" else torch.device("cuda", last % torch.cuda.device_count())
    for wrong, text in (
        ((torch.tensor([1, 20]), right[1]), "ids[1] is 20, outside 0..19 of table 1"),
        ((torch.tensor([-1, 2]), right[1]), "ids[0] is -1, outside 0..9 of table 0"),
        ((torch.arange(4), torch.tensor([0, 3, 2, 4])), "offsets[2] is 2, below offsets[1], which is 3"),
        ((right[0], torch.tensor([0, 1, 2])), "offsets are of 3 bags, which cannot be divided among 2 tables"),
        ((right[0].float(), right[1]), "ids are torch.float32; use a dense tensor of int64 or int32"),
        ((right[0], None), "offsets must be a tensor of integers, but there is a NoneType"),
        ((torch.zeros(2, 2, dtype=long), None), "ids have two dimensions, of which each row is a bag; leave out "
                                                "offsets, and give them to one table"),
        ((*right, torch.ones(3)), "per_sample_weights are torch.float32 of shape (3,) on "
                                  f"{there}; use one float32 on {there} for each of 2 ids"),
        ((*right, [1.0, 2.0]), "per_sample_weights must be a tensor, but there is a list"),
    ):
        with pytest.raises(ValueError) as error:
            layer(*(wrong if plait.rank() == last else right))
        assert str(error.value).split("\n")[0] == prefix + text
    close(layer(*right)[0, 0], layer.full_weight(0)[1])


def ids_that_are_changed_before_backward_are_one_error():
    if plait.world_size() == 1:
        return
    layer = EmbeddingBag(10, 4, mode="sum", split="rows")
    ids = torch.tensor([1, 2])
    out = layer(ids, torch.tensor([0])).sum()
    if plait.rank() == 1:
        ids += 1
    with pytest.raises(ValueError, match="rank 1: .*modified by an inplace operation"):
        out.backward()
    close(layer(torch.tensor([1]), torch.tensor([0]))[0], layer.full_weight()[1])


def gradients_that_not_all_ranks_want_are_one_error():
    if plait.world_size() == 1:
        return
    first, last = plait.rank() == 0, plait.rank() == plait.world_size() - 1
    layer = EmbeddingBag(10, 4, mode="sum", split="rows")
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0])
    layer.weight.requires_grad_(False)
    with pytest.raises(ValueError, match="follow on rank 0, but not on rank 1: tables or per_sample_weights"):
        layer(ids, offsets, torch.ones(2, requires_grad=first))
    layer.weight.requires_grad_()
    out = layer(ids, offsets, torch.ones(2, requires_grad=first)).sum()
    if last:
        with torch.no_grad():
            layer.weight.add_(1)
    with pytest.raises(ValueError, match=f"rank 0 wants .* those of rank {plait.world_size() - 1} have changed"):
        out.backward()
    weights = torch.ones(2, requires_grad=first)
    layer(ids, offsets, weights).sum().backward()
    whole = layer.full_weight()
    if first:
        close(weights.grad, whole[[1, 2]].sum(1))


def weights_of_ids_need_tables_of_autograd():
    """Of a layer with one table of inference tensors the tables' state in forward() is unknown."""
    layer = EmbeddingBags([5, 6], 4, "sum")
    with torch.inference_mode():
        layer.weights[0] = torch.nn.Parameter(layer.weights[0].clone(), requires_grad=False)
    ids, offsets, weights = torch.tensor([1, 2]), torch.tensor([0, 1]), torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="or are inference tensors"):
        layer(ids, offsets, per_sample_weights=weights).sum().backward()
    layer(ids, offsets, per_sample_weights=weights.detach()).sum().backward()
    assert layer.weights[1].grad is not None


def replaced_weights_of_other_shapes_are_refused():
    layer = EmbeddingBag(50, 4, mode="sum", split="columns")
    rows, columns = layer.weight.shape
    ids, offsets = torch.tensor([1, 49]), torch.tensor([0, 1])
    for shape in ((2, columns), (rows, columns + 1), (rows * columns,)):
        layer.weight = torch.nn.Parameter(torch.ones(shape))
        with pytest.raises(ValueError, match="has shape"):
            layer(ids, offsets)
    layer.weight = torch.nn.Parameter(torch.ones(rows, columns))
    close(layer(ids, offsets), torch.ones(2, 4))


def missing_weights_of_one_rank_are_refused_on_all():
    last = plait.world_size() - 1
    bags, bag = EmbeddingBags([30, 40], 4, mode="sum"), EmbeddingBag(30, 4, mode="sum")
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0, 1])
    bags(ids, offsets)
    if plait.rank() == last:
        bags.weights[0], bag.weight = None, None
    for layer in (bags, bag):
        with pytest.raises(ValueError, match="a weight is None; give this rank's piece"):
            layer(ids, offsets)


def types_of_tables_are_the_same_on_all_ranks():
    last = plait.world_size() - 1
    layer = EmbeddingBags([30, 40], 4, mode="sum", splits=["rows", "columns"])
    ids, offsets = torch.tensor([1, 2]), torch.tensor([0, 1])
    for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "fp16")):
        if plait.rank() == last:
            layer.to(dtype)
        if last > 0:
            message = f"embedding tables are fp32 on rank 0, but {name} on rank {last}; convert them on all ranks"
            with pytest.raises(ValueError, match=message):
                layer(ids, offsets)
        else:
            assert layer(ids, offsets).dtype == dtype
    layer.to(torch.float16)
    layer(ids, offsets).float().sum().backward()


def types_of_tables_are_the_same_in_a_layer():
    tables = EmbeddingBags([5, 6], 4, "sum", dtype=torch.bfloat16)
    tables.weights[1] = torch.nn.Parameter(tables.weights[1].half())
    with pytest.raises(ValueError, match="the weights are bfloat16, float16; use one of"):
        tables(torch.tensor([1, 2]), torch.tensor([0, 1]))


REFUSALS = [wrong_arguments_are_refused, pieces_of_another_rank_are_refused, wrong_arguments_of_one_rank_are_refused_on_all, different_tables_are_refused,
            wrong_bags_are_one_error_on_every_rank, ids_that_are_changed_before_backward_are_one_error,
            gradients_that_not_all_ranks_want_are_one_error, weights_of_ids_need_tables_of_autograd,
            replaced_weights_of_other_shapes_are_refused, missing_weights_of_one_rank_are_refused_on_all,
            types_of_tables_are_the_same_on_all_ranks, types_of_tables_are_the_same_in_a_layer]

"""Checks of plait.nn.EmbeddingBag and EmbeddingBags on any number of ranks; each rank asserts them, against
torch.nn.EmbeddingBag with whole tables and the samples of all ranks in the same process. As a program of each rank,
also the checks of embedding_refusals.py."""

import copy
import io

import pytest
import torch

import plait
from embedding_case import (DEVICE, NARROW, SPLITS, bags_of, close, gradient_of, own_part, run, samples, table_bags,
                            whole_tables)
from embedding_refusals import REFUSALS
from plait.nn import EmbeddingBag, EmbeddingBags


def many_tables_are_as_pytorch():
    rows, width = [50, 1, 300, 7, 40], 12
    for mode in ("sum", "mean", "max"):
        for sparse in (True, False):
            layer = EmbeddingBags(rows, width, mode=mode, sparse=sparse, padding_idx=[None, None, 3, -1, 0],
                                  splits=["replicated", "table", "rows", "columns", "table"])
            plain = [torch.nn.EmbeddingBag(n, width, mode=mode, padding_idx=p, _weight=w) for n, p, w in
                     zip(rows, [None, None, 3, 6, 0], whole_tables(layer, len(rows)))]
            for step in range(3):
                check_step(layer, plain, mode, step)


def narrow_tables_are_as_pytorchs_of_rounded_weights():
    """Against float32, with the weights and the gradients of bags as they are rounded."""
    rows, width, padding = [50, 1, 300, 7], 12, [None, None, 3, 0]
    for dtype in NARROW:
        for mode in ("sum", "mean", "max"):
            for sparse in (True, False):
                layer = EmbeddingBags(rows, width, mode=mode, sparse=sparse, padding_idx=padding, dtype=dtype,
                                      splits=["replicated", "table", "rows", "columns"])
                plain = [torch.nn.EmbeddingBag(n, width, mode=mode, padding_idx=p, _weight=w.float())
                         for n, p, w in zip(rows, padding, whole_tables(layer, len(rows)))]
                assert layer.weights[0].element_size() == 2
                for step in range(3):
                    check_step(layer, plain, mode, step)
                    assert all(w.grad is None or w.grad.dtype == dtype for w in layer.weights)
    for split in SPLITS:
        for width in (1, 2, 37):
            torch.manual_seed(8)
            layer = EmbeddingBag(40, width, mode="sum", split=split, dtype=torch.float16)
            torch.manual_seed(8)
            wide = EmbeddingBag(40, width, mode="sum", split=split)
            assert torch.equal(layer.full_weight(), wide.full_weight().half())
            ids = torch.randint(40, (5, 9))
            weights = [torch.linspace(-1, 1, 45).view(5, 9).half().requires_grad_() for _ in range(2)]
            found = layer(ids, per_sample_weights=weights[0])
            plain = layer.full_weight().float()
            wanted = (plain[ids] * weights[1].float()[..., None]).sum(1)
            assert found.dtype == torch.float16 and layer.full_weight().dtype == torch.float16
            close(found, wanted)
            found.sum().backward()
            wanted.sum().backward()
            close(weights[0].grad, weights[1].grad)
            converted = wide.to(torch.bfloat16)
            assert converted(ids).dtype == torch.bfloat16
            close(converted(ids), converted.full_weight().float()[ids].sum(1))
            limited = EmbeddingBag(40, width, max_norm=0.5, mode="sum", split=split, dtype=torch.bfloat16)
            limited(ids)
            assert limited.full_weight()[ids].float().norm(dim=2).max() < 0.503


def narrow_rows_are_changed_in_float32():
    """Against PyTorch's optimisers on float32 copies of the weights, which begin each step as they were rounded."""
    pairs = [(plait.optim.RowSGD, torch.optim.SGD, {"lr": 0.3}),
             (plait.optim.RowAdagrad, torch.optim.Adagrad, {"lr": 0.2, "eps": 1e-6}),
             (plait.optim.RowAdam, torch.optim.SparseAdam, {"lr": 0.05, "eps": 1e-7})]
    for dtype in NARROW:
        for ours, theirs, options in pairs:
            layer = EmbeddingBags([60, 20], 8, mode="sum", sparse=True, splits=["rows", "replicated"], dtype=dtype)
            params = list(layer.parameters())
            params[0].grad_dtype = torch.float32
            wide = [torch.nn.Parameter(p.detach().float()) for p in params]
            optimizer, other = ours(params, **options), theirs(wide, **options)
            for step in range(4):
                optimizer.zero_grad()
                bags = bags_of(plait.rank(), [60, 20], samples(plait.rank()), step)
                layer(*bags[:2]).float().pow(2).sum().backward()
                assert [p.grad.dtype for p in params] == [torch.float32, dtype]
                for p, w in zip(params, wide):
                    w.data.copy_(p.data)
                    w.grad = p.grad.float()
                optimizer.step()
                other.step()
                for p, w in zip(params, wide):
                    close(p, w)
                again = ours(params, **options)
                again.load_state_dict(optimizer.state_dict())
                for p in params:
                    for name in ours.states:
                        assert again.state[p][name].dtype == torch.float32
                        assert torch.equal(again.state[p][name], optimizer.state[p][name])
                optimizer = again


def narrow_layers_are_saved_and_loaded():
    for dtype in NARROW:
        whole = torch.randn(33, 5).to(dtype)
        layer = EmbeddingBag.from_pretrained(whole, mode="mean", split="rows")
        file = io.BytesIO()
        torch.save(layer, file)
        file.seek(0)
        fresh = EmbeddingBag(33, 5, split="rows", dtype=dtype)
        fresh.load_state_dict(layer.state_dict())
        for same in (layer, torch.load(file, weights_only=False), fresh, copy.deepcopy(layer)):
            assert same.weight.dtype == dtype and torch.equal(same.full_weight(), whole)


def check_step(layer, plain, mode, step):
    tables, width = len(plain), layer.embedding_dim
    layer.zero_grad()
    for t in plain:
        t.zero_grad()
    for rank in range(plait.world_size()):
        bags = bags_of(rank, layer.num_embeddings, samples(rank), step)
        parts = [table_bags(bags, t, tables) for t in range(tables)]
        weighted = mode == "sum" and step > 0
        if step > 1:
            for part in parts:
                part[2].requires_grad_()
        wanted = torch.stack([p(ids, offsets, weights if weighted else None)
                              for p, (ids, offsets, weights) in zip(plain, parts)], 1)
        gradient = gradient_of(rank, samples(rank), tables, width).to(layer.weights[0].dtype)
        wanted.backward(gradient.float())
        if rank == plait.rank():
            weights = bags[2].detach().requires_grad_(step > 1)
            out = layer(*bags[:2], weights if weighted else None)
            close(out, wanted)
            out.backward(gradient)
            if weighted and step > 1:
                close(weights.grad, torch.cat([part[2].grad for part in parts]))
    for t, p in enumerate(plain):
        piece = layer.weights[t]
        if piece.numel() > 0:
            close(piece.grad.to_dense() if piece.grad.is_sparse else piece.grad, own_part(layer, t, p.weight.grad))


def rows_of_many_ids_have_the_same_bits_again():
    """Tables of all splits, so that pieces have different numbers of columns, one of them without ids, and rows that
    thousands of ids name."""
    rows, width, per_table = [3, 40, 500, 9, 2, 700], 32, 3000
    splits = ["replicated", "columns", "table", "table", "replicated", "rows"]
    for mode in ("sum", "mean", "max"):
        layer = EmbeddingBags(rows, width, mode=mode, sparse=True, splits=splits)
        plain = [torch.nn.EmbeddingBag(n, width, mode=mode, _weight=w)
                 for n, w in zip(rows, whole_tables(layer, len(rows)))]
        for rank in range(plait.world_size()):
            bags = bags_of(rank, rows, per_table, without=[3])
            gradient = gradient_of(rank, per_table, len(rows), width)
            for t, table in enumerate(plain):
                table(*table_bags(bags, t, len(rows))[:2]).backward(gradient[:, t])
            if rank == plait.rank():
                own = *bags[:2], gradient
        found = []
        for _ in range(2):
            layer.zero_grad()
            layer(*own[:2]).backward(own[2])
            found.append([w.grad for w in layer.weights])
        for t, (one, two) in enumerate(zip(*found)):
            assert torch.equal(one._indices(), two._indices()) and torch.equal(one._values(), two._values())
            if one.numel() > 0:
                wanted = own_part(layer, t, plain[t].weight.grad)
                assert torch.allclose(one.to_dense(), wanted, rtol=1e-4, atol=1e-3)


def one_table_is_as_pytorch():
    for split in SPLITS:
        for end in (True, False):
            torch.manual_seed(plait.rank())  # rank 0's counts
            layer = EmbeddingBag(40, 6, mode="sum", sparse=True, include_last_offset=end, padding_idx=-2,
                                 split=split)
            assert layer.padding_idx == 38
            plain = torch.nn.EmbeddingBag(40, 6, mode="sum", sparse=True, include_last_offset=end,
                                          padding_idx=38, _weight=layer.full_weight().detach())
            assert plain.weight[38].abs().sum() == 0
            ids = torch.randint(40, (9, 5), dtype=torch.int32)
            close(layer(ids), plain(ids))
            weights = torch.rand(9, 5)
            close(layer(ids, per_sample_weights=weights), plain(ids, per_sample_weights=weights))
            offsets = torch.tensor([0, 4, 4, 17, 45][:4 + end])
            close(layer(ids.flatten(), offsets), plain(ids.flatten(), offsets))
            assert layer(ids[:0]).shape == (0, 6)


def weights_do_not_depend_on_ranks():
    wholes = []
    for split in SPLITS:
        torch.manual_seed(5)
        wholes.append(EmbeddingBag(2000, 9, padding_idx=4, split=split).full_weight())
        assert torch.equal(wholes[0], wholes[-1])
    values = wholes[0][5:]
    assert abs(values.mean()) < 0.03 and abs(values.std() - 1) < 0.03 and values.abs().max() > 3
    assert torch.equal(wholes[0][4], torch.zeros(9))
    assert abs(torch.corrcoef(values.t()) - torch.eye(9)).max() < 0.1
    # FIRST has the numbers that seed 5 gives on any number of ranks.
    close(wholes[0][7, :3], torch.tensor(FIRST))


FIRST = [1.0124869, 1.0962480, -0.7456113]


def rows_optimisers_are_as_pytorch():
    pairs = [(plait.optim.RowSGD, torch.optim.SGD, {"lr": 0.3}),
             (plait.optim.RowAdagrad, torch.optim.Adagrad,
              {"lr": 0.2, "lr_decay": 0.1, "initial_accumulator_value": 0.05, "eps": 1e-6}),
             (plait.optim.RowAdam, torch.optim.SparseAdam, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-7})]
    for ours, theirs, options in pairs:
        layer = EmbeddingBags([60, 20], 8, mode="sum", sparse=True, splits=["rows", "replicated"])
        other = copy.deepcopy(layer)
        assert other._tables._handle is not layer._tables._handle
        steps = [(layer, ours(layer.parameters(), **options)), (other, theirs(other.parameters(), **options))]
        for step in range(4):
            for tables, optimizer in steps:
                optimizer.zero_grad()
                bags = bags_of(plait.rank(), [60, 20], samples(plait.rank()), step)
                tables(*bags[:2]).pow(2).sum().backward()
                optimizer.step()
            for a, b in zip(layer.parameters(), other.parameters()):
                assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)
        state = steps[0][1].state_dict()
        again = ours(layer.parameters(), **options)
        again.load_state_dict(state)
        assert again.state_dict()["state"].keys() == state["state"].keys()


def replicated_tables_stay_equal():
    layer = EmbeddingBags([30, 9], 16, mode="mean", sparse=True, splits=["replicated", "replicated"])
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        layer(*bags_of(plait.rank(), [30, 9], samples(plait.rank()), step)[:2]).sin().sum().backward()
        optimizer.step()
    bits = sum(int(w.detach().view(torch.int32).long().sum()) for w in layer.weights)
    assert int(plait.sum(torch.tensor(bits))) == bits * plait.world_size()


def mean_over_ranks_takes_them():
    layer = EmbeddingBag(20, 4, mode="sum", split="rows")
    loss = plait.mean(layer(torch.arange(20).view(5, 4)).pow(2).sum(1))
    loss.backward()
    plain = layer.full_weight().detach().requires_grad_()
    plain.view(5, 4, 4).sum(1).pow(2).sum(1).mean().backward()
    wanted = torch.empty_like(layer.weight)
    layer._tables.load(0, wanted, plain.grad)
    close(layer.weight.grad, wanted)


def layers_are_saved_and_loaded():
    whole = torch.randn(33, 5)
    layer = EmbeddingBag.from_pretrained(whole, mode="mean", split="rows")
    assert not layer.weight.requires_grad
    assert torch.equal(layer.full_weight(), whole)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert torch.equal(again.full_weight(), whole)
    fresh = EmbeddingBag(33, 5, split="rows")
    fresh.load_state_dict(layer.state_dict())
    assert torch.equal(fresh.full_weight(), whole)
    tables = EmbeddingBags([33, 2], 5)
    tables.load_full_weight(0, whole)
    assert torch.equal(tables.full_weight(0), whole)


def norms_are_limited():
    """Against PyTorch on the CPU: on GPUs, it knows no norms but 1 and 2."""
    for split in SPLITS:
        for mode, width, norm_type in (("sum", 1, 1.0), ("mean", 2, 2.0), ("max", 37, float("inf")), ("sum", 5, 3.0)):
            limit = 0.3 * width ** (1 / norm_type)
            layer = EmbeddingBag(20, width, limit, norm_type, mode=mode, split=split, padding_idx=3)
            plain = torch.nn.EmbeddingBag(20, width, limit, norm_type, mode=mode, padding_idx=3,
                                          _weight=layer.full_weight().detach().cpu())
            every = [torch.randint(12, (samples(rank), 3), generator=torch.Generator(DEVICE).manual_seed(rank)).cpu()
                     for rank in range(plait.world_size())]
            before = plain.weight.detach().clone()
            plain(torch.cat(every))  # all rows are limited before any rank reads one
            wanted = plain(every[plait.rank()])
            ids = every[plait.rank()].to(DEVICE)
            found = layer(ids)
            close(found.cpu(), wanted)
            close(layer.full_weight().cpu(), plain.weight)
            assert not torch.equal(before, plain.weight), (split, mode, before, plain.weight, every)
            found.sum().backward()
            close(layer(ids), found)  # once is enough
    tables = EmbeddingBags([9, 30], 4, mode="sum", splits=["replicated", "columns"], max_norm=0.5)
    ids, weights = torch.tensor([plait.rank(), 7]), torch.ones(2, requires_grad=True)
    out = tables(ids, torch.tensor([0, 1]), weights)
    assert out.norm(dim=2).max() < 0.501
    out.sum().backward()
    close(weights.grad, torch.stack([tables.full_weight(t)[ids[t]].sum() for t in range(2)]))
    replicated = tables.full_weight(0)
    assert (replicated[:plait.world_size()].norm(dim=1) < 0.501).all()
    close(replicated, tables.weights[0])


def layers_serve_inference():
    with torch.inference_mode():
        layer = EmbeddingBag(9, 4, max_norm=0.5, split="columns")
        assert layer(torch.tensor([[1, 2], [3, 4]])).norm(dim=1).max() < 0.501


def maxima_go_to_their_first_place():
    for split in SPLITS:
        for width in (1, 2, 37):
            layer = EmbeddingBag(20, width, mode="max", split=split, padding_idx=3)
            with torch.no_grad():  # ties
                layer.load_full_weight(layer.full_weight().round())
            plain = torch.nn.EmbeddingBag(20, width, mode="max", padding_idx=3, _weight=layer.full_weight().detach())
            for rank in range(plait.world_size()):
                own = rank == plait.rank()
                ids = torch.randint(20, (samples(rank), 6), generator=torch.Generator(DEVICE).manual_seed(rank))
                wanted = plain(ids)
                wanted.backward(gradient_of(rank, len(ids), 1, width).squeeze(1))
                if own:
                    found = layer(ids)
                    assert torch.equal(found, wanted)
                    found.backward(gradient_of(rank, len(ids), 1, width).squeeze(1))
            if layer.weight.numel() > 0:
                whole = torch.empty_like(layer.weight)
                layer._tables.load(0, whole, plain.weight.grad)
                close(layer.weight.grad, whole)
            layer.load_full_weight(torch.tensor([[1.0], [float("nan")], [3.0]]).repeat(7, width)[:20])
            assert layer(torch.tensor([[0, 1, 2]])).isnan().all()
            assert (layer(torch.tensor([[0, 5, 3, 0]])) == 3).all()  # without padding, 3 of 5


def gradient_of_ids(bags, gradient, padding, mode):
    """Returns for each id of a table its share of the gradient of its bag."""
    ids, offsets, _ = bags
    sizes = torch.diff(torch.cat([offsets, torch.tensor([len(ids)])]))
    bag = torch.arange(len(offsets)).repeat_interleave(sizes)
    counts = torch.zeros(len(offsets)).index_add_(0, bag, (ids != (-1 if padding is None else padding)).float())
    return gradient[bag] / (counts.clamp(min=1)[bag, None] if mode == "mean" else 1)


def gradients_are_scaled_by_frequency():
    """Against torch.nn.Embedding: on the CPU, torch.nn.EmbeddingBag divides by the frequency of another id."""
    rows, width, padding = [50, 1, 30, 7], 5, [2, None, 3, None]
    for mode in ("sum", "mean"):
        for sparse in (True, False):
            layer = EmbeddingBags(rows, width, mode=mode, sparse=sparse, padding_idx=padding,
                                  splits=["replicated", "table", "rows", "columns"], scale_grad_by_freq=True)
            tables = whole_tables(layer, len(rows))
            layers = [(bags_of(rank, rows, samples(rank)), gradient_of(rank, samples(rank), len(rows), width))
                      for rank in range(plait.world_size())]
            bags, gradient = layers[plait.rank()]
            layer(*bags[:2]).backward(gradient)
            for t, weight in enumerate(tables):
                parts = [table_bags(bags, t, len(rows)) for bags, _ in layers]
                ids = torch.cat([ids for ids, *_ in parts])
                gradient = torch.cat([gradient_of_ids(part, g[:, t], padding[t], mode)
                                      for part, (_, g) in zip(parts, layers)])
                plain = torch.nn.Embedding(rows[t], width, padding_idx=padding[t], scale_grad_by_freq=True,
                                           _weight=weight)
                plain(ids).backward(gradient)
                found = layer.weights[t].grad
                if found.numel() > 0:
                    close(found.to_dense() if sparse else found, own_part(layer, t, plain.weight.grad))


def weights_of_ids_have_gradients():
    for split in SPLITS:
        for width in (1, 2, 37):  # fewer columns than ranks, and odd
            layer = EmbeddingBag(20, width, mode="sum", split=split, padding_idx=3)
            plain = torch.nn.EmbeddingBag(20, width, mode="sum", padding_idx=3, _weight=layer.full_weight().detach())
            count = samples(plait.rank())
            ids = torch.randint(20, (count, 6), generator=torch.Generator(DEVICE).manual_seed(plait.rank()))
            weights = [torch.linspace(-1, 1, 6 * count).view(count, 6).requires_grad_() for _ in range(2)]
            for table, of_ids in zip((layer, plain), weights):
                table.weight.requires_grad_(False)
                table(ids, per_sample_weights=of_ids).sin().sum().backward()
            close(*(w.grad for w in weights))
    layer = EmbeddingBag(20, 4, mode="sum", split="rows")
    ids, weights = torch.tensor([[1, 2]]), torch.ones(1, 2, requires_grad=True)
    out = layer(ids, per_sample_weights=weights).sum()
    with torch.no_grad():
        layer.weight.add_(1)
    with pytest.raises(ValueError, match="need the tables as they were in forward"):
        out.backward()
    layer(ids, per_sample_weights=weights).sum().backward()
    close(weights.grad[0], layer.full_weight()[[1, 2]].sum(1))


def tables_without_ids_have_empty_gradients():
    """A batch that names no row of a piece, of a table, or of any; on one rank, or on all."""
    for split in SPLITS:
        for sparse in (False, True):
            layer = EmbeddingBag(10, 4, mode="sum", sparse=sparse, split=split, padding_idx=3)
            for ids in ([], [3, 3], [7] if plait.rank() == 0 else []):
                layer.weight.grad = None
                layer(torch.tensor(ids, dtype=torch.long), torch.zeros(2, dtype=torch.long)).sum().backward()
                assert layer.weight.grad.shape == layer.weight.shape
            layer = EmbeddingBags([10, 20], 4, mode="sum", sparse=sparse, splits=split and [split] * 2)
            layer(torch.tensor([1]), torch.tensor([0, 1])).sum().backward()
            assert all(w.grad.shape == w.shape for w in layer.weights)


CHECKS = [many_tables_are_as_pytorch, rows_of_many_ids_have_the_same_bits_again,
          narrow_tables_are_as_pytorchs_of_rounded_weights, narrow_rows_are_changed_in_float32,
          narrow_layers_are_saved_and_loaded, one_table_is_as_pytorch, weights_of_ids_have_gradients,
          gradients_are_scaled_by_frequency, maxima_go_to_their_first_place, norms_are_limited, layers_serve_inference,
          weights_do_not_depend_on_ranks, rows_optimisers_are_as_pytorch, replicated_tables_stay_equal,
          mean_over_ranks_takes_them, layers_are_saved_and_loaded, tables_without_ids_have_empty_gradients]

if __name__ == "__main__":
    run(CHECKS + REFUSALS)

"""Optimisers that change only the rows of a table that have a gradient, in one pass over them.

    tables = plait.nn.EmbeddingBags([10**6, 300], 64, mode="sum", sparse=True)
    optimizer = plait.optim.RowAdagrad(tables.parameters(), lr=0.01)

They take sparse gradients, of plait.nn.EmbeddingBag or torch.nn.EmbeddingBag with sparse=True, on the CPU or a
GPU, and compute what PyTorch's optimisers do with these. Every rank changes its own pieces. Weights are float32,
bfloat16 or float16; all arithmetic is in float32, in which states are, too, and weights are rounded to the nearest
number, ties to even, when they are stored.
"""

import numbers

import torch

from plait._library import ops


def _is_number(value):
    return isinstance(value, numbers.Real) or (isinstance(value, torch.Tensor) and value.numel() == 1)


def _check(settings):
    """Raises ValueError for settings of a group of weights, or of all, that are no numbers or out of range."""
    for name in ("lr", "eps", "lr_decay", "initial_accumulator_value"):
        value = settings.get(name, 0)
        if not _is_number(value) or not value >= 0:  # NaN neither
            raise ValueError(f"{name} is {value!r}; use a number of 0 or more")
    betas = settings.get("betas", (0, 0))
    if not isinstance(betas, (tuple, list)) or len(betas) != 2 or not all(
            _is_number(beta) and 0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas are {betas!r}; use two numbers from 0 up to 1")


class _RowOptimizer(torch.optim.Optimizer):
    """`rule`: its name in C++; `states`: the names of its arrays, in the order in which C++ takes them."""

    rule, states = None, ()

    def __init__(self, params, **defaults):
        _check(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group):
        """As PyTorch's, with the same checks of the group's settings as of those of all groups."""
        if isinstance(param_group, dict):
            _check({**self.defaults, **param_group})
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure=None):
        """Changes the rows. Returns what `closure` returns, which is called first if it is given. Raises
        ValueError for gradients that are not sparse."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._change(p, group)
        return loss

    def load_state_dict(self, state_dict):
        """As PyTorch's, but states stay float32, whatever the type of the weights."""
        super().load_state_dict(state_dict)
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        for number, p in zip(numbers, params, strict=True):
            given = state_dict["state"].get(number, {})
            for name in self.states:
                if name in given:
                    self.state[p][name] = given[name].to(p.device, torch.float32, copy=True)

    def _change(self, p, group):
        if p.grad.layout != torch.sparse_coo or p.grad.sparse_dim() != 1:
            raise ValueError(f"{type(self).__name__} takes sparse gradients; make the layer with sparse=True")
        if p.dim() != 2:
            raise ValueError(f"{type(self).__name__} takes tables (rows, columns), but a weight has shape "
                             f"{tuple(p.shape)}")
        gradient = p.grad.coalesce()
        state = self.state[p]
        if not state:
            state["step"] = 0
            for name in self.states:
                state[name] = torch.full_like(p, group.get("initial_accumulator_value", 0.0), dtype=torch.float32,
                                              memory_format=torch.contiguous_format)
        state["step"] += 1
        ops.update_rows_(p.data, [state[name] for name in self.states], gradient.indices()[0],
                         gradient.values().float().contiguous(), self.rule, self._numbers(group, state["step"]))
        torch.autograd.graph.increment_version(p)


class RowSGD(_RowOptimizer):
    """As torch.optim.SGD(params, lr), without momentum or weight decay."""

    rule = "sgd"

    def __init__(self, params, lr=1e-3):
        super().__init__(params, lr=lr)

    def _numbers(self, group, step):
        return [group["lr"], 0.0, 0.0, 0.0]


class RowAdagrad(_RowOptimizer):
    """As torch.optim.Adagrad, without weight decay."""

    rule, states = "adagrad", ("sum",)

    def __init__(self, params, lr=1e-2, lr_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
        super().__init__(params, lr=lr, lr_decay=lr_decay, initial_accumulator_value=initial_accumulator_value,
                         eps=eps)

    def _numbers(self, group, step):
        return [group["lr"] / (1 + (step - 1) * group["lr_decay"]), group["eps"], 0.0, 0.0]


class RowAdam(_RowOptimizer):
    """As torch.optim.SparseAdam."""

    rule, states = "adam", ("exp_avg_sq", "exp_avg")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, lr=lr, betas=betas, eps=eps)

    def _numbers(self, group, step):
        first, second = group["betas"]
        rate = group["lr"] * (1 - second**step) ** 0.5 / (1 - first**step)
        return [rate, group["eps"], 1 - first, 1 - second]

"""Batch normalisation over the rows of all ranks (Ioffe and Szegedy, ICML 2015)."""

import torch
from torch.autograd.function import once_differentiable

from plait._library import ops
from plait._made_classes import pickled_as
from plait._spread.dropout import is_apart
from plait.world import all_reduce, require_ranks, world_size


class BatchNorm1d(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d of (own rows, width). In training its mean and variance are those of the
    rows of all ranks. Collective in training, and if no running statistics are kept. Where one of several ranks
    computes alone (plait.alone()), the running statistics stay as they are: they are the same on all."""

    def forward(self, x):
        if self.training and is_apart():
            return torch.nn.functional.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        if world_size() == 1 or not (self.training or self.running_mean is None):
            return super().forward(x)
        if x.dim() != 2:
            raise ValueError(f"x has shape {tuple(x.shape)}, but must have (rows, width)")
        y, mean, variance, count = _Normalize.apply(x, self.eps)
        if count <= 1:
            raise ValueError(f"batch normalisation needs more than one row; all ranks have {count}")
        self._move_running(mean, variance * (count / (count - 1)))
        return (y if self.weight is None else y * self.weight + self.bias).to(x.dtype)

    @torch.no_grad()
    def _move_running(self, mean, unbiased_variance):
        if not self.training or not self.track_running_stats:
            return
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:  # the mean of all steps
            ops.wait_for(self.num_batches_tracked)
            momentum = 1 / self.num_batches_tracked.item()
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(unbiased_variance, momentum)


pickled_as(torch.nn.BatchNorm1d, BatchNorm1d)


class _Normalize(torch.autograd.Function):
    """Computes (x - mean) / sqrt(variance + eps), mean, variance (over `count` rows), count; in float32 where x has
    shorter numbers, as torch does."""

    @staticmethod
    def forward(context, x, eps):
        context.dtype = x.dtype
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        ones = x.new_tensor([x.size(0)], dtype=torch.float64)
        sums = all_reduce(torch.cat([x.sum(0, dtype=torch.float64), ones]),
                          "mean of batch normalisation")
        count = int(sums[-1])
        # Summed in double precision, so that the sums hardly depend on which rank has which rows.
        mean = (sums[:-1] / max(count, 1)).to(x.dtype)
        centred = x - mean
        squares = all_reduce(centred.square().sum(0, dtype=torch.float64),
                             "variance of batch normalisation")
        variance = (squares / max(count, 1)).to(x.dtype)
        scale = (variance + eps).rsqrt()
        y = centred * scale
        context.save_for_backward(y, scale)
        context.count, context.ranks = count, world_size()
        context.mark_non_differentiable(mean, variance)
        return y, mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(context, dy, *_):
        require_ranks(context.ranks, "the model was called")
        y, scale = context.saved_tensors
        sums = torch.cat([dy.sum(0, dtype=torch.float64), (dy * y).sum(0, dtype=torch.float64)])
        sums = all_reduce(sums, "gradient of batch normalisation")
        means = (sums / context.count).to(dy.dtype)
        of_dy, of_product = means.chunk(2)
        return ((dy - of_dy - y * of_product) * scale).to(context.dtype), None

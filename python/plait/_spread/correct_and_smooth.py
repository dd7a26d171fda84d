"""Correct and smooth (Huang et al., ICLR 2021) on a spread graph."""

import functools

import torch

from plait._made_classes import derived
from plait.reduce import sum as sum_of_ranks
from plait.world import world_size


@functools.cache
def correct_and_smooth_class(theirs):
    """Returns the subclass of PyTorch Geometric's CorrectAndSmooth whose scale is that of all nodes."""
    def correct(self, y_soft, y_true, mask, edge_index, edge_weight=None):
        """As PyTorch Geometric's method (section 2.2 of the paper), for a mask of own nodes."""
        if mask.dtype != torch.bool and world_size() > 1:
            raise ValueError("CorrectAndSmooth: mask lists nodes; give a mask of own nodes, as "
                             "data.train_mask")
        if not self.autoscale:
            return theirs.correct(self, y_soft, y_true, mask, edge_index, edge_weight)
        if y_true.dtype == torch.long and y_true.numel() == len(y_true):
            y_true = torch.nn.functional.one_hot(y_true.view(-1), y_soft.size(-1))
        error = torch.zeros_like(y_soft)
        error[mask] = y_true.to(y_soft.dtype) - y_soft[mask]
        smoothed = self.prop1(error, edge_index, edge_weight=edge_weight,
                              post_step=lambda x: x.clamp_(-1, 1))
        known = y_true.size(0)
        assert known == (int(mask.sum()) if mask.dtype == torch.bool else mask.numel())
        sigma = sum_of_ranks(error.detach().abs()) / sum_of_ranks(torch.tensor(known))
        scale = sigma / smoothed.abs().sum(1, keepdim=True)
        return y_soft + torch.where(scale > 1000, 1, scale) * smoothed

    return derived(theirs, {"correct": correct})

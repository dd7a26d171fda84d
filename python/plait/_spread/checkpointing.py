"""Refuses torch.utils.checkpoint within a spread model: it computes again during the backward pass, outside
of the model's call, where weights are not shared and dropout draws anew."""

import torch.utils.checkpoint

from plait._spread.dropout import graph_of_model
from plait._spread.replaced_names import Names


def _refuse_within_a_spread_model():
    if graph_of_model() is not None and torch.is_grad_enabled():
        raise NotImplementedError("torch.utils.checkpoint in a spread model is not supported: its gradients "
                                  "would be wrong; leave it out (in DeepGCNLayer: ckpt_grad=False)")


class _Reentrant:
    @staticmethod
    def apply(*args):
        _refuse_within_a_spread_model()
        return _theirs[0].apply(*args)


def _not_reentrant(*args, **kwargs):
    _refuse_within_a_spread_model()
    return _theirs[1](*args, **kwargs)


_theirs = (torch.utils.checkpoint.CheckpointFunction,
           torch.utils.checkpoint._checkpoint_without_reentrant_generator)
_names = Names(list(zip(_theirs, (_Reentrant, _not_reentrant))),
               lambda module, name: module == "torch.utils.checkpoint")
_names.search()

checkpointing_refused = _names.replaced

"""Modules whose calls can be replaced by the operations that they stand for."""

import torch.nn.modules.module

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_bare(module, but=0):
    """Returns whether a call of the module is just the forward of its class: it has no hooks (as pruning
    adds) and no forward of its own. `but`: a number of hooks that are allowed."""
    if "forward" in vars(module) or torch.nn.modules.module._has_any_global_hook():
        return False
    return sum(len(getattr(module, name)) for name in _HOOKS) <= but

"""What is left to PyTorch Geometric's own code, and how a user learns of it."""

import os
import warnings

_told = set()


class Slow(Exception):
    """Only PyTorch Geometric's own code computes a call.

    Args:
        kind: a word for the cause; a user is told once for each.
        reason: the cause in full; None: the kind says it.
    """

    def __init__(self, kind, reason=None):
        super().__init__(reason or kind)
        self.kind = kind


def refuse_if_strict(conv, slow):
    """Raises NotImplementedError if the environment has PLAIT_STRICT=1."""
    if os.environ.get("PLAIT_STRICT", "0") not in ("", "0"):
        raise NotImplementedError(_text(conv, slow)) from None


def tell(conv, slow):
    """Warns once for each class of layers and kind of cause."""
    kind = type(conv), slow.kind
    if kind not in _told:
        _told.add(kind)
        warnings.warn(_text(conv, slow), stacklevel=7)


def _text(conv, slow):
    return (f"plait.nn.{type(conv).__name__}: PyTorch Geometric's own code computes this, slowly, "
            f"because of {slow}")

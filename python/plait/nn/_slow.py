"""What is left to PyTorch Geometric's own code, and how a user learns of it."""

import contextlib
import os
import warnings

from plait._edges.inputs import UnsupportedType

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


@contextlib.contextmanager
def left_to_theirs(is_left):
    """Makes Slow of errors about edges if `is_left`, so that PyTorch Geometric's own code tells them. (On a
    GPU, that code would end the process's use of it, for a wrong id.)"""
    try:
        yield
    except (ValueError, UnsupportedType) as error:
        if not is_left:
            raise
        raise Slow("edges", f"edges: {error}") from error


def refuse_if_strict(conv, slow):
    """Raises NotImplementedError if the environment has PLAIT_STRICT=1."""
    if os.environ.get("PLAIT_STRICT", "0") not in ("", "0"):
        raise NotImplementedError(_text(conv, slow)) from None


class MixedTypes(ValueError, RuntimeError):
    """x and the weights of a layer are of different types. For PyTorch this is a RuntimeError."""


def refuse_mixed_types(conv, x, error):
    """Raises MixedTypes if PyTorch's error says that types differ, as those of x and the layer's weights do."""
    if "same dtype" not in str(error):
        return
    rows = x[0] if isinstance(x, (tuple, list)) and x else x
    of_x = getattr(rows, "dtype", None)
    for name, weight in conv.named_parameters():
        if weight.dtype != of_x:
            raise MixedTypes(
                f"x is {of_x}, but {name} of plait.nn.{type(conv).__name__} is {weight.dtype}; give both one type, "
                "best float32 (.float()), for which Plait's layers are fast") from error


def tell(conv, slow):
    """Warns once for each class of layers and kind of cause."""
    kind = type(conv), slow.kind
    if kind not in _told:
        _told.add(kind)
        warnings.warn(_text(conv, slow), stacklevel=7)


def _text(conv, slow):
    return (f"plait.nn.{type(conv).__name__}: PyTorch Geometric's own code computes this, slowly, "
            f"because of {slow}")

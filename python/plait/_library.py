"""Loads the C++ operations: torch.ops.plait.* and torch.classes.plait.Graph."""

import pathlib

import torch


def load(path):
    """Loads the library at `path`. Raises ImportError with one line that says what to do."""
    if not path.exists():
        raise ImportError(f"plait: {path} is missing; build the target plait_ops, or pip install .")
    try:
        torch.ops.load_library(path)
    except OSError as error:
        # The usual cause is undefined symbols: libtorch's C++ interface changes with every release.
        raise ImportError(
            f"plait: {path} does not load beside torch {torch.__version__}: {error}; install plait "
            "anew in this environment"
        ) from None


load(pathlib.Path(__file__).parent / "_ops.so")

ops = torch.ops.plait
version = ops.version()

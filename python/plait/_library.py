"""Loads the C++ operations: torch.ops.plait.* and torch.classes.plait.Graph."""

import pathlib

import torch

PATH = pathlib.Path(__file__).parent / "_ops.so"


def _load():
    if not PATH.exists():
        raise ImportError(f"plait: {PATH} is missing; build it (target plait_ops) or pip install plait")
    try:
        torch.ops.load_library(PATH)
    except OSError as error:
        # Undefined symbols, most likely: libtorch's C++ interface changes with every release.
        raise ImportError(
            f"plait: {PATH} does not load beside torch {torch.__version__}: {error}; install plait "
            "anew in this environment"
        ) from None


_load()

ops = torch.ops.plait
version = ops.version()

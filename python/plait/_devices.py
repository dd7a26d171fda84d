"""Devices on which graphs are sampled."""

import torch

from plait._library import ops


def checked_device(device):
    """Returns the torch.device that `device` names, the CPU or one GPU. Raises ValueError for other devices, for a
    GPU that there is not, and for any GPU if this build has no GPU engine."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}; give 'cpu', 'cuda' or 'cuda:N'")
    if found.type == "cpu":
        return torch.device("cpu")
    if not ops.built_with_cuda():
        raise ValueError(f"device is {str(found)!r}, but this build of Plait has no GPU engine; build it where nvcc is "
                         "found, or give device='cpu'")
    if not torch.cuda.is_available():
        raise ValueError(f"device is {str(found)!r}, but PyTorch finds no GPU; give device='cpu', or install a driver "
                         "and a PyTorch with CUDA")
    count = torch.cuda.device_count()
    if found.index is not None and found.index >= count:
        there = "is one GPU; give cuda:0" if count == 1 else f"are {count} GPUs; give cuda:0 to cuda:{count - 1}"
        raise ValueError(f"device is {str(found)!r}, but there {there}")
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def is_capturing():
    """Returns whether torch.cuda.graph is capturing the work that this thread enqueues."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def samples_on(device):
    """Returns whether graphs can be sampled on a device on which there are tensors."""
    return device.type == "cpu" or (device.type == "cuda" and ops.built_with_cuda())

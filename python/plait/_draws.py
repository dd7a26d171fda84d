"""Keys of random draws."""

import torch


def draw_key():
    """Returns the key of a sample: the next number of torch's generator, of this process or worker."""
    return int(torch.randint(2**63 - 1, ()))

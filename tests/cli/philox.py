"""Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011), in
NumPy."""

import numpy as np

HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def philox_words(low, seed, high=None):
    """Returns four arrays of 32-bit words for arrays of 64-bit low and high counters."""
    high = np.zeros_like(low) if high is None else high
    c = [low & LOW, low >> HALF, high & LOW, high >> HALF]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> HALF) ^ c[1] ^ np.uint64(key[0]), b & LOW,
             (a >> HALF) ^ c[3] ^ np.uint64(key[1]), a & LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c)

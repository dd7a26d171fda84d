"""The data that plait bench model makes, by their definition: the oracle of plait/measure/made_data.h."""

import numpy as np

from philox import philox_words

LABEL_STREAM = 23 << 56


def made_features(vertices, width):
    """Multiples of 1/256 in (0, 1), by a hash of vertex and column."""
    vertex = np.arange(vertices, dtype=np.uint64)[:, None]
    column = np.arange(width, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = (vertex * np.uint64(0x9E3779B97F4A7C15) + column) * np.uint64(0xD1342543DE82EF95)
    return ((1 + (mixed >> np.uint64(40)) % np.uint64(255)) / 256).astype(np.float32)


def made_labels(vertices, classes, seed):
    """Uniform classes: the high half of a random word of 64 bits times their number."""
    vertex = np.arange(vertices, dtype=np.uint64)
    words = philox_words(vertex, seed, np.full(vertices, LABEL_STREAM, np.uint64))
    bits = [(int(high) << 32 | int(low)) * classes >> 64 for high, low in zip(words[0], words[1])]
    return np.array(bits, dtype=np.int64)

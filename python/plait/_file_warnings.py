"""Shows what the reader of a graph file warned of."""

import os
import warnings


def warn_of_file(lines, stacklevel=3):
    """Warns of each line, in the first process of a job alone: all of them read the same file."""
    if os.environ.get("RANK", "0") != "0":
        return
    for line in lines:
        warnings.warn(line, stacklevel=stacklevel)

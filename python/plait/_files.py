"""What reading files says, in Python's own way: errors as FileNotFoundError, PermissionError, IsADirectoryError and
other OSErrors, and warnings."""

import contextlib
import errno
import os
import warnings

import torch

from plait._edges.inputs import whole_number, word

# The system's reason at the end of an error of the C++ operations -> its number.
_NUMBERS = {os.strerror(number).lower(): number for number in errno.errorcode}
# The beginnings of Plait's own reasons.
_OWN_REASONS = {"is a folder": errno.EISDIR, "there is no folder": errno.ENOENT, "the name is empty": errno.ENOENT}


@contextlib.contextmanager
def file_errors(path):
    """Within this context, a RuntimeError that says why the file cannot be opened or written is the OSError for
    that reason, of one line that names the path."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        number, why, of = _reason_of(str(error))
        if number is None:
            raise
        raise OSError(number, why, of or os.fspath(path)) from None


def reading_options(vertices, directed, first_line):
    """Returns these arguments of plait.Graph.load as the operations take them: (0 for None, directed, first_line).
    Raises TypeError and ValueError."""
    count = 0 if vertices is None else whole_number("vertices", vertices)
    if vertices is not None and count < 1:
        raise ValueError(f"vertices is {vertices}, but a graph has at least 1")
    if not isinstance(directed, bool):
        raise TypeError(f"directed is {directed!r}; use True or False")
    return count, directed, word("first_line", first_line)


def warn_of_file(lines, stacklevel=3):
    """Warns of each line, in the first process of a job alone: all of them read the same file."""
    if os.environ.get("RANK", "0") != "0":
        return
    for line in lines:
        warnings.warn(line, stacklevel=stacklevel)


def _reason_of(text):
    """Returns the number of an error by its text, the text without the path, and the path, if it is there; three
    times None for other errors."""
    for verb in ("cannot be opened: ", "cannot be written: "):
        path, found, why = text.partition(verb)
        if found:
            number = _NUMBERS.get(why.lower())
            for start, own in _OWN_REASONS.items():
                number = own if why.startswith(start) else number
            return number, verb + why, path.removesuffix(": ").strip("'")
    if text.startswith("filesystem error: "):  # of the C++ library
        why = text.partition(" [")[0].rpartition(": ")[2]
        return _NUMBERS.get(why.lower()), why, None
    return None, None, None

"""Keys of random draws, and the numbers of steps that they depend on."""

import threading

import torch

from plait._library import ops
from plait.world import world_size


_within = threading.local()  # source: of the innermost spread model that computes in this thread


def draw_key():
    """Returns the key of a sample: the next number of torch's generator, of this process or worker."""
    return int(torch.randint(2**63 - 1, ()))


def current_source():
    """Returns whatever draws for the spread model that computes in this thread (plait._spread.dropout.VertexDropout), or
    None."""
    return getattr(_within, "source", None)


def exchange_source(source):
    """Makes this the current source of this thread, and returns the one before."""
    before, _within.source = current_source(), source
    return before


def draw(device):
    """Returns (seed, step) for dropout that draws by ids on a graph on the given device, the same on every rank.
    The seed is below 2^63; the step is an int32 tensor on the device, or None. Within a spread model both follow
    from its counts, otherwise from torch's generators: on several ranks from that of rank 0, collectively. Each replay of
    a step that torch.cuda.graph has captured finds another step number."""
    source = current_source()
    if source is not None:
        return source.draw(device)
    seed = torch.randint(2**63 - 1, (1,), device="cpu")  # every rank's generator moves on
    ranks = world_size()
    if ranks > 1:
        ops.broadcast_(seed, 0)
    if device.type != "cuda":
        return int(seed), None
    if ranks > 1:
        return int(seed), _replays.step(device)
    captured = torch.cuda.is_current_stream_capturing()
    return int(seed), torch.randint(2**24, (), dtype=torch.int32, device=device) if captured else None


class StepCounter:
    """Counts steps separately on each device on which the count was requested, so that a step that
    torch.cuda.graph has captured counts itself.

    Attributes:
        calls: the number of calls of advance(), without those of replays: the host's own count.
    """

    def __init__(self):
        self.calls = 0
        with torch.inference_mode(False):
            self._steps = {torch.device("cpu"): torch.zeros((), dtype=torch.int32)}

    def on(self, device):
        if device not in self._steps:
            # Replays of a captured step have counted only on their own GPU.
            count = max(int(step) for step in self._steps.values())
            with torch.inference_mode(False):
                self._steps[device] = torch.tensor(count, dtype=torch.int32, device=device)
        return self._steps[device].clone()  # later steps do not change what a backward pass reads

    def advance(self, calls=1):
        self.calls += calls
        for step in self._steps.values():
            step.add_(calls)


class _Replays:
    """Counts the replays of captured steps on several ranks, which replay them equally often. Generators of their GPUs
    may differ."""

    def __init__(self):
        self._counts = {}  # device -> int32 scalar there

    def step(self, device):
        """Returns a step number under capture, else None. Raises RuntimeError if a step is captured in which attention
        is dropped that has not been dropped before: a capture cannot make the count."""
        if not torch.cuda.is_current_stream_capturing():
            if device not in self._counts:
                with torch.inference_mode(False):
                    self._counts[device] = torch.zeros((), dtype=torch.int32, device=device)
            return None
        if device not in self._counts:
            raise RuntimeError("a step is captured whose attention has not been dropped before; do a few steps before "
                               "capturing")
        return self._counts[device].add_(1).clone()


_replays = _Replays()

"""The most memory that a process and its descendants hold together and that no file backs. Memory that they share
counts once."""

import pathlib
import re
import threading
import time

PERIOD = 0.005  # seconds between samples
FORKS = 0.1  # seconds between looks for processes


def descendants(process):
    """Returns a process and all that it has started."""
    children, found = {}, [process]
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    for parent in found:
        found += children.get(parent, [])
    return found


def held(process):
    """Returns the bytes of a process: its own, and its share of what it shares."""
    try:
        text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return 1024 * sum(int(kilobytes) for kilobytes in re.findall(r"Pss_(?:Anon|Shmem): +(\d+)", text))


class MemoryPeak:
    """Watches a process that subprocess has started, until it ends."""

    def __init__(self, process):
        self.bytes = 0
        self.process = process
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        """Where a process lets go of shared memory between the looks at it and at another, the other's share has grown
        and the first one's is still counted: this is in one sample alone, so that the less of two in turn is right."""
        processes, looked, last = [], 0, 0
        while self.process.poll() is None:
            if time.monotonic() - looked > FORKS:
                processes, looked = descendants(self.process.pid), time.monotonic()
            now = sum(map(held, processes))
            self.bytes, last = max(self.bytes, min(last, now)), now
            time.sleep(PERIOD)

    def result(self):
        self.thread.join()
        return self.bytes

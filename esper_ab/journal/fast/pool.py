"""Parallel reading of a journal's stretches, each by a process of its own.

The processes are started by their own command and not by multiprocessing, which would run the main module of a user's
script again in each. They only save time: whatever they cannot do, for any reason, this process does itself.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.process_start import usable_cores
from esper_ab.journal.fast.chunk import Stretch, read_stretch, stretches

_LEAST_BYTES = 16 << 20  # of a stretch: starting a process takes a third of a second
_MOST_PROCESSES = 8  # more would wait for this one, and each takes a stretch's memory


def read_all(path: Path, start: int, chunk_bytes: int, measures: tuple[str, ...]) -> Iterator[Stretch]:
    """Read the journal from byte `start` on and yield its stretches in order; the plan declares `measures`.

    `chunk_bytes`: length of a stretch; 0: one for each process.
    """
    cores = min(usable_cores(), _MOST_PROCESSES)
    chunk_bytes = chunk_bytes or max(_LEAST_BYTES, -(-path.stat().st_size // cores))
    places = stretches(path, start, chunk_bytes)
    if min(len(places), cores) < 2:
        yield from (read_stretch(str(path), *place, measures) for place in places)
        return

    def read(place: tuple[int, int]) -> Stretch:
        return _by_process(path, place, measures) or read_stretch(str(path), *place, measures)

    with ThreadPoolExecutor(cores) as threads:  # each waits for the process that it started
        yield from threads.map(read, places)


def _by_process(path: Path, place: tuple[int, int], measures: tuple[str, ...]) -> Stretch | None:
    """Have a process read one stretch; None when it cannot be started or its answer is invalid."""
    asked = json.dumps((os.fsdecode(path), *place, measures))
    try:
        told = subprocess.run(
            child_command("esper_ab.journal.fast.reader", asked), stdin=subprocess.DEVNULL, capture_output=True,
            check=True,
        )  # fmt: skip
        found = pickle.loads(told.stdout)
    except Exception:  # noqa: BLE001  unpickling truncated or foreign bytes may raise anything
        return None
    return found if isinstance(found, Stretch) and found.start == place[0] else None

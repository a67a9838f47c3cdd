"""Parallel reading of a journal's stretches by several processes.

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
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.process_start import usable_cores
from esper_ab.journal.fast.chunk import Stretch, read_stretch

MOST_PROCESSES = 8  # more would wait for this one, and each takes a stretch's memory


def read_all(path: Path, places: list[tuple[int, int]], measures: tuple[str, ...]) -> Iterator[Stretch]:
    """Read the stretches at `places` (from, to) and yield them in this order; the plan declares `measures`."""
    count = min(len(places), usable_cores(), MOST_PROCESSES)
    with _readers(count if count > 1 else 0) as readers:
        idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for reader in readers:
            idle.put(reader)

        def ask(place: tuple[int, int]) -> Stretch | None:
            reader = idle.get()
            found = _answer(reader, path, place, measures)
            idle.put(reader)
            return found

        if not readers:
            yield from (read_stretch(str(path), *place, measures) for place in places)
            return
        with ThreadPoolExecutor(len(readers)) as threads:
            for place, found in zip(places, threads.map(ask, places), strict=True):
                yield read_stretch(str(path), *place, measures) if found is None else found


def _answer(
    reader: subprocess.Popen[bytes], path: Path, place: tuple[int, int], measures: tuple[str, ...]
) -> Stretch | None:
    """Have a process read one stretch; None when it has ended or its answer is invalid."""
    assert reader.stdin is not None, "it was opened with pipes"
    assert reader.stdout is not None, "it was opened with pipes"
    try:
        reader.stdin.write(json.dumps((os.fsdecode(path), *place, measures)).encode() + b"\n")
        reader.stdin.flush()
        found = pickle.load(reader.stdout)
    except Exception:  # noqa: BLE001  unpickling truncated or foreign bytes may raise anything
        return None
    return found if isinstance(found, Stretch) and found.start == place[0] else None


@contextmanager
def _readers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start up to `count` processes that answer requests for stretches; end them on exit."""
    command = child_command("esper_ab.journal.fast.reader")
    started: list[subprocess.Popen[bytes]] = []
    pipe = subprocess.PIPE
    try:
        for _ in range(count):
            try:
                started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL))
            except OSError:
                break
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):  # flushing unsent bytes into a broken pipe fails
                    stream.close()

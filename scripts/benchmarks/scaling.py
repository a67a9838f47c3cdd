"""Two runs on two cores against one on one: does the second lane slow down the first?

An episode that runs next to another can take longer because its worker waits for a core used by the coordinator or
another process, or because its core is slower: caches, memory and clock are shared. The kernel's accounting per process
separates the two. For comparison, two threads of pure multiply-adds, which share neither caches nor memory, show the
most that two cores of this machine can give.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import FEW, Spread, fma_rounds, timed
from esper_ab.journal.events import EpisodeRecorded, RunStarted, WorkerStarted
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.load import load

_SAMPLE_S = 0.5
_FMA_CALLS = 150  # two seconds or so
_LAUNCH = [sys.executable, "-m", "esper_ab.launch", "--eval-episodes", "4", "--seeds", "1", "--quiet"]


def measure(repeats: int) -> dict[str, Any]:
    """Measure real episodes of digits with two lanes and with one in turn; with one lane, groups run one by one."""
    episodes, repeats = (4, 2) if repeats <= FEW else (12, repeats)
    found: dict[str, list[dict[str, float]]] = {"one": [], "two": []}
    multiply_adds, kept = fma_rounds(), list[float]()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for repeat in range(repeats):
            for name, lanes in (("one", 1), ("two", 2)):
                found[name].append(_experiment(Path(folder) / f"{name}{repeat}", lanes, episodes))
            kept.append(_kept(multiply_adds))
    ratios = [one["episode_s"] / two["episode_s"] for one, two in zip(found["one"], found["two"], strict=True)]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "episodes": episodes,
        **{
            what: {name: asdict(Spread.of([one[what] for one in seen])) for name, seen in found.items()}
            for what in ("episode_s", "on_core_s", "waiting_s", "coordinator_ms")
        },
        "efficiency": asdict(Spread.of(ratios)),
        "multiply_adds": asdict(Spread.of(kept)),
        "of_multiply_adds": asdict(Spread.of([run / pure for run, pure in zip(ratios, kept, strict=True)])),
    }


def _kept(multiply_adds: Callable[[], int]) -> float:
    """Return the share of its wall speed that a thread of multiply-adds keeps next to a second thread; ctypes
    frees the GIL.
    """

    def seconds(_: int) -> float:
        return timed(lambda: [multiply_adds() for _ in range(_FMA_CALLS)]).wall

    alone = seconds(0)
    with ThreadPoolExecutor(2) as two:
        return alone / float(np.mean(list(two.map(seconds, range(2)))))


def _experiment(experiment_dir: Path, lanes: int, episodes: int) -> dict[str, float]:
    """Return median seconds of an episode after the first, and mean core use by the episodes and the coordinator."""
    devices = ",".join(f"cpu:{i}" for i in range(lanes))
    words = ["--groups", "a=shaped,b=shaped", "--devices", devices, "--episodes", str(episodes)]
    placement = [] if lanes == 2 else ["--placement", "sequence"]
    process = subprocess.Popen(
        [*_LAUNCH, *words, *placement, "--output-dir", str(experiment_dir.parent), "--name", experiment_dir.name],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    accounts = _watch(process)
    if process.returncode:
        raise RuntimeError(f"an experiment on {lanes} lanes ended with exit status {process.returncode}")
    pids, recorded = _recorded(experiment_dir / JOURNAL_NAME)
    workers = np.mean([_spent(accounts[pids[run]], moments) for run, moments in recorded.items()], axis=0)
    coordinator = np.mean([_spent(accounts[process.pid], moments) for moments in recorded.values()], axis=0)
    histories = load(experiment_dir).history.runs.values()
    return {
        "episode_s": float(np.median([seconds for run in histories for seconds in run.columns.of("total_s")[1:]])),
        "on_core_s": float(workers[0]),
        "waiting_s": float(workers[1]),
        "coordinator_ms": 1e3 * float(coordinator[0]) / lanes,  # as many episodes end in that time
    }


def _watch(process: subprocess.Popen[bytes]) -> dict[int, list[tuple[float, float, float]]]:
    """Sample a process and its children until the process ends: time (Unix, s), seconds on and waiting for a core."""
    found: dict[int, list[tuple[float, float, float]]] = {}
    while process.poll() is None:
        for pid in (process.pid, *_children(process.pid)):
            with suppress(OSError):  # it ended just now
                threads = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
                on_core, waiting = (sum(int(one[place]) for one in threads) / 1e9 for place in (0, 1))
                found.setdefault(pid, []).append((time.time(), on_core, waiting))
        time.sleep(_SAMPLE_S)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, file.read_text().split())
    return found


def _recorded(path: Path) -> tuple[dict[str, int], dict[str, list[float]]]:
    """Return, by run, the process that ran it and when its training episodes were recorded (Unix, s)."""
    reading, workers, pids = read(path), dict[str, int](), dict[str, int]()
    moments: dict[str, list[float]] = {}
    for event in reading:
        if isinstance(event, WorkerStarted):
            workers[event.worker] = event.pid
        elif isinstance(event, RunStarted):
            pids[event.run.name] = workers[event.worker]
        elif isinstance(event, EpisodeRecorded):
            moments.setdefault(event.record.run.name, []).append(datetime.fromisoformat(reading.wall_time).timestamp())
    return pids, moments


def _spent(account: list[tuple[float, float, float]], moments: list[float]) -> list[float]:
    """Return seconds per episode on a core and waiting for one, between the first and last of `moments`."""
    at, *kinds = zip(*account, strict=True)
    ends = [moments[0], moments[-1]]
    return [float(np.diff(np.interp(ends, at, kind))[0]) / (len(moments) - 1) for kind in kinds]


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    kinds = ("episode_s", "on_core_s", "waiting_s")
    rows = [
        [f"{name} at a time", *(_spread(record[kind][name]) for kind in kinds),
         f"{record['coordinator_ms'][name]['median']:.1f}"]
        for name in record["episode_s"]
    ]  # fmt: skip
    return [
        f"Digits, 4 environments, {record['episodes']} episodes; the same two runs on one core after the other and on "
        f"two cores at a time, in turn; {record['cores']} cores. Median seconds of an episode by its own stopwatch, "
        "quartiles over repeats. By the kernel's account: seconds per episode that the worker was on a core, its "
        "checkpoint included, and that it was ready and had none; milliseconds per episode that the coordinator was on "
        "one.",
        "",
        "| runs | seconds of an episode | worker on a core | worker waiting for a core | coordinator, ms |",
        "| --- | --- | --- | --- | --- |",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        f"Efficiency, one ÷ two: {_spread(record['efficiency'])}. With 1 the second run costs the first nothing. A "
        f"thread of pure multiply-adds keeps {_spread(record['multiply_adds'])} of its speed beside a second one; of "
        f"what that keeps, a run keeps {_spread(record['of_multiply_adds'])}. Where a worker is longer on a core "
        "beside another one, caches, memory or clock are shared; where it waits longer, somebody else had the core.",
    ]


def _spread(one: dict[str, float]) -> str:
    return f"{one['median']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"

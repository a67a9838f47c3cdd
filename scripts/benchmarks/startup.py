"""Benchmark of start-up: from a command to its first output, and from a launch to its first episode."""

import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import QUICK_REPEATS, spread
from benchmarks.markdown import ranged, table
from esper_ab.journal.events import EpisodeRecorded, ExperimentStarted, RunReady, WorkerStarted
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import Reading, read

_CLI = [sys.executable, "-m", "esper_ab.commands.cli"]
_LAUNCH = [sys.executable, "-m", "esper_ab.launch"]
_SMALL = ["--groups", "a=shaped,b=simplified", "--seeds", "1", "--episodes", "1", "--eval-episodes", "4"]
PHASES = ("plan", "spawn_and_import", "load_and_warm_up", "first_episode")


def measure(repeats: int) -> dict[str, Any]:
    """Return wall seconds; the commands alternate."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        launches = [_launched(Path(folder) / f"run{i}") for i in range(2 if repeats <= QUICK_REPEATS else 5)]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import torch'": [sys.executable, "-c", "import torch"],
            "esper-ab --help": [*_CLI, "--help"],
            "python -m esper_ab.launch --help": [*_LAUNCH, "--help"],
            "esper-ab status EXPERIMENT": [*_CLI, "status", str(Path(folder) / "run0")],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for repeat in range(4 if repeats <= QUICK_REPEATS else 16):
            for name, command in commands.items():
                took_s = _seconds(command)
                if repeat:  # the first fills the caches
                    seconds[name].append(took_s)
    return {
        "commands": {name: spread(seconds_of_command) for name, seconds_of_command in seconds.items()},
        "launch": {phase: spread([launch[phase] for launch in launches]) for phase in (*PHASES, "total")},
    }


def _seconds(command: list[str]) -> float:
    begin_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin_s


def _launched(experiment_dir: Path) -> dict[str, float]:
    """Return seconds by phase and in total, by the journal's clock. The phases end when the plan is made, all workers
    have said Hello, all runs are warm, and all have an episode.
    """
    begin_s = time.time()
    command = [*_LAUNCH, *_SMALL, "--output-dir", str(experiment_dir.parent), "--name", experiment_dir.name, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    first_times: dict[type, float] = {}
    journal_reading: Reading = read(experiment_dir / JOURNAL_NAME)
    for event in journal_reading:
        first_times[type(event)] = datetime.fromisoformat(journal_reading.wall_time).timestamp()
    moments = [begin_s, *(first_times[kind] for kind in (ExperimentStarted, WorkerStarted, RunReady, EpisodeRecorded))]
    phases = {name: end - start for name, start, end in zip(PHASES, moments, moments[1:], strict=False)}
    return phases | {"total": moments[-1] - begin_s}


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's tables."""
    return [
        "Seconds on the wall, medians and quartiles of interleaved runs.",
        "",
        *table("command | s", ([f"`{name}`", ranged(timing)] for name, timing in record["commands"].items())),
        "",
        "A launch of two groups with one seed each on digits, until both have their first episode. "
        "plan: preflight, plan and boundaries. spawn_and_import: until the last worker has imported torch and greeted. "
        "load_and_warm_up: until the last run is warm. Four processes import torch, two at a time: the preflight "
        "beside the command, then both workers.",
        "",
        *table("phase | s", ([name.replace("_", " "), ranged(timing)] for name, timing in record["launch"].items())),
    ]

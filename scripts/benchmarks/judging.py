"""Benchmark of `esper-ab judge` on CSV files of very many rows: core seconds and peak memory, beside reading alone."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import QUICK_REPEATS, spread
from benchmarks.markdown import ranged, table

_ROWS = (100_000, 1_000_000)
_MARGIN = "2"
_RUNS = 10  # of each group, if rows are items of several runs
# The least that any program does that compares two groups: it reads the table and computes two means.
_FLOOR = """
import csv, sys
sums = {}
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        count, total = sums.get(row["group"], (0, 0.0))
        sums[row["group"]] = count + 1, total + float(row["outcome"])
"""
# Runs a command and prints the core seconds and peak KiB that it used.
_TIMED = """
import json, os, resource, subprocess, sys
with open(os.devnull, "wb") as nothing:
    subprocess.run(sys.argv[1:], stdout=nothing, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"core_s": used.ru_utime + used.ru_stime, "largest_kib": used.ru_maxrss}))
"""


def measure(repeats: int) -> dict[str, Any]:
    """Judge tables of each kind and read the same files; the commands alternate."""
    is_quick = repeats <= QUICK_REPEATS
    cells = []
    for rows in _ROWS[:1] if is_quick else _ROWS:
        for kind, lines_of in _KINDS.items():
            with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
                file = Path(folder) / "rows.csv"
                file.write_text("\n".join(lines_of(rows)) + "\n")
                cells.append({"kind": kind, "rows": rows, "repeats": repeats, **_measured(file, kind, repeats)})
    return {"cells": cells}


def _measured(file: Path, kind: str, repeats: int) -> dict[str, Any]:
    """Return the core seconds and the largest size of both commands."""
    judge = [sys.executable, "-m", "esper_ab", "judge", str(file), "--margin", _MARGIN]
    if kind == "runs":
        judge += ["--rows", "runs"]
    commands = {"judge": judge, "floor": [sys.executable, "-c", _FLOOR, str(file)]}
    used: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            used[name].append(_timed(command))
    timings = {name: spread([each["core_s"] for each in of_command]) for name, of_command in used.items()}
    peaks = {name: max(each["largest_kib"] for each in of_command) for name, of_command in used.items()}
    return {"core_s": timings, "largest_kib": peaks}


def _runs(rows: int) -> Iterator[str]:
    """Yield runs of two groups, paired by seed, whose outcomes differ by a tenth of their SD."""
    draw = np.random.default_rng(0)
    yield "group,seed,outcome"
    for group, mean in (("a", 50.0), ("b", 51.0)):
        for seed, value in enumerate(draw.normal(mean, 10.0, rows // 2)):
            yield f"{group},{seed},{value:.6f}"


def _items_of_checkpoints(rows: int) -> Iterator[str]:
    """Yield the items of two checkpoints."""
    yield from _items(runs=1, items=rows // 2)


def _items_of_trainings(rows: int) -> Iterator[str]:
    """Yield the items of several runs of two groups."""
    yield from _items(runs=_RUNS, items=rows // (2 * _RUNS))


def _items(runs: int, items: int) -> Iterator[str]:
    """Yield the scores of both groups' runs on the same items, whose difficulties differ more than the runs do."""
    draw = np.random.default_rng(0)
    difficulty = draw.normal(50.0, 8.0, items)
    yield "group,run,item,outcome"
    for group, mean in (("a", 0.0), ("b", 0.5)):
        for run in range(runs):
            scores = difficulty + draw.normal(mean, 1.0) + draw.normal(0.0, 5.0, items)
            for item, score in enumerate(scores):
                yield f"{group},{run},q{item},{score:.6f}"


_KINDS: dict[str, Callable[[int], Iterator[str]]] = {
    "runs": _runs,
    "items of 2 checkpoints": _items_of_checkpoints,
    f"items of {2 * _RUNS} runs": _items_of_trainings,
}


def _timed(command: list[str]) -> dict[str, float]:
    process = subprocess.run([sys.executable, "-c", _TIMED, *command], capture_output=True, text=True, check=True)
    return dict(json.loads(process.stdout))


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    rows = []
    for cell in record["cells"]:
        seconds = cell["core_s"]
        ratio = seconds["judge"]["median"] / seconds["floor"]["median"]
        megabytes = cell["largest_kib"]["judge"] * 1024 / 1e6
        rows.append(
            [
                f"{cell['rows']:,} {cell['kind']}",
                ranged(seconds["judge"]),
                ranged(seconds["floor"]),
                f"{ratio:.1f}",
                f"{megabytes:.0f}",
            ]
        )
    return [
        "Core seconds, medians and quartiles of interleaved runs. `reading`: Python's `csv` reads the same file and "
        "computes the mean of each group.",
        "",
        *table("rows | judge, s | reading, s | ratio | judge, MB", rows),
    ]

"""Benchmark of `esper-ab judge` on a CSV file of very many rows: core seconds and peak memory, beside reading alone."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import QUICK_REPEATS, spread
from benchmarks.markdown import ranged, table

_ROWS = (100_000, 1_000_000)
_MARGIN = "2"
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
    """Judge two groups of paired runs and read the same file; the commands alternate."""
    is_quick = repeats <= QUICK_REPEATS
    cells = []
    for rows in _ROWS[:1] if is_quick else _ROWS:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            file = Path(folder) / "runs.csv"
            _write(file, rows)
            judge = [sys.executable, "-m", "esper_ab", "judge", str(file), "--margin", _MARGIN, "--rows", "runs"]
            commands = {"judge": judge, "floor": [sys.executable, "-c", _FLOOR, str(file)]}
            used: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
            for _ in range(repeats):
                for name, command in commands.items():
                    used[name].append(_timed(command))
        timings = {name: spread([each["core_s"] for each in of_command]) for name, of_command in used.items()}
        peaks = {name: max(each["largest_kib"] for each in of_command) for name, of_command in used.items()}
        cells.append({"rows": rows, "repeats": repeats, "core_s": timings, "largest_kib": peaks})
    return {"cells": cells}


def _write(file: Path, rows: int) -> None:
    """Write as many runs of two groups, paired by seed, whose outcomes differ by a tenth of their SD."""
    draw = np.random.default_rng(0)
    lines = ["group,seed,outcome"]
    for group, mean in (("a", 50.0), ("b", 51.0)):
        lines += [f"{group},{seed},{value:.6f}" for seed, value in enumerate(draw.normal(mean, 10.0, rows // 2))]
    file.write_text("\n".join(lines) + "\n")


def _timed(command: list[str]) -> dict[str, float]:
    process = subprocess.run([sys.executable, "-c", _TIMED, *command], capture_output=True, text=True, check=True)
    return dict(json.loads(process.stdout))


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    rows = []
    for cell in record["cells"]:
        seconds = cell["core_s"]
        ratio = seconds["judge"]["median"] / seconds["floor"]["median"]
        mib = cell["largest_kib"]["judge"] / 1024
        rows.append(
            [f"{cell['rows']:,}", ranged(seconds["judge"]), ranged(seconds["floor"]), f"{ratio:.1f}", f"{mib:.0f}"]
        )
    return [
        "Core seconds, medians and quartiles of interleaved runs. `reading`: Python's `csv` reads the same file and "
        "computes the mean of each group.",
        "",
        *table("rows | judge, s | reading, s | ratio | judge, MiB", rows),
    ]

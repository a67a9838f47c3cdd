"""Two runs on two cores against one on one: does the second lane cost the first anything?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import FEW, Spread
from esper_ab.journal.load import load

_LAUNCH = [sys.executable, "-m", "esper_ab.launch", "--eval-episodes", "1", "--replicates", "1", "--quiet"]


def measure(repeats: int) -> dict[str, Any]:
    """Real episodes of digits, two lanes and one in turn; an experiment of one lane runs its groups one by one."""
    episodes, repeats = (4, 2) if repeats <= FEW else (12, repeats)
    found: dict[str, list[float]] = {"one": [], "two": []}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for repeat in range(repeats):
            for name, lanes in (("one", 1), ("two", 2)):
                found[name].append(_episode_s(Path(folder) / f"{name}{repeat}", lanes, episodes))
    ratios = [one / two for one, two in zip(found["one"], found["two"], strict=True)]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "episodes": episodes,
        "episode_s": {name: asdict(Spread.of(seconds)) for name, seconds in found.items()},
        "efficiency": asdict(Spread.of(ratios)),
    }


def _episode_s(run_dir: Path, lanes: int, episodes: int) -> float:
    """Median seconds of an episode after the first, over both runs."""
    devices = ",".join(f"cpu:{i}" for i in range(lanes))
    words = ["--groups", "a=shaped,b=shaped", "--devices", devices, "--episodes", str(episodes)]
    placement = [] if lanes == 2 else ["--placement", "sequence"]
    subprocess.run(
        [*_LAUNCH, *words, *placement, "--out", str(run_dir.parent), "--name", run_dir.name],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    runs = load(run_dir).history.runs.values()
    return float(np.median([seconds for run in runs for seconds in run.columns.of("total_s")[1:]]))


def render(record: dict[str, Any]) -> list[str]:
    """The page's table."""
    rows = [(f"{name} at a time", found) for name, found in record["episode_s"].items()]
    rows.append(("efficiency: one ÷ two", record["efficiency"]))
    return [
        f"Digits, 4 environments, {record['episodes']} episodes; the same two runs on one core after the other and on "
        f"two cores at a time, in turn; {record['cores']} cores. Median seconds of an episode by its own stopwatch, "
        "quartiles over repeats. An efficiency of 1: the second run costs the first nothing.",
        "",
        "| runs | seconds of an episode |",
        "| --- | --- |",
        *(f"| {name} | {one['median']:.3f} [{one['low']:.3f}, {one['high']:.3f}] |" for name, one in rows),
    ]

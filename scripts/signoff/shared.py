"""Part 10: two and eight workers on one GPU: equal groups have equal records, and how fast they are together."""

import time
from typing import Any

from benchmarks.markdown import table

from signoff.machine import SHARED, Machine, digests

TITLE = "Several workers on one GPU"
BUDGET_S = 60
WORKERS = (2, 8)
_SIZES = {"--episodes": "1", "--steps": "5", "--eval-episodes": "4"}
_SMALL = {"--task": "synthetic", "--episodes": "1", "--steps": "4", "--n-envs": "2", "--eval-episodes": "2"}


def measure(machine: Machine) -> dict[str, Any]:
    """Train two and then eight equal groups, all at the same time."""
    return {"cells": [_cell(machine, workers) for workers in WORKERS]}


def _cell(machine: Machine, workers: int) -> dict[str, Any]:
    names = [chr(ord("a") + index) for index in range(workers)]
    flags = {
        "--groups": ",".join(f"{name}=shaped" for name in names),
        "--seeds": "1",
        **SHARED,
        **(_SIZES if machine.real else _SMALL),
    }
    start = time.monotonic()
    history = machine.launch(f"of-{workers}", flags)
    seconds = time.monotonic() - start
    runs = [history.runs[f"{name}/0"] for name in names]
    steps = sum(env.steps for run in runs for env in run.episodes[0].envs)
    slowest_s = max(run.episodes[0].timing.total_s for run in runs)
    return {
        "workers": workers,
        "devices": sorted(run.ref.device for run in runs),
        "digests": sorted({" ".join(digests(history, run.ref.name)) for run in runs}),
        "seconds": seconds,
        "episode_s": slowest_s,
        "steps_per_s": steps / slowest_s,
    }


def problems(findings: dict[str, Any]) -> list[str]:
    """Records that differ, and workers elsewhere than side by side on the GPU."""
    lines = []
    for cell in findings["cells"]:
        if len(cell["digests"]) != 1:
            lines.append(f"{cell['workers']} equal groups have {len(cell['digests'])} different records")
        expected = [f"cuda:0/{index}" for index in range(cell["workers"])]
        if cell["devices"] != expected:
            lines.append(f"{cell['workers']} workers ran on {', '.join(cell['devices'])}")
    if [cell["workers"] for cell in findings["cells"]] != list(WORKERS):
        lines.append("not both numbers of workers were tried")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return a table of times."""
    rows = [
        (cell["workers"], f"{cell['episode_s']:.2f}", f"{cell['steps_per_s']:.1f}", f"{cell['seconds']:.1f}")
        for cell in findings["cells"]
    ]
    return table("workers | slowest training episode, s | steps of environments per second | whole command, s", rows)

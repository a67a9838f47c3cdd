"""Steps per second of CPU time: all learners of a task in turn, in one process on one machine, several rounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from esper_ab.health.processor import name_of_processor
from peers.learner import Train
from peers.pieces import LEARNERS, versions

ROUNDS, STEPS, WARM_UP = 5, 8192, 2048
RNG_SEED = 1  # of the warm-up; rounds have the following ones


def measure(
    tasks: Iterable[str], tell: Callable[[str], None], learners: Mapping[str, Train] = LEARNERS, rounds: int = ROUNDS,
    steps: int = STEPS, warm_up: int = WARM_UP,
) -> dict[str, Any]:
    """Return speeds by task and learner, one number per round; what else runs here slows all of a round alike.

    The order turns by one with every round. `Trained.cpu_s` has the training alone: no imports, no evaluation.
    """
    names, speeds = list(learners), dict[str, dict[str, list[float]]]()
    for task in tasks:
        speeds[task] = {name: [] for name in names}
        for name in names:
            learners[name](task, "matched", RNG_SEED, warm_up)
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                trained = learners[name](task, "matched", RNG_SEED + 1 + number, steps)
                speeds[task][name].append(round(trained.steps / trained.cpu_s, 1))
            tell(f"{task}, round {number + 1}: " + ", ".join(f"{name} {speeds[task][name][-1]:,.0f}" for name in names))
    return {
        "machine": name_of_processor(), "versions": versions(), "rounds": rounds, "steps": steps, "warm_up": warm_up,
        "speeds": speeds,
    }  # fmt: skip


def write(file: Path, found: dict[str, Any]) -> None:
    """Write what was measured, a line per task."""
    lines = ",\n".join(f"{json.dumps(task)}: {json.dumps(of)}" for task, of in found["speeds"].items())
    head = json.dumps({name: value for name, value in found.items() if name != "speeds"})
    file.write_text(f'{head[:-1]}, "speeds": {{\n{lines}\n}}}}\n')

"""The work in pieces: one training and evaluation each, a line of JSON in a file that is only appended to."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from esper_ab.health.processor import name_of_processor
from peers import baselines3, ours, reference
from peers.learner import EPISODES, RNG_SEEDS, STEPS, Settings, Train
from peers.tasks import TASKS

Piece = tuple[str, str, Settings, int]  # task, learner, settings, rng seed
LEARNERS: dict[str, Train] = {
    "ours": partial(ours.train, memory="none"), "ours, LSTM": partial(ours.train, memory="lstm"),
    "reference": reference.train, "SB3": partial(baselines3.train, recurrent=False),
    "SB3, LSTM": partial(baselines3.train, recurrent=True),
}  # fmt: skip
OURS = {"none": "ours", "lstm": "ours, LSTM"}  # by memory
SETTINGS: tuple[Settings, ...] = ("matched", "default")
FIRST_RNG_SEED = 5000  # of record; tuning used others, from 100 on
NEEDS = {"stable_baselines3": "stable-baselines3", "sb3_contrib": "sb3-contrib", "Box2D": "box2d"}
PACKAGES = ("gymnasium", "torch", "numpy", "stable-baselines3", "sb3-contrib")


def missing() -> list[str]:
    """Return what has to be installed first, by the names of its packages; no dependency of ours."""
    return [package for module, package in NEEDS.items() if find_spec(module) is None]


def pieces(tasks: Iterable[str], learners: Iterable[str], settings: Iterable[Settings], runs: int) -> Iterator[Piece]:
    """Every piece: first what the statements of non-inferiority need, then all else that is matched, defaults last.

    Of each of these one run of each cell, then a second of each, …, so that a stop leaves their cells with equal runs.
    """
    cells = [(task, learner, how) for how in settings for task in tasks for learner in learners]
    for stage in range(3):
        for run in range(runs):
            yield from ((*cell, FIRST_RNG_SEED + run) for cell in cells if stage_of(*cell) == stage)


def stage_of(task: str, learner: str, settings: Settings) -> int:
    """Return when runs of a cell are made: 0 for the statements of not worse, 1 for the other matched, 2 for defaults.

    RecurrentPPO is slow: of the tasks whose own learner has no memory its runs come with the second part.
    """
    if settings != "matched":
        return 2
    own = next(OURS[one.memory] for one in TASKS if one.name == task)
    peers = {"reference", "SB3"} | ({"SB3, LSTM"} if own == OURS["lstm"] else set())
    return 0 if learner in {own, *peers} else 1


def read(file: Path) -> dict[Piece, dict[str, Any]]:
    """Return the finished pieces; a line that a kill has cut short is none."""
    found: dict[Piece, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            run = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[key(run)] = run
    return found


def key(run: dict[str, Any]) -> Piece:
    """Return the piece that a run is of."""
    return run["task"], run["learner"], run["settings"], run["rng_seed"]


def perform(piece: Piece, steps: int = STEPS) -> dict[str, Any]:
    """Train and evaluate; means over the episodes of the evaluation."""
    task, learner, settings, rng_seed = piece
    trained = LEARNERS[learner](task, settings, rng_seed, steps)
    sampled, greedy = (statistics.fmean(trained.play(EPISODES, one)) for one in (False, True))
    return {
        "task": task, "learner": learner, "settings": settings, "rng_seed": rng_seed, "steps": trained.steps,
        "sampled": round(sampled, 3), "greedy": round(greedy, 3), "cpu_s": round(trained.cpu_s, 2),
        "machine": name_of_processor(), "versions": versions(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of what decides returns and speeds, as far as it is installed."""
    found = {name: [one.version for one in distributions(name=name)] for name in PACKAGES}
    return {name: versions[0] for name, versions in found.items() if versions}


def append(file: Path, run: dict[str, Any]) -> None:
    """Add a finished piece."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = not file.exists() or not file.stat().st_size or file.read_bytes().endswith(b"\n")
    with file.open("a") as out:
        out.write(("" if whole else "\n") + json.dumps(run) + "\n")


TASK_NAMES = tuple(task.name for task in TASKS)
ALL = frozenset(pieces(TASK_NAMES, LEARNERS, SETTINGS, RNG_SEEDS))

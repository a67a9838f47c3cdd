"""One process's part of a rehearsal: a Python trainer from the beginning, or from a state, for a few points."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import TrainerValue
from workers.trainer import module
from workers.trainer.user_run import Run


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is to do."""

    reference: str
    settings: dict[str, TrainerValue]
    outcome: str
    points: int  # of a whole run
    evaluations: int
    rng: RngPath
    folder: str
    gpu: bool
    threads: int
    deterministic: bool
    last: int  # points after which it ends
    first: int = 0  # `last`: it only evaluates the state of `state_file`
    state_file: str = ""  # with the state after point `first` - 1; "": it begins from nothing
    keep: str = ""  # begins the names of files for states; the number of the point ends them


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. Numbers are text, so that those that are not finite are told apart, too."""

    points: tuple[dict[str, str], ...]
    outcomes: tuple[str, ...]
    state_was_read: bool
    point_s: float
    evaluate_s: float


def attempt(trial: Trial, device: str) -> Tried:
    """Train and evaluate; ValueError for a trainer that does not do what it should, and whatever it raises itself."""
    trainer, _ = module.load(trial.reference)
    data = Path(trial.state_file).read_bytes() if trial.state_file else b""
    run = Run(
        settings=trainer.settings(trial.settings), points=trial.points, rng=trial.rng, device=device,
        folder=Path(trial.folder), eval_episodes=trial.evaluations, on_step=lambda step: None, point=trial.first,
        given=module.restored(data) if data else None,
    )  # fmt: skip
    began, points, found = time.perf_counter(), trainer.train(run), list[dict[str, str]]()
    for number in range(trial.first, trial.last):
        point = next(points, None)
        if point is None:
            raise ValueError(f"train(run) ended before point {number} of {trial.points}; it yields run.points of them")
        metrics = module.metrics_of(point, trial.outcome)
        if found and found[0].keys() != metrics.keys():
            raise ValueError(f"point {number} has other metrics than the first; yield the same in every point")
        found.append({name: repr(value) for name, value in metrics.items()})
        data = module.saved(point.state)
        if trial.keep:
            Path(f"{trial.keep}{number}").write_bytes(data)
    trained = time.perf_counter()
    outcomes = module.outcomes_of(trainer.evaluate(run, module.restored(data)), trial.outcome)
    evaluated = time.perf_counter()
    return Tried(
        points=tuple(found), outcomes=tuple(map(repr, outcomes)), state_was_read=run.state_was_read,
        point_s=(trained - began) / max(1, len(found)), evaluate_s=evaluated - trained,
    )  # fmt: skip

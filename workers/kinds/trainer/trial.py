"""One trial of a Python trainer's rehearsal, which has a process of its own: train, then evaluate the last state."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import msgspec

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.trainer import TrainerQuestion, TrainerValue
from workers.kinds.trainer import module
from workers.kinds.trainer.code_tree import asked_files
from workers.kinds.trainer.module import Run
from workers.user_code.state_of_code import enter

EVALUATIONS = 16  # outcomes an evaluation may return as a list when no number was asked for


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the rehearsal that one process runs."""

    question: TrainerQuestion
    settings: dict[str, TrainerValue]
    rng: RngPath
    folder: str
    device: str  # for torch
    last: int  # the trial ends after this many points
    first: int = 0  # if equal to `last`, only the state in `state_file` is evaluated
    state_file: str = ""  # holds the state after point `first` - 1; if "", start from scratch
    keep: str = ""  # prefix of the state files' names; the point's number follows


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial. Numbers are stored as text, so that non-finite numbers can be compared."""

    points: tuple[dict[str, str], ...]
    outcomes: tuple[str, ...]
    state_was_read: bool
    point_s: float
    evaluate_s: float
    memory_bytes: int = 0  # most that the process had


def attempt(trial: Trial) -> Tried:
    """Train and evaluate; ValueError if the trainer breaks a rule. The trainer's own exceptions are not caught."""
    question = trial.question
    data = b""
    restored_state = None
    if trial.state_file:
        data = Path(trial.state_file).read_bytes()
        restored_state = module.restored(data)
    if files := asked_files(question):
        enter(files.folder, files.module_folders, files.moved)
    trainer, _ = module.load(question.reference)
    run = Run(
        settings=trainer.settings(trial.settings),
        points=question.points,
        rng=trial.rng,
        device=trial.device,
        folder=Path(trial.folder),
        eval_episodes=question.evaluations or EVALUATIONS,
        on_step=lambda step: None,
        point=trial.first,
        given=restored_state,
    )
    begin_s = time.perf_counter()
    points = trainer.train(run)
    yielded_metrics = list[dict[str, str]]()
    for number in range(trial.first, trial.last):
        metrics, data = module.next_point(points, number, run, question.outcome)
        if yielded_metrics and yielded_metrics[0].keys() != metrics.keys():
            raise ValueError(f"point {number} and the first differ in their metrics; yield the same at every point")
        yielded_metrics.append({name: repr(value) for name, value in metrics.items()})
        if trial.keep:
            Path(f"{trial.keep}{number}").write_bytes(data)
    training_end_s = time.perf_counter()
    outcomes = module.outcomes_of(trainer.evaluate(run, module.restored(data)), question.outcome)
    evaluation_end_s = time.perf_counter()
    return Tried(
        points=tuple(yielded_metrics),
        outcomes=tuple(map(repr, outcomes)),
        state_was_read=run.state_was_read,
        point_s=(training_end_s - begin_s) / max(1, len(yielded_metrics)),
        evaluate_s=evaluation_end_s - training_end_s,
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    )

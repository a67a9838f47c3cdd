"""Experiment directories below a folder, and what the report of a finished one says. Loads neither numpy nor torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.load import load
from esper_ab.journal.recent import (
    evaluation_work,
)
from esper_ab.readers.reported import no_report, reported
from esper_ab.readers.status import state_of


@dataclass(frozen=True, kw_only=True)
class Listed:
    """An experiment directory as the list shows it."""

    experiment_dir: str
    state: str  # as in `status`, or "damaged", "empty", "unreadable"
    done: float | None = None  # share of the planned training episodes and evaluations
    last_event: str = ""  # ISO 8601
    groups: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()  # "a - b: VERDICT", of a finished experiment that has its report
    headlines: tuple[str, ...] = ()  # of the same comparisons, each followed by its caveats
    problem: str = ""  # why it is damaged, empty or unreadable, or what is wrong with its report


def list_runs(folder: Path) -> list[Listed]:
    """Return every experiment directory below `folder`; a directory that cannot be read is listed with its problem."""
    found = map(_look, _experiment_directories(folder))
    return sorted(found, key=lambda one: (one.last_event, one.experiment_dir), reverse=True)


def _experiment_directories(folder: Path) -> Iterator[Path]:
    for where, below, files in os.walk(folder):
        if JOURNAL_NAME in files:
            below.clear()
            yield Path(where)


def _look(experiment_dir: Path) -> Listed:
    try:
        loaded = load(experiment_dir)
    except (JournalError, UsageError, OSError) as error:
        empty = "unreadable" if isinstance(error, OSError) else "empty"
        state = "damaged" if isinstance(error, JournalError) else empty
        return Listed(experiment_dir=str(experiment_dir), state=state, problem=str(error))
    history = loaded.history
    state = state_of(loaded.history, held=loaded.held)
    counted = [run for run in history.runs.values() if not (run.left_out or run.lost)]
    units = sum(run.spec.episodes + evaluation_work(run.spec) for run in counted)
    done = sum(len(run.columns) + evaluation_work(run.spec) * (run.evaluation is not None) for run in counted)
    told, problem = reported(experiment_dir, history) if state == "finished" else ((), "")
    if state == "finished" and not told:
        problem = problem or no_report(experiment_dir)
    return Listed(
        experiment_dir=str(experiment_dir),
        state=state,
        done=done / units if units else None,
        last_event=loaded.wall_time,
        groups=history.groups,
        verdicts=tuple(f"{one.a} - {one.b}: {one.verdict}" for one in told),
        headlines=tuple(
            " ".join((one.headline, *(f"! {warning}" for warning in one.warnings))) for one in told if one.headline
        ),
        problem=problem,
    )

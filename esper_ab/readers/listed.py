"""Experiment directories below a folder, and what the report of a finished one says. Loads neither numpy nor torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.recent import evaluation_work
from esper_ab.readers.reported import Reported, no_report, reported
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
    rows = [_describe(experiment_dir) for experiment_dir in _experiment_directories(folder)]
    return sorted(rows, key=lambda row: (row.last_event, row.experiment_dir), reverse=True)


def _experiment_directories(folder: Path) -> Iterator[Path]:
    for path, subfolders, files in os.walk(folder):
        if JOURNAL_NAME in files:
            subfolders.clear()  # the walk does not enter an experiment directory
            yield Path(path)


def _describe(experiment_dir: Path) -> Listed:
    """Return a row of the list; a directory that cannot be read has a row that says why."""
    try:
        loaded_journal = load(experiment_dir)
    except JournalError as error:
        return Listed(experiment_dir=str(experiment_dir), state="damaged", problem=str(error))
    except UsageError as error:
        return Listed(experiment_dir=str(experiment_dir), state="empty", problem=str(error))
    except OSError as error:
        return Listed(experiment_dir=str(experiment_dir), state="unreadable", problem=str(error))
    history = loaded_journal.history
    state = state_of(history, held=loaded_journal.held)
    answers: tuple[Reported, ...] = ()
    problem = ""
    if state == "finished":
        answers, problem = reported(experiment_dir, history)
        if not answers:
            problem = problem or no_report(experiment_dir)
    return Listed(
        experiment_dir=str(experiment_dir),
        state=state,
        done=_share_done(history),
        last_event=loaded_journal.wall_time,
        groups=history.groups,
        verdicts=tuple(f"{answer.a} - {answer.b}: {answer.verdict}" for answer in answers),
        headlines=tuple(_headline(answer) for answer in answers if answer.headline),
        problem=problem,
    )


def _share_done(history: History) -> float | None:
    """Return the share of the planned training episodes and evaluations that is recorded; None without any planned."""
    planned_episodes = 0.0
    done_episodes = 0.0
    for run in history.runs.values():
        if run.left_out or run.lost:
            continue
        evaluation = evaluation_work(run.spec)
        planned_episodes += run.spec.episodes + evaluation
        done_episodes += len(run.columns)
        if run.evaluation is not None:
            done_episodes += evaluation
    if not planned_episodes:
        return None
    return done_episodes / planned_episodes


def _headline(answer: Reported) -> str:
    """Return the headline with its caveats, in one line."""
    return " ".join((answer.headline, *(f"! {warning}" for warning in answer.warnings)))

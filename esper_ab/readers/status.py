"""Status of an experiment directory: a fold of its journal and a check of its lock. Loads neither numpy nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.measures import Measure
from esper_ab.journal.events import LookTaken
from esper_ab.journal.fold import History, RunHistory, RunState
from esper_ab.journal.load import Loaded, load
from esper_ab.journal.recent import DifferenceNow, GroupNow, differences_now, group_now
from esper_ab.readers.reported import Reported, reported

ExperimentState = Literal["running", "finished", "failed", "interrupted", "stale"]

_AT_WORK = ("warming up", "training", "evaluating")


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of one run."""

    name: str
    state: RunState | Literal["stopped"]  # stopped: begun and unfinished, without a process working on it
    device: str
    episodes: int  # recorded
    of_episodes: int


class LookNow(msgspec.Struct, frozen=True, kw_only=True):
    """An interim look that was taken."""

    replicates: int
    decided: tuple[str, ...]  # "a - b"
    leaving: tuple[str, ...]
    futile: tuple[str, ...]  # stopped for futility
    outcome: str  # in words


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Current status of an experiment directory."""

    experiment: str
    state: ExperimentState  # stale: the lock is free and the journal has no end
    detail: str
    last_event: str  # wall time, ISO 8601
    torn_bytes: int  # of an unfinished last line
    runs: tuple[RunStatus, ...]
    groups: tuple[GroupNow, ...]
    differences: tuple[DifferenceNow, ...]
    measured: Measure  # outcome of groups and differences
    margin: float
    looks: tuple[LookNow, ...]  # taken so far
    verdicts: tuple[Reported, ...]  # of a finished experiment that has its report
    incidents: int  # entries
    notes: tuple[str, ...] = ()  # waits for disk space; why the report's verdicts cannot be shown


def status(experiment_dir: Path) -> Status:
    """Return the status of `experiment_dir`.

    Raises UsageError if there is no journal, and JournalError if the journal is damaged.
    """
    return status_of(experiment_dir, load(experiment_dir))


def status_of(experiment_dir: Path, loaded_journal: Loaded) -> Status:
    """Derive the status from a loaded journal."""
    history = loaded_journal.history
    state = state_of(history, held=loaded_journal.held)
    notes = list(history.pauses)
    verdicts: tuple[Reported, ...] = ()
    if state == "finished":
        verdicts, problem = reported(experiment_dir, history)
        if problem:
            notes.append(problem)
    detail = ""
    if history.ended:
        detail = history.ended.detail
    return Status(
        experiment=history.plan.experiment.name,
        state=state,
        detail=detail,
        last_event=loaded_journal.wall_time,
        torn_bytes=loaded_journal.torn_bytes,
        runs=tuple(_run_status(name, run, state) for name, run in history.runs.items()),
        groups=tuple(group_now(history, group) for group in history.groups),
        differences=differences_now(history),
        measured=history.outcome,
        margin=history.design.margin,
        looks=tuple(_look_now(look) for look in history.looks),
        verdicts=verdicts,
        incidents=len(history.incidents),
        notes=tuple(notes),
    )


def _run_status(name: str, run: RunHistory, experiment_state: ExperimentState) -> RunStatus:
    state: RunState | Literal["stopped"] = run.state
    if experiment_state != "running" and run.state in _AT_WORK:
        state = "stopped"
    return RunStatus(
        name=name,
        state=state,
        device=run.ref.device,
        episodes=len(run.columns),
        of_episodes=run.spec.episodes,
    )


def _look_now(look: LookTaken) -> LookNow:
    return LookNow(
        replicates=look.replicates,
        decided=tuple(f"{contrast.a} - {contrast.b}" for contrast in look.decided),
        leaving=look.leaving,
        futile=tuple(f"{contrast.a} - {contrast.b}" for contrast in look.futile),
        outcome=look.outcome,
    )


def state_of(history: History, *, held: bool) -> ExperimentState:
    """Return the experiment's state in one word; `held`: whether a process holds the experiment directory."""
    if history.ended is not None:
        return history.ended.status
    return "running" if held else "stale"

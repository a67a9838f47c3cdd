"""Status of an experiment directory: a fold of its journal and a check of its lock. Loads neither numpy nor torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible, visible_json, visible_line
from esper_ab.contracts.wording import counted, n_pairs
from esper_ab.journal.fold import History, RunState
from esper_ab.journal.load import Loaded, load
from esper_ab.journal.recent import (
    DIFFERENCE_LABEL,
    DifferenceNow,
    GroupNow,
    differences_now,
    group_now,
)
from esper_ab.readers.reported import Reported, no_report, reported
from esper_ab.stats.text import digits_for, signed

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


def status_of(experiment_dir: Path, loaded: Loaded) -> Status:
    """Derive the status from a loaded journal."""
    history = loaded.history
    state = state_of(history, held=loaded.held)
    verdicts, problem = reported(experiment_dir, history) if state == "finished" else ((), "")
    return Status(
        experiment=history.plan.experiment.name,
        state=state,
        detail=history.ended.detail if history.ended else "",
        last_event=loaded.wall_time,
        torn_bytes=loaded.torn_bytes,
        runs=tuple(
            RunStatus(
                name=name,
                state="stopped" if state != "running" and run.state in _AT_WORK else run.state,
                device=run.ref.device,
                episodes=len(run.columns),
                of_episodes=run.spec.episodes,
            )
            for name, run in history.runs.items()
        ),
        groups=tuple(group_now(history, group) for group in history.groups),
        differences=differences_now(history),
        measured=history.outcome,
        margin=history.design.margin,
        looks=tuple(
            LookNow(
                replicates=look.replicates,
                decided=tuple(f"{one.a} - {one.b}" for one in look.decided),
                leaving=look.leaving,
                futile=tuple(f"{one.a} - {one.b}" for one in look.futile),
                outcome=look.outcome,
            )
            for look in history.looks
        ),
        verdicts=verdicts,
        incidents=len(history.incidents),
        notes=(*history.pauses, *filter(None, (problem,))),
    )


def status_json(experiment_dir: Path, **more: Any) -> str:
    """Return the status of `experiment_dir`, followed by the keys of `more`, as indented JSON."""
    tree = msgspec.to_builtins(status(experiment_dir)) | more
    return visible_json(msgspec.json.format(msgspec.json.encode(tree), indent=2))


def status_text(experiment_dir: Path) -> str:
    """Return the status of `experiment_dir` as text for a terminal."""
    return visible("\n".join(_lines(experiment_dir, status(experiment_dir))))


def _lines(experiment_dir: Path, found: Status) -> Iterator[str]:
    detail = f": {visible_line(found.detail)}" if found.detail else ""
    remedy = shell_command("report", experiment_dir)
    yield f"{found.experiment}: {found.state}{detail} (last event {found.last_event})"
    if found.state == "finished":
        for item in found.verdicts:
            yield from item.lines
        yield no_report(experiment_dir) or f"  report: {experiment_dir / PAGE}"
    if found.state == "stale":
        yield "No process is running it, and it has not ended: its coordinator is gone."
        yield f"Continue it with `{shell_command('resume', experiment_dir)}`; `{remedy}` still works."
    counts = Counter(run.state for run in found.runs)
    yield f"  {counted(len(found.runs), 'run')}: {', '.join(f'{count} {state}' for state, count in counts.items())}"
    going_on = [run for run in found.runs if run.state not in ("finished", "planned", "left out")]
    width = max((len(run.name) for run in going_on), default=0)
    for run in going_on:
        yield f"  {run.name:<{width}}  {run.state:<10}  episode {run.episodes} of {run.of_episodes}  on {run.device}"
    if found.state != "finished":  # a finished one shows its adjusted verdict
        yield from _so_far(found)
    for look in found.looks:
        yield f"  look at {counted(look.replicates, 'seed')}: {look.outcome}"
    if found.torn_bytes:
        yield f"  {found.torn_bytes} bytes of an unfinished last line are ignored"
    yield from (f"  note: {note}" for note in found.notes)
    if found.incidents:
        entries = "1 entry" if found.incidents == 1 else f"{found.incidents} entries"
        yield f"  {entries} in the incident list: see `{remedy}`"


def _so_far(found: Status) -> Iterator[str]:
    outcome = found.measured
    digits = digits_for(found.margin)
    of_mean = digits - (found.margin >= 1.0)
    for group in found.groups:
        if group.outcome is None:
            recent = "not yet"
        else:
            recent = outcome.value(f"{group.outcome:.{of_mean}f}")
        yield f"  {group.group}: recent {outcome.label} {recent}"
    lower = "; lower is better" if outcome.sign < 0.0 else ""
    for item in found.differences:
        if item.difference is not None:
            difference = outcome.difference(signed(item.difference, digits))
            yield f"  {item.a} - {item.b}: {difference}, {n_pairs(item.pairs)} ({DIFFERENCE_LABEL}{lower})"


def state_of(history: History, *, held: bool) -> ExperimentState:
    """Return the experiment's state in one word; `held`: whether a process holds the experiment directory."""
    if history.ended is not None:
        return history.ended.status
    return "running" if held else "stale"

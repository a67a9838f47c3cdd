"""The status of experiment directories, and the answers in their reports. Loads neither numpy nor torch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.experiment_files import PAGE, VERDICT
from esper_ab.contracts.files import UNREADABLE, read_regular
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.wording import counted, n_pairs, shell_command, visible, visible_json, visible_line
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import History, RunState
from esper_ab.journal.load import Loaded, load
from esper_ab.journal.lock import last_holder
from esper_ab.journal.outcomes import (
    DIFFERENCE_LABEL,
    DifferenceNow,
    GroupNow,
    differences_now,
    evaluation_work,
    group_now,
)
from esper_ab.stats.text import digits_for, signed
from esper_ab.verdict.vocabulary import Verdict

# --- reported --------------------------------------------------------------------------------------------------------
# What the report of an experiment directory says about its comparisons. Loads neither numpy nor torch.


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one comparison, as in verdict.json."""

    a: str
    b: str
    verdict: Verdict
    headline: str = ""
    warnings: tuple[str, ...]  # the caveats without which the headline is not shown

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer as lines for a terminal, with its caveats."""
        said = (f"{self.verdict}: {self.headline}", *(f"! {warning}" for warning in self.warnings))
        return tuple(f"  {visible_line(line)}" for line in said)


class _Document(msgspec.Struct, kw_only=True):
    comparisons: tuple[Reported, ...]
    replicates: int | None = None


_decode = msgspec.json.Decoder(_Document).decode


def no_report(experiment_dir: Path) -> str:
    """Return a line for a finished experiment if its report is not built. Returns "" if there is a report."""
    if (experiment_dir / PAGE).is_file():
        return ""
    if by := _writer(experiment_dir):
        return by
    return f"There is no report yet: `{shell_command('report', experiment_dir)}` writes it."


def _writer(experiment_dir: Path) -> str:
    """Say which process of this machine will write the report of an experiment that has just finished; "" if none."""
    by = last_holder(experiment_dir)
    if by is None or by.host != os.uname().nodename:
        return ""
    return f"The report is not there yet: process {by.pid}, which ran the experiment, writes it."


def reported(experiment_dir: Path, history: History) -> tuple[tuple[Reported, ...], str]:
    """Return the answers in the report of a finished experiment, and what is wrong with the report.

    The second value is "" unless the report's file is damaged or out of date. In that case, and if there is no report,
    there are no answers.
    """
    path = experiment_dir / VERDICT
    try:
        document = _decode(read_regular(path))
    except FileNotFoundError:
        return (), ""
    except (OSError, *UNREADABLE):
        document = _Document(comparisons=())
    found = document.comparisons
    planned = [(comparison.a, comparison.b) for comparison in history.design.comparisons]
    of_this_state = document.replicates in (None, history.replicates)
    if [(one.a, one.b) for one in found] == planned and of_this_state:
        return found, ""
    if not of_this_state and (by := _writer(experiment_dir)):
        return (), by
    remedy = shell_command("report", experiment_dir)
    return (), f"{path.name} is damaged or out of date: `{remedy}` writes it again"


# --- status ----------------------------------------------------------------------------------------------------------
# Status of an experiment directory: a fold of its journal and a check of its lock. Loads neither numpy nor torch.


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
        experiment=history.plan.experiment.name, state=state, detail=history.ended.detail if history.ended else "",
        last_event=loaded.wall_time, torn_bytes=loaded.torn_bytes,
        runs=tuple(
            RunStatus(
                name=name, state="stopped" if state != "running" and run.state in _AT_WORK else run.state,
                device=run.ref.device, episodes=len(run.columns), of_episodes=run.spec.episodes,
            )
            for name, run in history.runs.items()
        ),
        groups=tuple(group_now(history, group) for group in history.groups), differences=differences_now(history),
        measured=history.outcome, margin=history.design.margin,
        looks=tuple(
            LookNow(
                replicates=look.replicates, decided=tuple(f"{one.a} - {one.b}" for one in look.decided),
                leaving=look.leaving, futile=tuple(f"{one.a} - {one.b}" for one in look.futile), outcome=look.outcome,
            )
            for look in history.looks
        ),
        verdicts=verdicts, incidents=len(history.incidents), notes=(*history.pauses, *filter(None, (problem,))),
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
    outcome, digits = found.measured, digits_for(found.margin)
    of_mean = digits - (found.margin >= 1.0)
    for group in found.groups:
        recent = "not yet" if group.outcome is None else outcome.value(f"{group.outcome:.{of_mean}f}")
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


# --- listed ----------------------------------------------------------------------------------------------------------
# Experiment directories below a folder, and what the report of a finished one says. Loads neither numpy nor torch.


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
    history, state = loaded.history, state_of(loaded.history, held=loaded.held)
    counted = [run for run in history.runs.values() if not (run.left_out or run.lost)]
    units = sum(run.spec.episodes + evaluation_work(run.spec) for run in counted)
    done = sum(len(run.columns) + evaluation_work(run.spec) * (run.evaluation is not None) for run in counted)
    told, problem = reported(experiment_dir, history) if state == "finished" else ((), "")
    if state == "finished" and not told:
        problem = problem or no_report(experiment_dir)
    return Listed(
        experiment_dir=str(experiment_dir), state=state, done=done / units if units else None,
        last_event=loaded.wall_time, groups=history.groups,
        verdicts=tuple(f"{one.a} - {one.b}: {one.verdict}" for one in told),
        headlines=tuple(
            " ".join((one.headline, *(f"! {warning}" for warning in one.warnings))) for one in told if one.headline
        ),
        problem=problem,
    )  # fmt: skip

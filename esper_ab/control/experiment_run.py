"""From a plan to a finished journal: the coordinator with everything it needs around it, and what remains of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

from esper_ab.analysis.trained_by import code_states, named, telling
from esper_ab.contracts.errors import DiskFull, EsperError, Interrupted, UsageError, WorkerFailed, naming
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.trainer import is_command
from esper_ab.control import descriptors, provenance
from esper_ab.control.coordinator import Coordinator
from esper_ab.control.event_sink import EventSink
from esper_ab.control.fleet import Fleet
from esper_ab.control.hub import Hub
from esper_ab.control.observers import Observer
from esper_ab.control.rules.liveness import Limits
from esper_ab.control.rules.recovery import nothing_left
from esper_ab.control.signals import CaughtSignals
from esper_ab.journal import events
from esper_ab.journal.file import Journal
from esper_ab.journal.fold import History, begin, fold
from esper_ab.launchers import Launcher
from esper_ab.plan.experiment_directory import versions
from esper_ab.plan.plan import Extension, Plan
from esper_ab.stats import distributions

_LEAVE_S = 10.0
_LEAVE_NOW_S = 1.0
_FURTHER = "a further Ctrl-C, after that barrier, ended at once the workers that were still leaving"


def run(
    plan: Plan, where: Path | Journal, launcher: Launcher, observers: Sequence[Observer], limits: Limits | None = None
) -> None:
    """Carry out `plan` and journal it in an experiment directory that has no journal yet, or an empty one, which is
    given.

    Returns when every run is done. Raises UsageError when the directory is taken, WorkerFailed, WorkerHung,
    JournalError, DiskFull, Interrupted; by then no worker is left, and the journal says how it ended.
    """
    started = events.ExperimentStarted(
        schema=events.SCHEMA, plan=plan, **_here()
    )
    journal = where if isinstance(where, Journal) else Journal(where)
    sink = EventSink(journal, begin(started, keeps_records=False), observers)
    _perform(sink, started, journal.experiment_dir, launcher, limits)


def extend(
    experiment_dir: Path, added: Callable[[History], Extension], launcher: Launcher, observers: Sequence[Observer],
    limits: Limits | None = None, *, allow_changed_code: bool = False,
) -> None:  # fmt: skip
    """Carry out what `added` makes of the finished experiment in `experiment_dir`; raises as `run` does.

    `added` is asked while nobody else can write to the journal, and may raise UsageError; so may `check_code`.
    """
    journal, history = Journal.take_up(experiment_dir, partial(_past, experiment_dir))
    sink = EventSink(journal, history, observers)
    try:
        extension = added(history)
        check_code(experiment_dir, history, allowed=allow_changed_code)
    except BaseException:
        sink.close()
        raise
    sink.record(events.ExperimentContinued(**_here()))
    _perform(sink, events.PlanExtended(extension=extension), experiment_dir, launcher, limits)


def resume(
    experiment_dir: Path, launcher: Launcher, observers: Sequence[Observer], limits: Limits | None = None, *,
    allow_changed_code: bool = False,
) -> None:  # fmt: skip
    """Carry on with the experiment in `experiment_dir` from its journal, however it was left; raises as `run` does.

    UsageError when it is finished, when nothing of it was recorded, and as `check_code` says.
    """
    journal, history = Journal.take_up(experiment_dir, partial(_past, experiment_dir))
    try:
        check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)
    except BaseException:
        journal.close()
        raise
    sink = EventSink(journal, history, observers)
    continued = events.ExperimentContinued(**_here())
    _perform(sink, continued, experiment_dir, launcher, limits)


def _here() -> dict[str, dict[str, str]]:
    """What the journal says of this process: installed versions, machine and code."""
    return {"versions": versions(), "machine": provenance.machine(), "code": provenance.code()}


def _past(experiment_dir: Path, recorded: Iterator[events.AnyEvent]) -> History:
    """Fold the events `recorded` so far, without their records; UsageError when there are none."""
    first = next(recorded, None)
    if first is None:
        raise UsageError(f"{experiment_dir}: the journal holds no event, so there is nothing to resume; launch it anew")
    return fold(chain([first], recorded), keeps_records=False)


def check_code(experiment_dir: Path, history: History, *, allowed: bool) -> None:
    """UsageError when the code here is not that of the records which are there, unless it is `allowed`.

    Runs of two states of the code are no paired comparison: the audit blocks the verdict.
    """
    here = provenance.code()
    for state in code_states(history):
        key = telling([state.code, here])
        if allowed or state.code.get(key, "") == here.get(key, ""):
            continue
        commit = state.code.get("commit", "")
        elsewhere = commit not in ("", here.get("commit")) and state.code.get("dirty") != "yes"
        back = f"`git checkout {commit}`" if elsewhere else "bring that code back"
        raise UsageError(
            f"{experiment_dir}: its records are of {named(state.code)}, the code here is {named(here)}: {back}, or go "
            "on with --allow-changed-code, which blocks the verdict"
        )


def check_resumable(experiment_dir: Path, history: History, *, allow_changed_code: bool = False) -> None:
    """UsageError when the experiment of `experiment_dir` has ended, when none of its replicates is left, and, if more
    will be trained, as `check_code` says.
    """
    if history.finished:
        remedy = f"`{shell_command('report', experiment_dir)}` shows it, and what to do next"
        raise UsageError(f"{experiment_dir}: the experiment is finished; {remedy}")
    if nothing_left(history):
        raise UsageError(f"{experiment_dir}: every seed was given up, none is left to resume; launch it anew")
    if any(run.expected for run in history.runs.values()):
        check_code(experiment_dir, history, allowed=allow_changed_code)


def _perform(
    sink: EventSink, first: events.AnyEvent, experiment_dir: Path, launcher: Launcher, limits: Limits | None
) -> None:
    limits = limits or Limits()
    plain, whole = (shell_command("resume", experiment_dir, *flags) for flags in ((), launcher.flags))
    with naming(whole, instead_of=plain), closing(sink):  # without the launcher's flags workers start elsewhere
        recorded = False
        try:
            with CaughtSignals() as signals, sink.heeding(signals, limits.disk_full_s):
                sink.record(first)
                sink.commit()
            recorded = True
            _execute(experiment_dir, launcher, sink, limits)
        except BaseException as error:
            by_user = isinstance(error, Interrupted | KeyboardInterrupt)
            detail = str(error).partition("\n")[0] or type(error).__name__
            sink.record(events.ExperimentEnded(status="interrupted" if by_user else "failed", detail=detail))
            if recorded:
                say_how_to_go_on(error, experiment_dir, sink.history)
            raise
        sink.record(events.ExperimentEnded(status="finished", detail=""))


def say_how_to_go_on(error: BaseException, experiment_dir: Path, history: History) -> None:
    """The last line of the error is the command that resumes, unless nothing is left to do."""
    if isinstance(error, DiskFull) or not any(run.expected for run in history.runs.values()):
        return  # DiskFull has said so
    line = f"to go on: {shell_command('resume', experiment_dir)}"
    if isinstance(error, WorkerFailed) and _has_copies(history):
        line = f"runs use copies of your code that were made at the start: after a change of it, launch anew\n{line}"
    if isinstance(error, EsperError):
        error.args = (f"{error}\n{line}",)
    else:
        error.add_note(line)


def _has_copies(history: History) -> bool:
    """Whether runs use copies of the user's code."""
    trainer = history.plan.experiment.trainer
    specs = (spec for block in history.blocks for spec in block.runs)
    return bool(trainer and not is_command(trainer)) or any(code.folder for spec in specs for code in spec.reward_code)


@contextmanager
def reserved(launcher: Launcher, lanes: Sequence[Lane]) -> Iterator[None]:
    """While entered, the launcher has what the lanes take; it may have it already, and has nothing afterwards."""
    try:
        launcher.reserve(lanes)
        yield
    finally:
        launcher.release()


def _execute(experiment_dir: Path, launcher: Launcher, sink: EventSink, limits: Limits) -> None:
    experiment_dir = experiment_dir.absolute()  # users' code may leave the current directory, of this process, too
    plan, limits = sink.history.plan, limits.across_nodes() if launcher.nodes else limits
    started_before: dict[str, int] = {}
    for worker in sink.history.workers:
        started_before[worker.worker] = max(worker.incarnation, started_before.get(worker.worker, 0))
    with (
        reserved(launcher, plan.lanes),
        descriptors.room_for(len(plan.lanes), launcher.descriptors, launcher.own_descriptors),
        CaughtSignals() as signals, sink.heeding(signals, limits.disk_full_s),
        closing(Hub(launcher.transport, launcher.address, len(plan.lanes))) as hub,
    ):
        fleet = Fleet(experiment_dir, hub)
        coordinator = Coordinator(sink, hub, fleet, limits.of_steps(plan.step_s))
        try:
            fleet.start(plan, launcher, started_before)
            distributions.load()  # for the looks, while workers import torch: later what is installed could be another
            coordinator.work(signals)
        except BaseException as error:
            hurried = fleet.stop(str(error).partition("\n")[0], _LEAVE_NOW_S, signals.ctrl_c)
            if hurried and isinstance(error, Interrupted) and error.in_order:
                sink.record(events.Incident(category="interrupted", detail=_FURTHER))
                error.args = (f"{error}; {_FURTHER}",)
            raise
        finally:
            if hub.unreported:
                detail = f"{hub.unreported} more messages were refused; only the first of a kind are listed"
                sink.record(events.Incident(category="bad_message", detail=detail))
        fleet.stop("the experiment is finished", _LEAVE_S, signals.ctrl_c)

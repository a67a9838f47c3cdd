"""From a plan to a finished journal: the coordinator, with everything that it needs, and the clean-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from esper_ab.analysis.code_states import code_states, named, telling
from esper_ab.contracts import users_shell
from esper_ab.contracts.errors import DiskFull, EsperError, Interrupted, UsageError, WorkerFailed, naming
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.trainer import is_command
from esper_ab.control import descriptors, provenance
from esper_ab.control.changed_code import check_command_files, notices
from esper_ab.control.coordinator import Coordinator
from esper_ab.control.event_sink import EventSink
from esper_ab.control.fleet import Fleet
from esper_ab.control.hub import Hub
from esper_ab.control.observers import Observer
from esper_ab.control.rules.deaths import any_complete, nothing_left
from esper_ab.control.rules.limits import Limits
from esper_ab.control.signals import CaughtSignals
from esper_ab.journal import events
from esper_ab.journal.file import Journal, Moved, Removed
from esper_ab.journal.fold import History, begin, fold
from esper_ab.launchers import Launcher
from esper_ab.plan.plan import Extension, Plan
from esper_ab.plan.settings_toml import versions
from esper_ab.plan.trainer_code import mended
from esper_ab.stats import distributions

_LEAVE_S = 10.0
_LEAVE_NOW_S = 1.0
_FURTHER = "another Ctrl-C, after that barrier, killed the workers that were still shutting down"


def run(
    plan: Plan,
    place: Path | Journal,
    launcher: Launcher,
    observers: Sequence[Observer],
    limits: Limits | None = None,
    offered: Sequence[events.AnyEvent] = (),
) -> None:
    """Carry out `plan` and journal it in a directory without a journal, or in an empty journal that the caller passes.

    The caller has reserved the plan's lanes. `offered`: what is recorded about kept runs before the first run.

    Returns when every run is done. Raises UsageError if the directory is taken, and WorkerFailed, WorkerHung,
    JournalError, DiskFull or Interrupted if the experiment cannot be finished. In every case, no worker is left running
    and the journal records how the experiment ended.
    """
    first_event = events.ExperimentStarted(schema=events.SCHEMA, plan=plan, **_describe_process(plan))
    journal = place if isinstance(place, Journal) else Journal(place)
    sink = EventSink(journal, begin(first_event, keeps_records=False), observers)
    _perform(sink, [first_event, *offered], journal.experiment_dir, launcher, limits)


def extend(
    experiment_dir: Path,
    make_extension: Callable[[History], Extension],
    launcher: Launcher,
    observers: Sequence[Observer],
    limits: Limits | None = None,
    *,
    allow_changed_code: bool = False,
) -> None:
    """Extend the finished experiment in `experiment_dir` by the blocks that `make_extension` returns; raises as `run`
    does.

    `make_extension` is called while the journal is locked. Both `make_extension` and `check_code` may raise UsageError.
    """

    def extended_events(history: History) -> list[events.AnyEvent]:
        extension = make_extension(history)
        check_code(experiment_dir, history, allowed=allow_changed_code)
        return [events.PlanExtended(extension=extension)]

    _continue(experiment_dir, extended_events, launcher, observers, limits)


def resume(
    experiment_dir: Path,
    launcher: Launcher,
    observers: Sequence[Observer],
    limits: Limits | None = None,
    *,
    allow_changed_code: bool = False,
) -> None:
    """Continue the experiment in `experiment_dir` from its journal, however it was interrupted; raises as `run` does.

    Also raises UsageError if the experiment is finished, if nothing was recorded, or if `check_code` raises it.
    """

    def resumed_events(history: History) -> list[events.AnyEvent]:
        check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)
        return _mended_trainer(experiment_dir, history)

    _continue(experiment_dir, resumed_events, launcher, observers, limits)


def _continue(
    experiment_dir: Path,
    make_events: Callable[[History], list[events.AnyEvent]],
    launcher: Launcher,
    observers: Sequence[Observer],
    limits: Limits | None,
) -> None:
    """Continue from a journal. `make_events` is called while the journal is locked and returns the next events to
    record.

    If `make_events` raises an error, the journal is unchanged.
    """
    journal, history = Journal.take_up(experiment_dir, partial(_past, experiment_dir))
    try:
        first_events = make_events(history)
    except BaseException:
        journal.close()
        raise
    sink = EventSink(journal, history, observers)
    for notice in notices(experiment_dir, history, first_events):
        sink.warn(notice)
    continued = events.ExperimentContinued(**_describe_process(history.plan))
    _perform(sink, [continued, *first_events], experiment_dir, launcher, limits)


def _mended_trainer(experiment_dir: Path, history: History) -> list[events.AnyEvent]:
    """Return an event if the trainer's files have changed.

    Returns [] once a replicate is complete, because its runs were already compared under the old files.
    """
    facts = history.plan.trainer
    if facts is None or any_complete(history):
        return []
    if history.mended is not None:
        facts = msgspec.structs.replace(facts, sha256=history.mended.sha256)
    sha256 = mended(experiment_dir, facts, history.plan.experiment.trainer)
    names_before = tuple(name for name, run in history.runs.items() if len(run.columns))
    if sha256:
        return [events.TrainerMended(sha256=sha256, before=names_before)]
    return []


def _describe_process(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the facts that the journal records about this process: installed versions, machine and code."""
    return {
        "versions": versions(),
        "machine": provenance.machine(),
        "code": provenance.code(),
        "repository": provenance.repository_of_command(plan.experiment),
    }


def _past(experiment_dir: Path, recorded_events: Iterator[events.AnyEvent]) -> History:
    """Fold `recorded_events`, without their records; raise UsageError if there are none."""
    first_event = next(recorded_events, None)
    if first_event is None:
        raise UsageError(f"{experiment_dir}: the journal is empty, so there is nothing to resume; launch it again")
    return fold(chain([first_event], recorded_events), keeps_records=False)


def check_code(experiment_dir: Path, history: History, *, allowed: bool) -> None:
    """Raise UsageError if this code differs from that of the existing records, unless a change is `allowed`.

    Runs done with two states of the code cannot be compared in pairs, so the audit would block the verdict. A change of
    a command's own files is never allowed.
    """
    check_command_files(history)
    code = provenance.code()
    for state in code_states(history):
        key = telling([state.code, code])
        if allowed or state.code.get(key, "") == code.get(key, ""):
            continue
        commit = state.code.get("commit", "")
        elsewhere = commit not in ("", code.get("commit")) and state.code.get("dirty") != "yes"
        remedy = f"`git checkout {commit}`" if elsewhere else "restore the earlier code"
        raise UsageError(
            f"{experiment_dir}: the code has changed since the records were made, from {named(state.code)} to "
            f"{named(code)}: {remedy}, or continue with --allow-changed-code, which blocks the verdict"
        )


def check_resumable(experiment_dir: Path, history: History, *, allow_changed_code: bool = False) -> None:
    """Raise UsageError if the experiment is finished or no seed is left; if runs remain, call `check_code`."""
    if history.finished:
        remedy = f"`{shell_command('report', experiment_dir)}` shows the result and what to do next"
        raise UsageError(f"{experiment_dir}: the experiment is finished; {remedy}")
    if nothing_left(history):
        raise UsageError(f"{experiment_dir}: every seed was given up, so there is nothing to resume; launch it again")
    if any(run.expected for run in history.runs.values()):
        check_code(experiment_dir, history, allowed=allow_changed_code)


def _perform(
    sink: EventSink,
    first_events: Sequence[events.AnyEvent],
    experiment_dir: Path,
    launcher: Launcher,
    limits: Limits | None,
) -> None:
    """Record `first_events`, and carry out the rest of the experiment."""
    limits = limits or Limits()
    plain_command, full_command = (shell_command("resume", experiment_dir, *flags) for flags in ((), launcher.flags))
    with (
        naming(full_command, replaced_command=plain_command),
        closing(sink),
        _states_of_code(sink.history.plan, experiment_dir),
    ):  # without the flags, `resume` starts workers elsewhere
        recorded = False
        try:
            with CaughtSignals() as signals, sink.heeding(signals, limits.disk_full_s):
                for event in first_events:
                    sink.record(event)
                sink.commit()
            recorded = True
            _execute(experiment_dir, launcher, sink, limits)
        except BaseException as error:
            by_user = isinstance(error, Interrupted | KeyboardInterrupt)
            detail = str(error).partition("\n")[0] or type(error).__name__
            sink.record(events.ExperimentEnded(status="interrupted" if by_user else "failed", detail=detail))
            if recorded:
                append_resume_command(error, experiment_dir, sink.history)
            raise
        sink.record(events.ExperimentEnded(status="finished", detail=""))


def _states_of_code(plan: Plan, experiment_dir: Path) -> AbstractContextManager[None]:
    """Return a context in which the files of each group's state of the code are present, if each has one.

    Entering it raises UsageError if a state no longer exists.
    """
    states = list(plan.trainer.code_states.values()) if plan.trainer is not None else []
    if not states:
        return nullcontext()
    from esper_ab.code_trees.trees import trees_present  # most experiments have one state of the code

    return trees_present(experiment_dir, states)


def append_resume_command(error: BaseException, experiment_dir: Path, history: History) -> None:
    """Append to the error the command that resumes the experiment, unless nothing is left to do."""
    if isinstance(error, DiskFull | Moved | Removed) or not any(run.expected for run in history.runs.values()):
        return  # these errors have said how
    line = f"to go on: {shell_command('resume', experiment_dir)}"
    trainer = history.plan.experiment.trainer
    rewards = (code for block in history.blocks for spec in block.runs for code in spec.reward_code)
    is_copied = bool(trainer and not is_command(trainer) and any_complete(history)) or any(
        code.folder for code in rewards
    )
    if isinstance(error, WorkerFailed) and is_copied:
        line = f"runs use a copy of your code made at the start: if you change your code, launch again\n{line}"
    if isinstance(error, EsperError):
        error.args = (f"{error}\n{line}",)
    else:
        error.add_note(line)


def _execute(experiment_dir: Path, launcher: Launcher, sink: EventSink, limits: Limits) -> None:
    experiment_dir = experiment_dir.absolute()  # users' code may change the current directory, even of this process
    plan = sink.history.plan
    limits = limits.across_nodes() if launcher.nodes else limits
    by_incarnation = sorted(sink.history.workers, key=lambda worker: worker.incarnation)
    started_before = {worker.worker: worker.incarnation for worker in by_incarnation}  # the last incarnation of each
    shell = users_shell.of_this_process()  # here, because `room_for` raises a limit
    with (
        descriptors.room_for(len(plan.lanes), launcher.descriptors, launcher.own_descriptors),
        CaughtSignals() as signals,
        sink.heeding(signals, limits.disk_full_s),
        closing(Hub(launcher.transport, launcher.address, len(plan.lanes))) as hub,
    ):
        fleet = Fleet(experiment_dir, hub, shell)
        coordinator = Coordinator(sink, hub, fleet, limits.of_steps(plan.step_s))
        try:
            fleet.start(plan, launcher, started_before)
            distributions.load()  # needed at looks; loaded early, because what is installed may change during a run
            coordinator.work(signals)
        except BaseException as error:
            is_hurried = fleet.stop(str(error).partition("\n")[0], _LEAVE_NOW_S, signals.ctrl_c)
            if is_hurried and isinstance(error, Interrupted) and error.in_order:
                sink.record(events.Incident(category="interrupted", detail=_FURTHER))
                error.args = (f"{error}; {_FURTHER}",)
            raise
        finally:
            if hub.unreported:
                sink.record(
                    events.Incident(
                        category="bad_message",
                        detail=f"{hub.unreported} more messages were refused; only the first of each kind are listed",
                    )
                )
        fleet.stop("the experiment is finished", _LEAVE_S, signals.ctrl_c)

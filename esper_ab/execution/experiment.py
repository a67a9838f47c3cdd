"""From what was asked to a plan, and from a plan to finished runs: the way of every command that trains.

Imports little: everything heavy comes when it is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esper_ab.commands._options import request
from esper_ab.contracts.errors import UsageError
from esper_ab.execution.detach import reserved, settle_console

if TYPE_CHECKING:
    from esper_ab.contracts.machine import Machine, Questions
    from esper_ab.control.audience import Observer
    from esper_ab.control.chaos import Chaos
    from esper_ab.control.liveness import Limits
    from esper_ab.design.calibration_file import Calibration
    from esper_ab.journal.fold import History
    from esper_ab.launchers import Launcher, Transport
    from esper_ab.plan.blocks import Plan
    from esper_ab.report.build import ReportPaths
    from esper_ab.settings.experiment import ExperimentSettings
    from esper_ab.settings.parse import FileSettings, Request
    from esper_ab.trackers.settings import Tracking

_NARROWEST = 40  # characters: in a narrower terminal sentences are wrapped by the terminal


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What will be run, on what, and where it will be kept; nothing is started or written yet."""

    plan: Plan
    machine: Machine
    run_dir: Path
    about: dict[str, Any] = field(default_factory=dict)  # what its author says of it, for [record] of experiment.toml
    generated: str = ""  # the name of the run directory without suffix, when nobody asked for one
    tracking: Tracking | None = None  # what follows the run, after `check_tracking`; no result depends on it


def planned(asked: ExperimentSettings, out: Path, name: str = "{task}-{time}") -> Planned:
    """Everything that can be refused is refused here, before anything starts or is written.

    `name`: of the run directory when `asked` has none; with a suffix when there is one of that name.
    """
    from esper_ab.control.preflight import examine

    run_dir = out / named(asked, name)
    generated = "" if asked.name else run_dir.name
    if generated:
        run_dir = _free(run_dir)
    check_new(asked, run_dir)
    return replace(plan_of(asked, run_dir, examine), generated=generated)


def _free(run_dir: Path) -> Path:
    """`run_dir`, or with the first of the suffixes -2, -3, … that neither a run nor one that is being detached has."""
    suffixed = (run_dir.with_name(f"{run_dir.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain((run_dir,), suffixed) if not (path.exists() or reserved(path)))


def claimed(ready: Planned, take: Callable[[Path], None]) -> Planned:
    """The same under a name that is this command's alone: where none was asked for, one that `take` gets.

    `take` raises FileExistsError when somebody was faster, who may have launched in the same second; UsageError when
    nobody can have it.
    """
    import click
    import msgspec

    run_dir = ready.run_dir
    while ready.generated:
        try:
            take(run_dir)
            break
        except FileExistsError:
            run_dir = _free(run_dir.with_name(ready.generated))
        except OSError as error:
            raise UsageError(f"{run_dir} cannot be made: {error.strerror}; choose another with --out") from None
    if run_dir == ready.run_dir:
        return ready
    click.echo(f"{ready.run_dir} has been taken by another run meanwhile; this one goes into {run_dir}", err=True)
    experiment = msgspec.structs.replace(ready.plan.experiment, name=run_dir.name)
    return replace(ready, run_dir=run_dir, plan=msgspec.structs.replace(ready.plan, experiment=experiment))


def claimed_here(ready: Planned, launcher: Launcher) -> Planned:
    """As `claimed`, by making the run directory, after what `carry_out` would refuse was refused."""
    from esper_ab.launchers import check

    check(launcher, ready.plan.lanes)
    return claimed(ready, lambda run_dir: run_dir.mkdir(parents=True))


def named(asked: ExperimentSettings, name: str) -> str:
    """The name asked for, or `name` with task and time filled in; UsageError when it cannot name a folder."""
    from esper_ab.plan.run_directory import check_name

    name = asked.name or name.format(task=asked.task, time=f"{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}")
    check_name(name)
    return name


def check_new(asked: ExperimentSettings, run_dir: Path) -> None:
    """UsageError unless `run_dir` can be made and has room for the experiment."""
    from esper_ab.control.preflight import check_run_dir, expected_bytes

    env_episodes = len(asked.groups) * asked.replicates * asked.n_envs * (asked.episodes + 2 * asked.eval_episodes)
    check_run_dir(run_dir, expected_bytes(env_episodes))


def plan_of(asked: ExperimentSettings, run_dir: Path, examine: Callable[[Questions], Machine]) -> Planned:
    """The plan on the machine that `examine` finds; UsageError for what it does not have."""
    import msgspec

    from esper_ab.design.boundary_cache import calibrate
    from esper_ab.live.console import waiting
    from esper_ab.plan.blocks import make_plan
    from esper_ab.plan.estimate import estimate
    from esper_ab.settings.precision import precision_notes
    from esper_ab.settings.resolve import questions, resolve

    with waiting("looking at this machine"):
        machine = examine(questions(asked))
    experiment = resolve(msgspec.structs.replace(asked, name=run_dir.name), machine)
    plan = make_plan(experiment, machine, calibrate)
    notes = (*plan.notes, *precision_notes(asked, experiment, machine))
    plan = msgspec.structs.replace(plan, notes=notes, step_s=estimate(plan, machine).step_s)
    return Planned(plan=plan, machine=machine, run_dir=run_dir)


def plan_as_text(ready: Planned) -> str:
    """What will be done and what it costs, in sentences that fit a terminal."""
    import shutil

    from esper_ab.plan.estimate import estimate
    from esper_ab.plan.text import WIDTH, plan_text

    width = min(WIDTH, max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns))
    return plan_text(ready.plan, estimate(ready.plan, ready.machine), ready.run_dir, width)


def plan_as_json(ready: Planned, **more: Any) -> bytes:
    """The same, whole, with `more` beside it."""
    import msgspec

    from esper_ab.plan.estimate import estimate

    cost = estimate(ready.plan, ready.machine)
    return msgspec.json.encode({"plan": ready.plan, "estimate": cost, "run_dir": str(ready.run_dir), **more})


def calibrated(ready: Planned, calibration: Calibration) -> Planned:
    """The same with what is known of chance in its plan; UsageError when the calibration is of something else.

    A calibration by another state of the code is a note of the plan.
    """
    import msgspec

    from esper_ab.control import provenance
    from esper_ab.design.calibration_file import check_belongs

    remark = check_belongs(calibration, ready.plan.experiment, provenance.code())
    notes = (*ready.plan.notes, remark) if remark else ready.plan.notes
    return replace(ready, plan=msgspec.structs.replace(ready.plan, run_sd=calibration.spread.sd, notes=notes))


def as_asked(options: dict[str, Any]) -> ExperimentSettings:
    """Flags and file put together; slots, devices and name may still be empty.

    An exam has its own groups unless others are named.
    """
    from esper_ab.settings import exam
    from esper_ab.settings.parse import FileSettings, read_toml

    file = read_toml(options["config"]) if options["config"] else FileSettings()
    wanted, is_exam = request(options), bool(options.get("exam"))
    if is_exam and not (wanted.groups or wanted.group or file.groups or file.tables):
        wanted = replace(wanted, groups=exam.GROUPS)
    asked = put_together(wanted, file)
    return exam.as_exam(asked) if is_exam and not asked.exam else asked


def put_together(wanted: Request, file: FileSettings) -> ExperimentSettings:
    """As `parse`, with the names that this installation has, and as an exam when one is asked for."""
    from esper_ab.contracts import catalog
    from esper_ab.settings import exam
    from esper_ab.settings.parse import Catalogue, parse
    from esper_ab.settings.resolve import check_names

    catalogue = Catalogue(rewards=catalog.names("workers.rewards"), controllers=catalog.names("workers.controllers"))
    asked = parse(wanted, file, catalogue)
    for group in asked.groups:
        check_names(group, catalogue.rewards, catalogue.controllers)
    return exam.as_exam(asked) if asked.exam else asked


def carry_out(
    ready: Planned, launcher: Launcher, *, watched: bool, chaos: Chaos | None = None, limits: Limits | None = None,
    also: Sequence[Observer] = (),
) -> None:  # fmt: skip
    """Make the run directory, train, evaluate and journal; the live view is one observer among others.

    A `ready` whose name was generated has been through `claimed_here`.

    `limits`: of silence and deaths; by default those of a rehearsal of faults, or of any run. `also`: who else is told.
    """
    from esper_ab.control import conduct
    from esper_ab.control.chaos import LIMITS
    from esper_ab.launchers import check
    from esper_ab.plan.run_directory import make_run_directory
    from esper_ab.trackers.settings import Tracking
    from esper_ab.trackers.state import save_settings

    check(launcher, ready.plan.lanes)
    make_run_directory(ready.run_dir, ready.plan, ready.machine, ready.about, claimed=bool(ready.generated))
    if ready.tracking not in (None, Tracking()):  # with tags and no tracker: `esper-ab track` may be called later
        save_settings(ready.run_dir, ready.tracking)  # read by `observers`, now and when the run goes on later
    settle_console(ready.run_dir)
    with ExitStack() as stack:
        told = [*observers(stack, ready.run_dir, ready.plan, None, watched=watched), *also]
        conduct.run(ready.plan, ready.run_dir, launcher, told, limits or (LIMITS if chaos else None), chaos)


def reported(run_dir: Path) -> ReportPaths:
    """The report, written anew, which takes some seconds."""
    from esper_ab.live.console import waiting
    from esper_ab.report.build import build_report

    with waiting("writing the report"):
        return build_report(run_dir)


def observers(
    stack: ExitStack, run_dir: Path, plan: Plan, history: History | None, *, watched: bool
) -> list[Observer]:
    """Those who are told what happens: the folder of each run, stderr of what goes wrong, trackers, the live view.

    `stack` closes the view and then, after a run that succeeded, waits a little for the trackers.

    `history`: of an experiment that goes on.
    """
    from esper_ab.control.run_folders import RunFolders
    from esper_ab.live.warnings import Warnings
    from esper_ab.trackers.beside import Trackers
    from esper_ab.trackers.state import read_settings

    blocks = plan.blocks if history is None else history.blocks
    told: list[Observer] = [RunFolders(run_dir, plan, blocks), Warnings(ledger=not watched)]
    if (tracking := read_settings(run_dir)).anything:
        trackers = Trackers(run_dir, tracking)
        stack.push(trackers.settle)
        told.append(trackers)
    if watched:
        from esper_ab.live.console import rich_console
        from esper_ab.live.terminal import LiveView

        told.append(stack.enter_context(LiveView(plan, rich_console(), history=history)))
    return told


def launcher_named(name: str, transport: Transport = "ipc") -> Launcher:
    """`local`: processes; `inline`: threads of this one. `transport`: how they talk to the coordinator."""
    if name == "inline":
        from esper_ab.launchers.inline import InlineLauncher

        return InlineLauncher(transport=transport)
    from esper_ab.launchers.local import LocalLauncher

    return LocalLauncher(transport=transport)

"""Plan a requested experiment, and carry out a plan, for every command that trains."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from esper_ab.contracts.errors import DiskFull, JournalError, Setting, UsageError, refused
from esper_ab.contracts.evaluation import greedy_episodes
from esper_ab.contracts.experiment_name import check_name
from esper_ab.contracts.files_below import PRIVATE, make_folder, removed_on_failure
from esper_ab.contracts.kinds_of_task import GROWTH, kind_of_task
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.reward_audit import RewardAudit
from esper_ab.contracts.trainer import TRAINER_PREFIX
from esper_ab.contracts.wording import counted
from esper_ab.control import provenance
from esper_ab.control.nodes import examine_nodes
from esper_ab.control.observers import Observer
from esper_ab.control.preflight import check_experiment_dir, check_launcher, examine_here, expected_bytes
from esper_ab.control.rules.limits import Limits
from esper_ab.control.run_folders import RunFolders
from esper_ab.execution.audited_rewards import belonging
from esper_ab.execution.leftover import clear, is_leftover
from esper_ab.health.processor import room
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History
from esper_ab.launchers import Launcher
from esper_ab.live.console import rich_console, waiting
from esper_ab.live.on_stderr import Warnings
from esper_ab.plan.blocks import make_plan
from esper_ab.plan.budget import EVIDENCE, known_sd_of_pairs
from esper_ab.plan.estimate import Estimate
from esper_ab.plan.experiment_directory import claim_new, make_experiment_directory
from esper_ab.plan.plan import Plan
from esper_ab.plan.text import WIDTH, plan_text, short_text
from esper_ab.settings.eval_episodes import EvalEpisodesChoice, choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.resolve import resolve
from esper_ab.trackers.beside import Trackers
from esper_ab.trackers.settings import Tracking, wanted
from esper_ab.trackers.state import read_settings, save_settings

if TYPE_CHECKING:
    from esper_ab.design.calibration_file import Calibration

_NARROWEST = 40  # characters: a narrower terminal wraps sentences itself


@dataclass(frozen=True, kw_only=True)
class Beforehand:
    """Results of `calibrate` and `growth rewards` that become part of the experiment's plan."""

    calibration: Calibration | None = None
    reward_audit: RewardAudit | None = None
    goes_on: bool = False  # whether the experiment may already have begun, in which case the caller continues it

    def eval_episodes(self, asked: AskedExperiment) -> EvalEpisodesChoice:
        """Choose the number of evaluation episodes."""
        return choose_eval_episodes(asked, self.calibration.noise if self.calibration else None)


@dataclass(frozen=True, kw_only=True)
class PlannedExperiment:
    """A planned experiment, with its machine and directory. Nothing has been started or written yet."""

    asked: AskedExperiment
    machine: Machine
    plan: Plan
    cost: Estimate
    experiment_dir: Path
    generated: str = ""  # the generated name of the experiment directory, without suffix; "": the user chose it
    known: Beforehand = Beforehand()
    tracking: Tracking | None = None  # trackers, already checked; results do not depend on them
    about: dict[str, Any] = field(default_factory=dict)  # the author's remarks, for [record] of experiment.toml

    @cached_property
    def power_line(self) -> str:
        """A sentence on the difference that the plan can detect; "" if it cannot be computed before training."""
        from esper_ab.design.power_text import KnownSD, design_power_line  # needs scipy, which --help does not

        calibration = self.known.calibration
        sd = self.plan.run_sd
        if sd is None and calibration is not None:
            sd = calibration.spread.sd
        measured = known_sd_of_pairs(self.plan.experiment)
        known = KnownSD(measured, EVIDENCE) if measured is not None else None
        return design_power_line(self.plan.design, sd, known)


def plan_part(
    asked: AskedExperiment,
    experiment_dir: Path,
    launcher: Launcher,
    machines: dict[bytes, Machine],
    known: Beforehand = Beforehand(),
    *,
    only_plan: bool = False,
) -> PlannedExperiment:
    """Plan a new experiment. Raises UsageError for every problem that can be found before anything starts.

    `machines` caches, by question, the answers of this machine and of the launcher's nodes; new answers are added. With
    `only_plan`, the modules that carry out a plan are not imported, because this process will not need them.
    """
    evaluation = known.eval_episodes(asked)
    if not (known.goes_on and begun(experiment_dir)):
        episodes = evaluation.eval_episodes
        each = asked.episodes * asked.n_envs + episodes + greedy_episodes(episodes, asked.n_envs)
        needed = expected_bytes(len(asked.groups) * asked.seeds * each)
        check_experiment_dir(experiment_dir, needed, taken_over=is_leftover(experiment_dir))
    questions = settings_of(asked.task).ask(asked)
    key = msgspec.json.encode(questions)
    machine = machines.get(key)
    if machine is None:
        meanwhile = _import_nothing if only_plan else _import_control
        with waiting("looking at this machine"):
            machine = examine_here(questions, launcher, meanwhile)
        if launcher.nodes:
            with waiting(f"looking at {counted(len(launcher.nodes), 'node')}"):
                machine = examine_nodes(machine, questions, launcher, experiment_dir.parent)
        machines[key] = machine
    plan, cost = plan_on(machine, asked, experiment_dir.name, evaluation, known)
    return PlannedExperiment(
        asked=asked, machine=machine, plan=plan, cost=cost, experiment_dir=experiment_dir, known=known
    )


def _import_nothing() -> None:
    """Import no modules while the preflight imports torch."""


def _import_control() -> None:
    """Import the modules that carry out an experiment, while the preflight imports torch in its own process."""
    from esper_ab.control import experiment_run  # noqa: F401
    from esper_ab.launchers import local  # noqa: F401


def choose_directory(output_dir: Path, name: str, task: str, pattern: str) -> Path:
    """Return the directory of the experiment `name`; UsageError if the name is not valid for a folder.

    If `name` is "", the name is generated from `pattern`, `task` and the time, if necessary with the first free suffix
    -2, -3, ….
    """
    last = Path(task.removeprefix(TRAINER_PREFIX)).name  # for a file, without its folders
    task = "-".join(re.findall(r"[A-Za-z0-9]+", last)) or "task"
    if name:
        check_name(name)
        return output_dir / name
    generated = pattern.format(task=task, time=f"{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}")
    check_name(generated)
    return _find_free(output_dir / generated)


def _find_free(experiment_dir: Path) -> Path:
    """Return `experiment_dir` or, if that name is taken, add the first free suffix -2, -3, …."""
    suffixed = (experiment_dir.with_name(f"{experiment_dir.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain((experiment_dir,), suffixed) if not path.exists())


def plan_on(
    machine: Machine,
    asked: AskedExperiment,
    name: str,
    evaluation: EvalEpisodesChoice,
    known: Beforehand = Beforehand(),
) -> tuple[Plan, Estimate]:
    """Resolve the experiment on `machine`, and return its plan and estimate.

    If a seed has more runs than may train at the same time, its runs train one after the other, unless a placement is
    requested. If no devices are requested and hosts of growth train on GPUs, the estimate also has the duration on the
    CPU. Raises UsageError if the machine cannot run the experiment or if `known` does not fit.
    """
    if 0 < asked.max_parallel < len(asked.groups) and asked.placement == "auto":
        asked = msgspec.structs.replace(asked, placement="sequence")
    if asked.devices or not machine.names("cuda") or kind_of_task(asked.task) != GROWTH:
        return _plan_on(machine, asked, name, evaluation, known)
    on_cpu_s: float | None = None
    try:
        on_cpu = msgspec.structs.replace(asked, devices=("cpu",))
        _, cost = _plan_on(machine, on_cpu, name, evaluation, known)
        on_cpu_s = cost.duration_s
    except UsageError:
        pass  # the CPU cannot run it either, so the error of the GPUs has no remedy to add
    try:
        plan, cost = _plan_on(machine, asked, name, evaluation, known)
    except UsageError as error:
        if on_cpu_s is None:
            raise
        raise UsageError(*error.args, "; to use the CPU, add ", Setting("devices", ("cpu",))) from None
    if on_cpu_s is None:
        return plan, cost
    return plan, msgspec.structs.replace(cost, on_cpu_s=on_cpu_s)


def _plan_on(
    machine: Machine, asked: AskedExperiment, name: str, evaluation: EvalEpisodesChoice, known: Beforehand
) -> tuple[Plan, Estimate]:
    """Plan on the requested devices, or else on all devices of the first kind that the machine has."""
    experiment = resolve(asked, machine, name, evaluation.eval_episodes)
    remarks = settings_of(asked.task).remarks(asked, experiment, machine)
    if evaluation.why:
        remarks += (evaluation.why,)
    run_sd = None
    if known.calibration is not None:
        from esper_ab.design.calibration_file import check_belongs  # needs scipy, like the calibration itself

        remarks += check_belongs(known.calibration, experiment, provenance.code())
        run_sd = known.calibration.run_sd(experiment.eval_episodes)
    reward_audit = None
    if known.reward_audit is not None:
        reward_audit, missing = belonging(known.reward_audit, experiment, machine)
        remarks += missing
    return make_plan(experiment, machine, remarks=remarks, run_sd=run_sd, reward_audit=reward_audit)


def claim_directory(planned: PlannedExperiment) -> PlannedExperiment:
    """If the name of the directory was generated, create the directory, so that no other command can take the name.

    If another launch in the same second has taken the name, choose the next free one and plan again under that name.
    Raises UsageError if the directory cannot be created.
    """
    experiment_dir = planned.experiment_dir
    while planned.generated:
        try:
            make_folder(experiment_dir, exist_ok=False, mode=PRIVATE)
            break
        except FileExistsError:
            experiment_dir = _find_free(experiment_dir.with_name(planned.generated))
        except OSError as error:
            raise refused(
                error,
                f"{experiment_dir} cannot be created: {error.strerror}; choose another with ",
                Setting("output_dir"),
            ) from None
    if experiment_dir == planned.experiment_dir:
        return planned
    taken = f"{planned.experiment_dir} has just been taken by another experiment"
    click.echo(f"{taken}; this one uses {experiment_dir}", err=True)
    evaluation = planned.known.eval_episodes(planned.asked)
    plan, _ = plan_on(planned.machine, planned.asked, experiment_dir.name, evaluation, planned.known)
    return replace(planned, experiment_dir=experiment_dir, plan=plan)


def format_plan(planned: PlannedExperiment, *, whole: bool) -> str:
    """Return a plan as text that fits the terminal: a few lines or, with `whole`, all of it."""
    width = min(WIDTH, max(_NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns))
    if whole:
        return whole_plan(planned, width)
    return short_text(planned.plan, planned.machine, planned.cost, planned.experiment_dir, planned.power_line, width)


def whole_plan(planned: PlannedExperiment, width: int = WIDTH) -> str:
    """Return the full text of a plan."""
    memory = room()
    left = f"{memory.bytes / 2**30:.1f} available under {memory.by}" if memory.by else ""
    text = plan_text(planned.plan, planned.machine, planned.cost, planned.experiment_dir, width, left)
    return "\n".join(filter(None, (text, planned.power_line)))


def encode_plan(planned: PlannedExperiment) -> bytes:
    """Encode plan, estimate and experiment directory as JSON."""
    where = msgspec.Raw(json.dumps(str(planned.experiment_dir)).encode())  # it may have bytes that are not UTF-8
    return msgspec.json.encode({"plan": planned.plan, "estimate": planned.cost, "experiment_dir": where})


def carry_out(
    planned: PlannedExperiment,
    launcher: Launcher,
    *,
    watched: bool,
    limits: Limits | None = None,
    also: Sequence[Observer] = (),
) -> None:
    """Create the directory if necessary, then train, evaluate and keep the journal; `watched` adds the live view.

    An existing directory is reused if nothing was recorded in it and no process holds it. `limits` are the limits on
    silent and dead workers, and `also` are additional observers.
    """
    # Imported here, so that --help, plans and reports need no zmq, numpy or scipy.
    from esper_ab.control import experiment_run
    from esper_ab.journal.file import Journal

    plan = planned.plan
    experiment_dir = planned.experiment_dir
    check_launcher(launcher, plan.lanes, planned.machine.devices)
    with experiment_run.reserved(launcher, plan.lanes), ExitStack() as stack:
        if is_leftover(experiment_dir):
            clear(experiment_dir)
        elif not planned.generated:
            claim_new(experiment_dir)
        try:
            journal = Journal(experiment_dir)  # from here on no other process can take the directory
        except DiskFull:
            with removed_on_failure(experiment_dir):
                raise
        try:
            make_experiment_directory(experiment_dir, plan, planned.machine, whole_plan(planned), planned.about)
            if planned.tracking not in (None, Tracking()):  # may have only tags, for a later `track`
                with removed_on_failure(experiment_dir):
                    save_settings(experiment_dir, planned.tracking)  # `make_observers` reads them, now and later
            observers = make_observers(stack, experiment_dir, plan, None, watched=watched)
        except BaseException:
            with suppress(JournalError):  # its folder may be gone
                journal.close()
            raise
        experiment_run.run(plan, journal, launcher, [*observers, *also], limits)


def make_observers(
    stack: ExitStack, experiment_dir: Path, plan: Plan, history: History | None, *, watched: bool
) -> list[Observer]:
    """Start the observers of an experiment: run folders, warnings on stderr, trackers and the live view.

    On leaving `stack`, the view is closed and, after a successful experiment, the trackers get a few seconds to finish.
    `history` is the history of a resumed experiment, or None.
    """
    experiment_dir = experiment_dir.absolute()  # users' code may leave the current directory
    blocks = plan.blocks if history is None else history.blocks
    observers: list[Observer] = [RunFolders(experiment_dir, plan, blocks), Warnings(incidents=not watched)]
    tracking = read_settings(experiment_dir)
    if wanted(tracking):
        trackers = Trackers(experiment_dir, tracking)
        stack.push(trackers.settle)
        observers.append(trackers)
    if watched:
        from esper_ab.live.terminal import LiveView  # needs rich, which a plan and --help do not

        observers.append(stack.enter_context(LiveView(plan, rich_console(), history=history)))
    return observers

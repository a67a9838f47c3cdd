"""A job: plan a request, check it, create a directory and carry out the plan. Most jobs have one part.

A joint experiment has several parts. All parts are planned before the first part starts. The parts are then carried out
one after the other, and one verdict covers all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from esper_ab.contracts.errors import UsageError, naming
from esper_ab.contracts.files_below import remove_folder_below, removed_on_failure
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.control.observers import Observer
from esper_ab.control.preflight import check_experiment_dir, check_launcher, reserve_lanes
from esper_ab.control.rules.limits import Limits
from esper_ab.execution import experiment as execution
from esper_ab.execution.answer import write_report
from esper_ab.execution.experiment import Beforehand, PlannedExperiment
from esper_ab.execution.leftover import clear, is_leftover
from esper_ab.health.processor import Room, room
from esper_ab.journal.lock import Lock
from esper_ab.launchers import Launcher
from esper_ab.plan.estimate import Estimate, duration
from esper_ab.plan.experiment_directory import claim_new, experiment_toml
from esper_ab.readers.external_plan import save_plan
from esper_ab.readers.joint_directory import PLAN_NAME, Joint, JointPart, write_joint
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.launcher import UNSAID, AskedLauncher
from esper_ab.settings.parse import parse
from esper_ab.settings.parts import Part, Parts
from esper_ab.settings.request import request
from esper_ab.settings.settings_file import read_toml
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import read_settings, save_settings

if TYPE_CHECKING:
    from esper_ab.design.design import Contrast
    from esper_ab.verdict.analysis_plan import AnalysisPlan

_DAY_S = 24 * 3600.0
_PATTERN = "{task}-{time}"


@dataclass(frozen=True, kw_only=True)
class AskedJob:
    """The request of a command or a program, after every check that does not need the machine."""

    parts: Parts
    output_dir: Path
    launcher: AskedLauncher = UNSAID
    tracking: Tracking = field(default_factory=Tracking)
    known: Beforehand = field(default_factory=Beforehand)
    about: dict[str, Any] = field(default_factory=dict)  # the author's remarks


@dataclass(frozen=True, kw_only=True)
class Job:
    """A planned job. Nothing has been started or written yet."""

    directory: Path
    parts: tuple[PlannedExperiment, ...]
    launcher: Launcher
    tracking: Tracking
    joint: Joint | None = None
    plan: AnalysisPlan | None = None  # over all parts of a joint experiment

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, which are the same in all parts."""
        return tuple(group.name for group in self.parts[0].plan.experiment.groups)

    @property
    def comparisons(self) -> tuple[Contrast, ...]:
        """The comparisons; for a joint experiment, the comparisons over all parts."""
        return (self.plan or self.parts[0].plan).design.comparisons


def one_part(asked: AskedExperiment) -> Parts:
    """Return a job's parts for a single experiment."""
    return Parts(name=asked.name, alpha=asked.alpha, scores="", parts=(Part(name="", asked=asked),))


def plan_job(asked: AskedJob, launcher: Launcher, pattern: str = _PATTERN, *, only_plan: bool = False) -> Job:
    """Plan every part. Raises UsageError for every problem that can be found before anything starts.

    `pattern` is for a generated name. With `only_plan`, the modules that carry out a plan are not imported, because
    this process will not need them.
    """
    if len(asked.parts.parts) > 1:
        return _plan_joint(asked, launcher, only_plan=only_plan)
    name = asked.parts.name
    (part,) = asked.parts.parts
    directory = execution.choose_directory(asked.output_dir, name, part.asked.task, pattern)
    planned = execution.plan_part(part.asked, directory, launcher, {}, asked.known, only_plan=only_plan)
    generated = "" if name else directory.name
    planned = replace(planned, tracking=asked.tracking, about=asked.about, generated=generated)
    check_launcher(launcher, planned.plan.lanes, planned.machine.devices)
    return Job(directory=directory, parts=(planned,), launcher=launcher, tracking=asked.tracking)


def _plan_joint(asked: AskedJob, launcher: Launcher, *, only_plan: bool) -> Job:
    """Plan every part of a joint experiment, and the analysis over all of them."""
    parts = asked.parts.parts
    pattern = f"{{task}}-and-{len(parts) - 1}-more-{{time}}"
    directory = execution.choose_directory(asked.output_dir, asked.parts.name, parts[0].asked.task, pattern)
    check_experiment_dir(directory, 0, taken_over=is_leftover(directory))
    machines = dict[bytes, Machine]()
    names = dict[str, str]()  # of the parts, by digest
    planned = list[PlannedExperiment]()
    for part in parts:
        with _told_of(part.name):
            folder = directory / part.folder
            plan = execution.plan_part(part.asked, folder, launcher, machines, asked.known, only_plan=only_plan)
            digest = plan.plan.digest
            if digest in names:
                twin = names[digest]
                raise UsageError(f"this is the same experiment as {twin}, which would count twice; name each once")
        names[digest] = part.name
        planned.append(replace(plan, tracking=asked.tracking, about=asked.about))
    for plan in planned:
        check_launcher(launcher, plan.plan.lanes, plan.machine.devices)
    job = Job(directory=directory, parts=tuple(planned), launcher=launcher, tracking=asked.tracking)
    return _together(job, asked.parts)


def _together(job: Job, asked: Parts) -> Job:
    """Return the job with the analysis plan over all parts of a joint experiment."""
    from esper_ab.verdict.analysis_plan import Rule, make_plan  # --help does not need it
    from esper_ab.verdict.scale import Scale  # as above

    first = job.parts[0].plan.experiment
    scales = []
    folders = []
    for part, planned in zip(asked.parts, job.parts, strict=True):
        design = planned.plan.design
        scales.append(Scale(task=part.name, outcome=design.outcome, margin=design.margin, worst=design.worst))
        folders.append(JointPart(name=part.name, folder=part.folder, digest=planned.plan.digest))
    seeds = tuple(map(str, range(first.seeds)))
    rule = Rule(control=first.control, alpha=asked.alpha, looks=first.looks)
    plan = make_plan(job.groups, seeds, tuple(scales), rule)
    return replace(job, plan=plan, joint=Joint(parts=tuple(folders), scores=_scores(asked.scores, plan)))


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Prefix the messages of UsageErrors inside this context with the name of the part."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name}: ", *error.args) from None


def _scores(told: str, plan: AnalysisPlan) -> dict[str, tuple[float, float]]:
    """Return the worst and the target outcome of each part.

    The outcomes are given in `told`. If `told` is empty, they are the ends of the declared ranges, or {} if a part does
    not declare both ends.
    """
    from esper_ab.readers.scales import ranges_of, told_by_task  # --help does not need it

    if told:
        return ranges_of(plan.tasks, told_by_task(told))
    ranges = {}
    for scale in plan.scales:
        low = scale.outcome.low
        high = scale.outcome.high
        if low is None or high is None:
            return {}
        ranges[scale.task] = (low, high) if scale.outcome.sign > 0.0 else (high, low)
    return ranges


def describe(job: Job, *, whole: bool = False) -> str:
    """Return a job as text: the author's remarks, the plan of each part, and the cost and the rule of all parts.

    With `whole`, each plan is given in full instead of in a few lines.
    """
    first, *others = (execution.format_plan(part, whole=whole) for part in job.parts)
    first = "\n".join([*_remarks(job.parts[0].about), first])
    if job.plan is not None:
        first = f"{_over_all(job, job.plan)}\n\n{first}"
    return "\n\n".join([first, *others])


def _remarks(about: dict[str, Any]) -> list[str]:
    """Return the author's remarks on the experiment and its variants, a line each."""
    if not about:
        return []
    lines = [about["description"]]
    for name, variant in about["variants"].items():
        if variant["description"]:
            lines.append(f"  {name}: {variant['description']}")
    return [visible_line(line) for line in lines if line]


def _over_all(job: Job, plan: AnalysisPlan) -> str:
    from esper_ab.verdict.sentences import rule_sentence  # needs scipy

    margins = "; ".join(f"{scale.task}: {scale.outcome.difference(f'{scale.margin:g}')}" for scale in plan.scales)
    return "\n".join(
        (
            f"{job.directory}: {len(job.parts)} parts, one after the other, and one verdict over all of them",
            f"estimate of all parts: {duration(sum(part.cost.duration_s for part in job.parts))}",
            f"margins: {margins}",
            f"rule over all parts: {rule_sentence(plan.design)}",
            f"sha256 of the plan: {plan.digest}",
        )
    )


def encode(job: Job) -> bytes:
    """Encode plans, estimates and directories as JSON."""
    parts = [msgspec.Raw(execution.encode_plan(one)) for one in job.parts]
    if job.plan is None:
        return bytes(parts[0])
    where = msgspec.Raw(json.dumps(str(job.directory)).encode())  # it may have bytes that are not UTF-8
    return msgspec.json.encode({"experiment_dir": where, "sha256": job.plan.digest, "parts": parts})


def excesses(cost: Estimate, memory: Room) -> tuple[str, ...]:
    """Return a sentence if the estimated time exceeds a day, and one if the estimated memory exceeds the available."""
    sentences = []
    if cost.duration_s > _DAY_S:
        sentences.append(f"it is estimated to take {cost.duration_s / _DAY_S:.1f} days")
    if memory.bytes < cost.memory_bytes and (memory.bytes or memory.by):
        available = f"{memory.bytes / 2**30:.1f} GiB are available"
        if memory.by:
            available += f" by {memory.by}"
        sentences.append(f"it is estimated to need {cost.memory_bytes / 2**30:.1f} GiB of memory, but {available}")
    return tuple(sentences)


def confirm(job: Job, *, yes: bool, dry_run: bool) -> None:
    """If the job may take more than a day or too much memory, warn the user and, unless `yes` is true, ask.

    Raises UsageError if the user declines, or if there is no terminal to ask. With `dry_run`, only warn, because
    nothing will be started.
    """
    costs = [part.cost for part in job.parts]
    largest = max(costs, key=lambda cost: cost.memory_bytes)
    whole = msgspec.structs.replace(largest, duration_s=sum(cost.duration_s for cost in costs))
    lanes = [lane for part in job.parts for lane in part.plan.lanes]
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    memory = Room(0, "") if on_gpu else room()  # planning lanes has already checked a GPU's memory
    sentences = excesses(whole, memory)
    for sentence in sentences:
        click.echo(typeable(f"warning: {sentence}"), err=True)
    if not sentences or yes or dry_run:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{'; '.join(sentences)}: --yes starts it anyway")
    if not click.confirm("Start it anyway?", err=True):
        raise UsageError("not started; for a smaller plan, reduce seeds, episodes or environments")


def make_directory(job: Job) -> Job:
    """Reserve the lanes, and create the experiment directory so that no other command can take the name.

    The directory of a joint experiment is created later.
    """
    if job.joint is not None:
        return job
    (planned,) = job.parts
    reserve_lanes(job.launcher, planned.plan.lanes, planned.machine.devices)
    claimed = execution.claim_directory(planned)
    return replace(job, directory=claimed.experiment_dir, parts=(claimed,))


def carry_out(
    job: Job,
    *,
    watched: bool,
    limits: Limits | None = None,
    also: Sequence[Observer] = (),
    begin: Callable[[str], object] = str,
) -> None:
    """Carry out every part; if the plan of a joint experiment cannot be written, remove the directory again.

    `begin` is called with the name of each part of a joint experiment. The other arguments are those of
    `execution.carry_out`.
    """
    if job.joint is None or job.plan is None:
        execution.carry_out(job.parts[0], job.launcher, watched=watched, limits=limits, also=also)
        return
    if is_leftover(job.directory):
        clear(job.directory)
    else:
        claim_new(job.directory)
    settings = {part.experiment_dir.name: experiment_toml(part.plan, part.machine) for part in job.parts}
    with ExitStack() as stack:
        with removed_on_failure(job.directory):
            stack.enter_context(closing(Lock(job.directory)))
            if job.tracking != Tracking():
                save_settings(job.directory, job.tracking)  # for parts that `resume` will start
            save_plan(job.plan, job.directory / PLAN_NAME)
            write_joint(job.directory, job.joint, settings)
        for part, planned in zip(job.joint.parts, job.parts, strict=True):
            begin(part.name)
            with resumed_as_a_whole(job.directory, planned.experiment_dir):
                execution.carry_out(planned, job.launcher, watched=watched, limits=limits, also=also)
            write_report(planned.experiment_dir)


def launch_again(directory: Path, part: JointPart, launcher: Launcher, *, watched: bool) -> None:
    """Launch a part that has not started, from its settings file; UsageError if settings or user code have changed.

    A folder that the part already has is removed: it has no events, so a command that was killed has left it. No
    running command can be using it, because the caller holds the lock of the joint experiment.
    """
    remove_folder_below(directory, part.folder)
    file = directory / f"{part.folder}.toml"
    asked = parse(request(read_toml(file)))
    planned = execution.plan_part(asked, directory / part.folder, launcher, {})
    if planned.plan.digest != part.digest:
        raise UsageError(
            f"{file}: the part {part.name} would differ from the one that was planned, because its settings or your "
            "reward, environment or trainer have changed; restore them, or launch the whole experiment again"
        )
    planned = replace(planned, tracking=read_settings(directory))
    execution.carry_out(planned, launcher, watched=watched)


def resumed_as_a_whole(directory: Path, folder: Path) -> AbstractContextManager[None]:
    """Inside this context, errors suggest resuming the whole joint experiment, not only the part in `folder`."""
    return naming(shell_command("resume", directory), instead_of=shell_command("resume", folder))

"""A job: plan a request, check it, create a directory and carry out the plan. Most jobs have one part.

A joint experiment has several parts. All parts are planned before the first part starts. The parts are then carried out
one after the other, and one verdict covers all of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
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
from esper_ab.settings.request import read_toml, request
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
    parts = asked.parts.parts
    machines = dict[bytes, Machine]()
    names = dict[str, str]()
    if several := len(parts) > 1:
        pattern = f"{{task}}-and-{len(parts) - 1}-more-{{time}}"
    directory = execution.choose_directory(asked.output_dir, asked.parts.name, parts[0].asked.task, pattern)
    if several:
        check_experiment_dir(directory, 0, taken_over=is_leftover(directory))
    planned = list[PlannedExperiment]()
    for part in parts:
        with _told_of(part.name) if several else nullcontext():
            place = directory / part.folder if several else directory
            one = execution.plan_part(part.asked, place, launcher, machines, asked.known, only_plan=only_plan)
            if twin := names.get(one.plan.digest):
                raise UsageError(f"this is the same experiment as {twin}, which would count twice; name each once")
            names[one.plan.digest] = part.name
            planned.append(
                replace(
                    one,
                    tracking=asked.tracking,
                    about=asked.about,
                    generated="" if several or asked.parts.name else directory.name,
                )
            )
    for one in planned:
        check_launcher(launcher, one.plan.lanes, one.machine.devices)
    job = Job(directory=directory, parts=tuple(planned), launcher=launcher, tracking=asked.tracking)
    return _together(job, asked.parts) if several else job


def _together(job: Job, asked: Parts) -> Job:
    """Return the job with the analysis plan over all parts of a joint experiment."""
    from esper_ab.verdict.analysis_plan import Rule, make_plan  # --help does not need it
    from esper_ab.verdict.scale import Scale  # as above

    first = job.parts[0].plan.experiment
    parts = list(zip(asked.parts, job.parts, strict=True))
    scales = tuple(
        Scale(task=part.name, outcome=design.outcome, margin=design.margin, worst=design.worst)
        for part, design in ((part, one.plan.design) for part, one in parts)
    )
    plan = make_plan(
        job.groups,
        tuple(map(str, range(first.seeds))),
        scales,
        Rule(control=first.control, alpha=asked.alpha, looks=first.looks),
    )
    folders = tuple(JointPart(name=part.name, folder=part.folder, digest=one.plan.digest) for part, one in parts)
    return replace(job, plan=plan, joint=Joint(parts=folders, scores=_scores(asked.scores, plan)))


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
    found = {}
    for scale in plan.scales:
        low = scale.outcome.low
        high = scale.outcome.high
        if low is None or high is None:
            return {}
        found[scale.task] = (low, high) if scale.outcome.sign > 0.0 else (high, low)
    return found


def describe(job: Job, *, whole: bool = False) -> str:
    """Return a job as text: the author's remarks, the plan of each part, and the cost and the rule of all parts.

    With `whole`, each plan is given in full instead of in a few lines.
    """
    text, *more = (execution.format_plan(one, whole=whole) for one in job.parts)
    if (first := job.parts[0]).about:  # the author's remarks on the experiment and its variants, a line each
        variants = first.about["variants"].items()
        said = [f"  {name}: {one['description']}" for name, one in variants if one["description"]]
        lines = [visible_line(line) for line in (first.about["description"], *said) if line]
        text = "\n".join([*lines, text])
    if job.plan is not None:
        text = f"{_over_all(job, job.plan)}\n\n{text}"
    return "\n\n".join([text, *more])


def _over_all(job: Job, plan: AnalysisPlan) -> str:
    from esper_ab.verdict.sentences import rule_sentence  # needs scipy

    margins = "; ".join(f"{one.task}: {one.outcome.difference(f'{one.margin:g}')}" for one in plan.scales)
    return "\n".join(
        (
            f"{job.directory}: {len(job.parts)} parts, one after the other, and one verdict over all of them",
            f"estimate of all parts: {duration(sum(one.cost.duration_s for one in job.parts))}",
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


def excesses(cost: Estimate, there: Room) -> tuple[str, ...]:
    """Return a sentence if the estimated time exceeds a day, and one if the estimated memory exceeds the available."""
    found = []
    if cost.duration_s > _DAY_S:
        found.append(f"it is estimated to take {cost.duration_s / _DAY_S:.1f} days")
    if there.bytes < cost.memory_bytes and (there.bytes or there.by):
        has = f"{there.bytes / 2**30:.1f} GiB are available{f' by {there.by}' if there.by else ''}"
        found.append(f"it is estimated to need {cost.memory_bytes / 2**30:.1f} GiB of memory, but {has}")
    return tuple(found)


def confirm(job: Job, *, yes: bool, dry_run: bool) -> None:
    """If the job may take more than a day or too much memory, warn the user and, unless `yes` is true, ask.

    Raises UsageError if the user declines, or if there is no terminal to ask. With `dry_run`, only warn, because
    nothing will be started.
    """
    whole = max((one.cost for one in job.parts), key=lambda cost: cost.memory_bytes)
    whole = msgspec.structs.replace(whole, duration_s=sum(one.cost.duration_s for one in job.parts))
    lanes = [lane for one in job.parts for lane in one.plan.lanes]
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    found = excesses(whole, Room(0, "") if on_gpu else room())  # planning lanes has already checked a GPU's memory
    for sentence in found:
        click.echo(typeable(f"warning: {sentence}"), err=True)
    if not found or yes or dry_run:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{'; '.join(found)}: --yes starts it anyway")
    if not click.confirm("Start it anyway?", err=True):
        raise UsageError("not started; for a smaller plan, reduce seeds, episodes or environments")


def make_directory(job: Job) -> Job:
    """Reserve the lanes, and create the experiment directory so that no other command can take the name.

    The directory of a joint experiment is created later.
    """
    if job.joint is not None:
        return job
    (one,) = job.parts
    reserve_lanes(job.launcher, one.plan.lanes, one.machine.devices)
    one = execution.claim_directory(one)
    return replace(job, directory=one.experiment_dir, parts=(one,))


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
    settings = {one.experiment_dir.name: experiment_toml(one.plan, one.machine) for one in job.parts}
    with ExitStack() as stack:
        with removed_on_failure(job.directory):
            stack.enter_context(closing(Lock(job.directory)))
            if job.tracking != Tracking():
                save_settings(job.directory, job.tracking)  # for parts that `resume` will start
            save_plan(job.plan, job.directory / PLAN_NAME)
            write_joint(job.directory, job.joint, settings)
        for part, one in zip(job.joint.parts, job.parts, strict=True):
            begin(part.name)
            with resumed_as_a_whole(job.directory, one.experiment_dir):
                execution.carry_out(one, job.launcher, watched=watched, limits=limits, also=also)
            write_report(one.experiment_dir)


def launch_again(directory: Path, part: JointPart, launcher: Launcher, *, watched: bool) -> None:
    """Launch a part that has not started, from its settings file; UsageError if settings or user code have changed.

    A folder that the part already has is removed: it has no events, so a command that was killed has left it. No
    running command can be using it, because the caller holds the lock of the joint experiment.
    """
    remove_folder_below(directory, part.folder)
    file = directory / f"{part.folder}.toml"
    one = execution.plan_part(parse(request(read_toml(file))), directory / part.folder, launcher, {})
    if one.plan.digest != part.digest:
        raise UsageError(
            f"{file}: the part {part.name} would differ from the one that was planned, because its settings or your "
            "reward, environment or trainer have changed; restore them, or launch the whole experiment again"
        )
    execution.carry_out(replace(one, tracking=read_settings(directory)), launcher, watched=watched)


def resumed_as_a_whole(directory: Path, folder: Path) -> AbstractContextManager[None]:
    """Inside this context, errors suggest resuming the whole joint experiment, not only the part in `folder`."""
    alone, whole = (shell_command("resume", path) for path in (folder, directory))
    return naming(whole, instead_of=alone)

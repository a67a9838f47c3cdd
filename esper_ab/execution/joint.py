"""Joint experiments: plan all parts before any is started, carry them out one after the other, judge them together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from esper_ab.contracts.below import remove_folder_below, removed_on_failure
from esper_ab.contracts.errors import UsageError, naming
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.preflight import check_launcher
from esper_ab.execution import experiment as execution
from esper_ab.execution.answer import write_report
from esper_ab.execution.leftover import clear, is_leftover
from esper_ab.joint.directory import Joint, JointPart, write_joint
from esper_ab.journal.lock import Lock
from esper_ab.launchers import Launcher
from esper_ab.plan.estimate import estimate
from esper_ab.plan.experiment_directory import claim_new, experiment_toml
from esper_ab.plan.text import duration
from esper_ab.settings.kinds import kind_of
from esper_ab.settings.parse import parse
from esper_ab.settings.parts import Part, Parts
from esper_ab.settings.request import read_request
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.state import read_settings, save_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from esper_ab.verdict.analysis_plan import AnalysisPlan


@dataclass(frozen=True, kw_only=True)
class PlannedJoint:
    """A planned joint experiment; nothing is started or written yet."""

    directory: Path
    joint: Joint
    plan: AnalysisPlan
    parts: tuple[execution.PlannedExperiment, ...]


def plan_joint(asked: Parts, out: Path, launcher: Launcher, *, only_plan: bool = False) -> PlannedJoint:
    """Plan every part; whatever can be refused is refused here, before anything is written or starts."""
    from esper_ab.verdict.analysis_plan import Rule, make_plan  # which --help does not wait for
    from esper_ab.verdict.scale import Scale  # likewise

    pattern = f"{{task}}-and-{len(asked.parts) - 1}-more-{{time}}"
    directory = out / execution.choose_name(msgspec.structs.replace(asked.parts[0].asked, name=asked.name), pattern)
    execution.check_free(directory, 0)
    machines: dict[bytes, Machine] = {}
    parts, names = list[execution.PlannedExperiment](), dict[str, str]()
    for part in asked.parts:
        with _told_of(part.name):
            one = _plan_part(part, directory, launcher, machines, only_plan=only_plan)
            if twin := names.get(one.plan.digest):
                raise UsageError(f"it is the same experiment as {twin}, and would count twice; name each once")
            parts.append(one)
            names[one.plan.digest] = part.name
    first = parts[0].plan.experiment
    scales = tuple(
        Scale(task=part.name, outcome=design.outcome, margin=design.margin, worst=design.worst)
        for part, design in zip(asked.parts, (one.plan.design for one in parts), strict=True)
    )
    plan = make_plan(
        tuple(group.name for group in first.groups), tuple(map(str, range(first.seeds))), scales,
        Rule(control=first.control, alpha=asked.alpha, looks=first.looks),
    )  # fmt: skip
    joint = Joint(
        parts=tuple(
            JointPart(name=part.name, folder=part.folder, digest=one.plan.digest)
            for part, one in zip(asked.parts, parts, strict=True)
        ),
        scores=_scores(asked, plan),
    )
    return PlannedJoint(directory=directory, joint=joint, plan=plan, parts=tuple(parts))


def _plan_part(
    part: Part, directory: Path, launcher: Launcher, machines: dict[bytes, Machine], *, only_plan: bool
) -> execution.PlannedExperiment:
    """`machines`: what is known of this machine already, by what was asked of it."""
    asked, experiment_dir = part.asked, directory / part.folder
    execution.check_new(asked, experiment_dir)
    questions = msgspec.json.encode(kind_of(asked.task).ask(asked))
    if questions not in machines:
        machines[questions] = execution.look_around(asked, directory, launcher, only_plan=only_plan)
    machine = machines[questions]
    return execution.PlannedExperiment(
        asked=asked, machine=machine, plan=execution.plan_on(machine, asked, part.folder),
        experiment_dir=experiment_dir,
    )


def _scores(asked: Parts, plan: AnalysisPlan) -> dict[str, tuple[float, float]]:
    """Worst and target outcome by part: as told, or the ends of the declared ranges where every part has both."""
    from esper_ab.external.scales import ranges_of, told_by_task  # which --help does not wait for

    if asked.scores:
        return ranges_of(plan.tasks, told_by_task(asked.scores))
    found = {}
    for scale in plan.scales:
        low, high = scale.outcome.low, scale.outcome.high
        if low is None or high is None:
            return {}
        found[scale.task] = (low, high) if scale.outcome.sign > 0.0 else (high, low)
    return found


def carry_out_joint(
    planned: PlannedJoint, launcher: Launcher, *, watched: bool, tracking: Tracking,
    begin: Callable[[str], None],
) -> None:  # fmt: skip
    """Write plan and settings, then carry out every part; `begin` is told each part's name before it starts.

    Nothing is left of a joint experiment whose plan cannot be written.
    """
    for one in planned.parts:
        check_launcher(launcher, one.plan.lanes, one.machine.devices)
    if is_leftover(planned.directory):
        clear(planned.directory)
    else:
        claim_new(planned.directory)
    settings = {one.experiment_dir.name: experiment_toml(one.plan, one.machine) for one in planned.parts}
    with ExitStack() as stack:
        with removed_on_failure(planned.directory):
            stack.enter_context(closing(Lock(planned.directory)))
            if tracking != Tracking():
                save_settings(planned.directory, tracking)  # for parts that `resume` begins
            write_joint(planned.directory, planned.joint, planned.plan, settings)
        for part, one in zip(planned.joint.parts, planned.parts, strict=True):
            begin(part.name)
            with resumed_as_a_whole(planned.directory, one.experiment_dir):
                execution.carry_out(replace(one, tracking=tracking), launcher, watched=watched)
            write_report(one.experiment_dir)


def launch_again(directory: Path, part: JointPart, launcher: Launcher, *, watched: bool) -> None:
    """Launch a part that never began, from its settings; UsageError where they or the user's code are others now.

    Nobody else does: the caller has the lock. So a folder without an event was left by somebody who was ended.
    """
    remove_folder_below(directory, part.folder)
    file = directory / f"{part.folder}.toml"
    asked = parse(read_request({"config": file}))
    planned = _plan_part(Part(name=part.folder, asked=asked), directory, launcher, {}, only_plan=False)
    if planned.plan.digest != part.digest:
        raise UsageError(
            f"{file}: the part {part.name} would be another experiment than the one that was planned: its settings or "
            "a reward, environment or trainer of yours were changed since; bring them back, or launch all of it anew"
        )
    tracking = read_settings(directory)
    execution.carry_out(replace(planned, tracking=tracking), launcher, watched=watched)


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Begin a refusal with the part that it is of."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name}: ", *error.args) from None


def resumed_as_a_whole(directory: Path, folder: Path) -> AbstractContextManager[None]:
    """Have an error name the command that goes on with all parts, not with the one in `folder`."""
    alone, whole = (shell_command("resume", path) for path in (folder, directory))
    return naming(whole, instead_of=alone)


def describe(planned: PlannedJoint) -> str:
    """Say what is asked over all parts, for the head of their plans."""
    from esper_ab.verdict.sentences import rule_sentence  # with scipy

    margins = "; ".join(
        f"{scale.task}: {scale.outcome.difference(f'{scale.margin:g}')}" for scale in planned.plan.scales
    )
    cost_s = sum(estimate(one.plan.experiment, one.plan.lanes, one.machine).duration_s for one in planned.parts)
    return "\n".join((
        f"{planned.directory}: {len(planned.parts)} parts, one after the other, and one answer over them",
        f"estimate of all parts: {duration(cost_s)}",
        f"margins: {margins}", f"rule over all parts: {rule_sentence(planned.plan.design)}",
        f"sha256 of the plan: {planned.plan.digest}",
    ))  # fmt: skip

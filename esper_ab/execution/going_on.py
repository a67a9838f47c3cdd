"""Continue an experiment, or a joint experiment, after an interruption, or add seeds to a finished experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from esper_ab.analysis.observe import progress_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import check_no_links
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.regular_file import NotRegular
from esper_ab.contracts.run_files import CHECKPOINTS, LOGS, POLICIES, RUNS
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.wording import counted
from esper_ab.control import experiment_run
from esper_ab.control.nodes import examine_nodes
from esper_ab.control.preflight import examine_here, reserve_lanes
from esper_ab.control.rules.looks import all_settled
from esper_ab.design.design import rule
from esper_ab.execution.answer import parse_requirements, write_report
from esper_ab.execution.experiment import make_observers
from esper_ab.execution.job import launch_again, resumed_as_a_whole
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import Lock
from esper_ab.launchers import Launcher
from esper_ab.live.console import waiting
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Extension
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.joint_directory import PLAN_NAME, is_joint, read_joint, refuse_joint
from esper_ab.settings.experiment import refuse_too_many
from esper_ab.settings.kernel import check_kernel

_WRITTEN_TO = (CHECKPOINTS, LOGS, POLICIES, RUNS, "tensorboard", "tracking")  # folders of an experiment


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The seeds that an extension would add, and the rule that would then apply."""

    experiment_dir: str
    more: int  # seeds to add
    replicates: int  # seeds in all
    groups: tuple[str, ...]  # groups that continue
    rule: str

    def __str__(self) -> str:
        return (
            f"{self.experiment_dir}: {counted(self.more, 'seed')} more, {self.replicates} in all, of "
            f"{', '.join(self.groups)}\nrule: {self.rule}"
        )


def check_resumable(
    experiment_dir: Path, seeds: int | None, requirements: Sequence[str], *, allow_changed_code: bool
) -> Preview | None:
    """Raise UsageError if the experiment cannot continue with this code. Nothing is started or written.

    `seeds` is the new total number of seeds for a finished experiment; the result then describes the extension.
    `requirements` are the conditions of --fail-unless.
    """
    if is_joint(experiment_dir):
        if seeds is not None:
            refuse_joint(experiment_dir, "resume --seeds")
        plan = read_plan(experiment_dir / PLAN_NAME)
        parse_requirements(requirements, plan.groups, plan.design.comparisons)
        return None
    history = load(experiment_dir).history
    if seeds is None:
        experiment_run.check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)
        parse_requirements(requirements, history.groups, history.design.comparisons)
        return None
    added = extension(experiment_dir, history, seeds)
    experiment_run.check_code(experiment_dir, history, allowed=allow_changed_code)
    parse_requirements(requirements, history.groups, history.design.comparisons)
    gone = {group for look in history.looks for group in look.leaving}
    return Preview(
        experiment_dir=str(experiment_dir),
        more=len(added.blocks),
        replicates=seeds,
        rule=rule(added.design),
        groups=tuple(group for group in history.groups if group not in gone),
    )


def resume(
    experiment_dir: Path,
    launcher: Launcher,
    *,
    seeds: int | None = None,
    watched: bool,
    allow_changed_code: bool = False,
    begin: Callable[[str], object] = str,
) -> None:
    """Train the remaining runs of an experiment, or extend a finished one to `seeds` seeds, in the same journal.

    For a joint experiment, train the remaining runs of each part, one part after the other; `begin` is called with the
    name of each part.
    """
    if is_joint(experiment_dir):
        _resume_joint(experiment_dir, launcher, watched=watched, allow_changed_code=allow_changed_code, begin=begin)
        return
    history = load(experiment_dir).history
    if seeds is None:
        experiment_run.check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)
    try:
        check_no_links(experiment_dir, _WRITTEN_TO)
    except NotRegular as error:
        remedy = "nothing is written through links; replace the link with the folder or file itself"
        raise UsageError(f"{error.filename} {error.strerror}, but {remedy}") from None
    _check_here(history, launcher, experiment_dir)
    with ExitStack() as stack:
        observers = make_observers(stack, experiment_dir, history.plan, history, watched=watched)
        if seeds is None:
            experiment_run.resume(experiment_dir, launcher, observers, allow_changed_code=allow_changed_code)
        else:
            experiment_run.extend(
                experiment_dir,
                lambda current: extension(experiment_dir, current, seeds),
                launcher,
                observers,
                allow_changed_code=allow_changed_code,
            )


def _resume_joint(
    directory: Path, launcher: Launcher, *, watched: bool, allow_changed_code: bool, begin: Callable[[str], object]
) -> None:
    """Resume unfinished parts, and launch parts that have not started; UsageError if all parts are finished."""
    joint = read_joint(directory)
    with closing(Lock(directory)):
        to_do = [part for part in joint.parts if not _finished(directory / part.folder)]
        if not to_do:
            report = shell_command("report", directory)
            raise UsageError(f"{directory}: every part of the experiment is finished; `{report}` shows the verdict")
        for part in to_do:
            begin(part.name)
            folder = directory / part.folder
            with resumed_as_a_whole(directory, folder):
                if begun(folder):
                    resume(folder, launcher, watched=watched, allow_changed_code=allow_changed_code)
                else:
                    launch_again(directory, part, launcher, watched=watched)
            write_report(folder)


def _finished(folder: Path) -> bool:
    """Whether a part of a joint experiment has begun and is finished."""
    return begun(folder) and load(folder).history.finished


def _check_here(history: History, launcher: Launcher, experiment_dir: Path) -> None:
    """Raise UsageError if the plan's devices or its arithmetic are not available for the remaining runs."""
    experiment = history.plan.experiment
    lanes = history.plan.lanes
    own_kernel = experiment.arithmetic.kernel != "torch"  # torch's version is checked by the audit
    placed = bool(launcher.nodes) or any(any(lane.titles) for lane in lanes)
    if not (own_kernel or placed):
        reserve_lanes(launcher, lanes)
        return
    questions = Questions(task=experiment.task, data_dir=experiment.data_dir, user_rewards=(), gpus=experiment.devices)
    with waiting("looking at this machine"):
        machine = examine_nodes(examine_here(questions, launcher), questions, launcher, experiment_dir)
    if own_kernel:
        check_kernel(experiment.arithmetic, machine)
    reserve_lanes(launcher, lanes, machine.devices if placed else ())


def extension(experiment_dir: Path, history: History, replicates: int) -> Extension:
    """Return the blocks to add for `replicates` seeds in all; UsageError if the experiment cannot be extended."""
    if not history.finished:
        word = history.ended.status if history.ended else "not finished"
        raise UsageError(f"{experiment_dir}: the experiment is {word}; only a finished experiment can be extended")
    if replicates <= history.replicates:
        there = f"{experiment_dir} already has {history.replicates} seeds"
        raise UsageError(f"--seeds {replicates}: {there}; give the new total number of seeds")
    refuse_too_many(len(history.plan.experiment.groups), replicates)
    if not history.design.comparisons:
        raise UsageError(f"{experiment_dir}: one group has no verdict to extend; launch it again with more seeds")
    if all_settled(progress_of(history)):
        over = "every comparison is decided, or was stopped for futility"
        raise UsageError(f"{experiment_dir}: {over}, so more seeds would decide nothing")
    return extend(history.plan, history.design, history.replicates, replicates - history.replicates)

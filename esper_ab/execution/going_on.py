"""Going on with an experiment: `resume_run` trains what is left, `extend_run` adds replicates to a finished one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.below import check_no_links
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.regular_file import NotRegular
from esper_ab.contracts.run_files import CHECKPOINTS, LOGS, POLICIES, RUNS
from esper_ab.control import experiment_run
from esper_ab.control.nodes import examine_nodes
from esper_ab.control.observers import Observer
from esper_ab.control.preflight import examine, reserve_lanes
from esper_ab.control.rules.looks import all_settled
from esper_ab.design.design import rule
from esper_ab.execution.experiment import make_observers
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.launchers import Launcher
from esper_ab.live.console import waiting
from esper_ab.plan.blocks import Extension, extend
from esper_ab.settings.kernel import check_kernel
from esper_ab.stats.text import counted

_WRITTEN_TO = (CHECKPOINTS, LOGS, POLICIES, RUNS, "tensorboard", "tracking")  # folders of an experiment


def unfinished(experiment_dir: Path, *, allow_changed_code: bool = False) -> History:
    """The history of an experiment that can be resumed, by this code; UsageError, nothing written, for any other."""
    history = load(experiment_dir).history
    experiment_run.check_resumable(experiment_dir, history, allow_changed_code=allow_changed_code)
    return history


def resume_run(
    experiment_dir: Path, launcher: Launcher, *, watched: bool, allow_changed_code: bool = False
) -> None:
    """Train what is left of an interrupted run and journal it in the same experiment directory."""
    history = unfinished(experiment_dir, allow_changed_code=allow_changed_code)
    with _taken_up(experiment_dir, history, launcher, watched=watched) as told:
        experiment_run.resume(experiment_dir, launcher, told, allow_changed_code=allow_changed_code)


@contextmanager
def _taken_up(
    experiment_dir: Path, history: History, launcher: Launcher, *, watched: bool
) -> Iterator[list[Observer]]:
    """Check where runs and trackers write, and what is left to train; while entered, the experiment is followed."""
    try:
        check_no_links(experiment_dir, _WRITTEN_TO)
    except NotRegular as error:
        remedy = "nothing is written behind a link: put the folder or file itself in its place"
        raise UsageError(f"{error.filename} {error.strerror}, and {remedy}") from None
    _check_here(history, launcher, experiment_dir)
    with ExitStack() as stack:
        yield make_observers(stack, experiment_dir, history.plan, history, watched=watched)


def _check_here(history: History, launcher: Launcher, experiment_dir: Path) -> None:
    """UsageError unless what is left can be trained on the devices and in the arithmetic of the plan."""
    experiment, lanes = history.plan.experiment, history.plan.lanes
    own_kernel = experiment.arithmetic.kernel != "torch"  # torch's version is the audit's business
    placed = bool(launcher.nodes) or any(any(lane.titles) for lane in lanes)
    if not (own_kernel or placed):
        reserve_lanes(launcher, lanes)
        return
    questions = Questions(
        task=experiment.task, data_dir=experiment.data_dir, user_rewards=(), gpus=experiment.devices
    )
    with waiting("looking at this machine"):
        machine = examine_nodes(examine(questions), questions, launcher, experiment_dir)
    if own_kernel:
        check_kernel(experiment.arithmetic, machine)
    reserve_lanes(launcher, lanes, machine.devices if placed else ())


def extension(experiment_dir: Path, history: History, replicates: int) -> Extension:
    """Blocks up to `replicates` in all; UsageError when the experiment cannot go on or has no need to."""
    if not history.finished:
        word = history.ended.status if history.ended else "not finished"
        raise UsageError(f"{experiment_dir}: the experiment is {word}; only a finished one can be extended")
    if replicates <= history.replicates:
        there = f"{experiment_dir} has {history.replicates} already"
        raise UsageError(f"--seeds {replicates}: {there}; name how many it is to have in all")
    if all_settled(history):
        over = "every comparison is decided or was stopped for futility"
        raise UsageError(f"{experiment_dir}: {over}; nothing is left that more could decide")
    return extend(history.plan, history.design, history.replicates, replicates - history.replicates)


def extend_run(
    experiment_dir: Path, replicates: int, launcher: Launcher, *, watched: bool, allow_changed_code: bool = False
) -> None:
    """Train replicates up to `replicates` in all and journal them in the same experiment directory."""
    history = load(experiment_dir).history
    with _taken_up(experiment_dir, history, launcher, watched=watched) as told:
        experiment_run.extend(
            experiment_dir, lambda there: extension(experiment_dir, there, replicates), launcher, told,
            allow_changed_code=allow_changed_code,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What `extend_run` would add, and the rule that would then decide."""

    experiment_dir: str
    more: int  # replicates
    replicates: int  # in all
    groups: tuple[str, ...]  # that go on
    rule: str

    def __str__(self) -> str:
        return (
            f"{self.experiment_dir}: {counted(self.more, 'seed')} more, {self.replicates} in all, of "
            f"{', '.join(self.groups)}\nrule: {self.rule}"
        )


def preview(experiment_dir: Path, replicates: int, *, allow_changed_code: bool = False) -> Preview:
    """Return what extending `experiment_dir` to `replicates` would add; starts and writes nothing.

    UsageError for a run that cannot be extended, or not by this code.
    """
    history = load(experiment_dir).history
    added = extension(experiment_dir, history, replicates)
    experiment_run.check_code(experiment_dir, history, allowed=allow_changed_code)
    gone = {group for look in history.looks for group in look.leaving}
    return Preview(
        experiment_dir=str(experiment_dir), more=len(added.blocks), replicates=replicates, rule=rule(added.design),
        groups=tuple(group for group in history.groups if group not in gone),
    )  # fmt: skip

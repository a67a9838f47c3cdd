"""Endpoints of experiment directories, one per task, so that a plan over several tasks can judge them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.external.endpoints import Endpoint, Endpoints
from esper_ab.external.scales import Scale
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import endpoint_of


def read_experiments(named: Sequence[tuple[str, Path]], scales: Sequence[Scale]) -> Endpoints:
    """Read the endpoints of (task, experiment directory) each; a replicate is called by its number, as a seed is.

    A replicate that was given up is lost in all of its runs that have no endpoint. UsageError where a task has no
    directory or two, and where an experiment measures in the other direction than the plan.
    """
    tasks = [task for task, _ in named]
    for scale in scales:
        if tasks.count(scale.task) != 1:
            what = f"task {scale.task} as TASK=EXPERIMENT, once" if scale.task else "one experiment directory"
            there = ", ".join(f"{task}={folder}" if task else str(folder) for task, folder in named)
            raise UsageError(f"the plan needs {what}, or all runs in one CSV file; there is {there}")
    rows = [row for task, folder in named for row in rows_of(task, folder, load(folder).history, scales)]
    return Endpoints(source=", ".join(str(folder) for _, folder in named), pair_column="replicate", rows=tuple(rows))


def rows_of(task: str, folder: Path, history: History, scales: Sequence[Scale]) -> Iterator[Endpoint]:
    """Yield the endpoints of the runs in `history`, which was read in `folder`; a run that is to come has no row."""
    for scale in scales:
        if scale.task == task and scale.outcome.sign != history.outcome.sign:
            raise UsageError(
                f"{folder}: of {history.outcome.label} {history.outcome.better} is better, and in the plan "
                f"{scale.outcome.better}"
            )
    for place, run in enumerate(history.runs.values()):
        if run.evaluation is None and not run.lost:
            continue  # not made yet, or not needed
        yield Endpoint(
            group=run.ref.group_id, replicate=str(run.ref.replicate), task=task, cluster="", row=place,
            value=endpoint_of(run, history.design.endpoint), cancelled=run.lost and not run.failed,
        )  # fmt: skip

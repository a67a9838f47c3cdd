"""Histories of several experiment directories, one per task -> the observations that one plan judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import rows_of
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.scale import Scale


def observe_parts(source: str, histories: Mapping[str, tuple[Path, History]], scales: Sequence[Scale]) -> Observations:
    """Return what was seen in `histories`, by task, with what their audits found; a replicate is called by its number.

    UsageError where an experiment measures in the other direction than the plan.
    """
    for scale in scales:
        folder, history = histories.get(scale.task, (Path(), None))
        if history is not None and scale.outcome.sign != history.outcome.sign:
            raise UsageError(
                f"{folder}: of {history.outcome.label} {history.outcome.better} is better, and in the plan "
                f"{scale.outcome.better}"
            )
    return Observations(
        source=source, pair_column="replicate",
        rows=tuple(row for task, (_, history) in histories.items() for row in rows_of(history, task)),
        facts={task: facts_of(history) for task, (_, history) in histories.items()},
    )  # fmt: skip


def read_experiments(named: Sequence[tuple[str, Path]], scales: Sequence[Scale]) -> Observations:
    """Read (task, experiment directory) each. UsageError where a task of the plan has no directory or two."""
    tasks = [task for task, _ in named]
    for scale in scales:
        if tasks.count(scale.task) != 1:
            what = f"task {scale.task} as TASK=EXPERIMENT, once" if scale.task else "one experiment directory"
            there = ", ".join(f"{task}={folder}" if task else str(folder) for task, folder in named)
            raise UsageError(f"the plan needs {what}, or all runs in one CSV file; there is {there}")
    source = ", ".join(str(folder) for _, folder in named)
    return observe_parts(source, {task: (folder, load(folder).history) for task, folder in named}, scales)

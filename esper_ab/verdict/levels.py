"""The level of an answer about items: these checkpoints, or trainings; and the rows that stand for it. Pure.

A level follows from the data. If each group has two runs or more, an answer may be about training, so a row is a run,
with the mean of its items; the scores below widen its interval. If a group is a single run, nothing can be said about
training, so the answer is about these checkpoints, and a row is an item.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.wording import counted
from esper_ab.stats.floats import Floats
from esper_ab.verdict.item_alignment import Aligned, align
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.items_below import GroupItems, ItemsBelow, Level, item_name
from esper_ab.verdict.level_words import reading
from esper_ab.verdict.names import Names
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs

_LEAST_TRAININGS = 2  # runs of each group from which an answer may be about training


def at_level(observations: Observations, level: Level | None, *, closed: bool = False) -> Observations:
    """Return the observations with a row per unit of inference at `level`; None: the level that follows from the data.

    `closed`: the answer is about these very items. Observations without items are returned as they are. Raises
    UsageError if they have none and the level needs them, or if the level and `closed` contradict each other.
    """
    table = observations.table
    if table is None:
        _refuse_without_items(observations, level, closed=closed)
        return observations
    aligned_tasks = {task: align(observations.source, table, task) for task in table.tasks}
    if not any(aligned.groups for aligned in aligned_tasks.values()):
        raise UsageError(f"{observations.source}: no row has an outcome, so nothing can be compared")
    level = level or _level_of(table, aligned_tasks)
    if closed and level == "checkpoints":
        raise UsageError(
            f"{observations.source}: ",
            SettingName("closed_items"),
            f" is for an answer about training, but this one is about checkpoints, whose {table.unit}s are the sample",
        )
    items = _items(table, aligned_tasks, level, closed=closed)
    if level == "trainings":
        rows = Runs.of(_rows_of_runs(aligned_tasks))
    else:
        rows = _rows_of_items(items, aligned_tasks)
        by_item = table.item_column if all(items.shared.values()) else ""
        observations = msgspec.structs.replace(observations, pair_column=by_item, run_column=table.item_column)
    return msgspec.structs.replace(
        observations,
        table=None,
        rows=rows,
        items=items,
        notes=(*observations.notes, *_notes(items)),
        reading=(*observations.reading, reading(items)),
    )


def _refuse_without_items(observations: Observations, level: Level | None, *, closed: bool) -> None:
    if closed or level == "checkpoints":
        setting = SettingName("closed_items") if closed else SettingName("level", level)
        raise UsageError(
            f"{observations.source}: ",
            setting,
            " needs items below the runs, but no column names them (item, question, prompt, …)",
        )


def _level_of(table: ItemTable, aligned_tasks: dict[str, Aligned]) -> Level:
    """Return the level that the numbers of runs allow: trainings if each group has two runs in some task."""
    most_runs = dict.fromkeys(table.groups, 0)
    for task_items in aligned_tasks.values():
        lost_groups = [run.group for run in task_items.lost]
        for group in table.groups:
            block = task_items.groups.get(group)
            runs = lost_groups.count(group) + (len(block.runs) if block else 0)
            most_runs[group] = max(most_runs[group], runs)
    return "trainings" if min(most_runs.values()) >= _LEAST_TRAININGS else "checkpoints"


def _items(table: ItemTable, aligned_tasks: dict[str, Aligned], level: Level, *, closed: bool) -> ItemsBelow:
    groups: dict[tuple[str, str], GroupItems] = {}
    for task, task_items in aligned_tasks.items():
        for group, block in task_items.groups.items():
            groups[group, task] = block
    return ItemsBelow(
        level=level,
        closed=closed,
        unit=table.unit,
        groups=groups,
        shared={task: task_items.shared for task, task_items in aligned_tasks.items()},
        repeats=(
            min(task_items.repeats[0] for task_items in aligned_tasks.values()),
            max(task_items.repeats[1] for task_items in aligned_tasks.values()),
        ),
        left_out={task: task_items.left_out for task, task_items in aligned_tasks.items()},
    )


def _rows_of_runs(aligned_tasks: dict[str, Aligned]) -> Iterator[Observation]:
    """Yield a row per run, with the mean of its items that were lost in no run."""
    for task, task_items in aligned_tasks.items():
        for group, block in task_items.groups.items():
            for run, mean in zip(block.runs, block.outcomes.tolist(), strict=True):
                yield Observation(
                    group=group,
                    replicate=run,
                    task=task,
                    run=run,
                    value=None if math.isnan(mean) else mean,
                    cluster=task_items.clusters_of_runs.get((group, run), ""),
                )
        yield from _rows_of_lost_runs(task_items)


def _rows_of_lost_runs(aligned_task: Aligned) -> Iterator[Observation]:
    for run in aligned_task.lost:
        yield Observation(group=run.group, replicate=run.run, task=run.task, run=run.run, value=None)


def _rows_of_items(items: ItemsBelow, aligned_tasks: dict[str, Aligned]) -> Runs:
    """Return a row per item of each group, with the mean over the group's runs; a group of lost runs has no items."""
    groups: list[str] = []
    tasks: list[str] = []
    names: list[Sequence[str]] = []
    means: list[Floats] = []
    for (group, task), block in items.groups.items():
        groups.append(group)
        tasks.append(task)
        names.append([item_name(task, name) for name in block.names] if task else block.names)
        means.append(block.scores.mean(axis=0))
    for task, task_items in aligned_tasks.items():
        for run in task_items.lost:
            if (run.group, task) not in items.groups:
                groups.append(run.group)
                tasks.append(task)
                names.append((run.run,))
                means.append(np.array([math.nan]))
    block_of_row = np.repeat(np.arange(len(means)), [of_block.size for of_block in means])
    runs = Runs.with_outcomes(Names.of(groups).taken(block_of_row), Names.in_blocks(names), np.concatenate(means))
    return replace(runs, task=Names.of(tasks).taken(block_of_row))


def _notes(items: ItemsBelow) -> Iterator[str]:
    """Say which items are left out, and that groups without a common item form no pairs."""
    for task, omitted_count in items.left_out.items():
        task_words = f" of {task}" if task else ""
        if omitted_count:
            omission_words = (
                "was not scored in all runs and is" if omitted_count == 1 else "were not scored in all runs and are"
            )
            yield f"{counted(omitted_count, items.unit)}{task_words} {omission_words} left out."
        if not items.shared[task]:
            yield f"The groups share no {items.unit}{task_words}, so their {items.unit}s form no pairs."

"""Put rows of items together: a table of runs and items per group and task, of items that all runs have. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted
from esper_ab.stats.floats import Floats, Ints, distinct
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.items_below import GroupItems

_LEAST_COMMON = 0.5  # of the items of the middle run: with fewer, some run was hardly evaluated


@dataclass(frozen=True, kw_only=True)
class LostRun:
    """A run without any score."""

    group: str
    run: str
    task: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """The items of one task that all of its runs have."""

    groups: dict[str, GroupItems]
    shared: bool  # all groups have the same items; False: no item is in all groups
    left_out: int  # items that not all runs have
    repeats: tuple[int, int]  # the fewest and the most rows of an item of a run
    lost: list[LostRun]
    clusters_of_runs: dict[tuple[str, str], str]  # cluster by group and run, if runs and not items are in clusters


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cells:
    """One score per run and item, sorted by run, then by item."""

    run: Ints  # [cells], from 0 on
    item: Ints  # [cells], as in the table
    score: Floats  # [cells], means of repeats; NaN: one of them was lost
    repeats: Ints  # [cells]
    group: Ints  # [runs], as in the table, as is the next
    name: Ints  # [runs]


def align(source: str, table: ItemTable, task: str) -> Aligned:
    """Return the items of `task` that all of its runs have.

    Raises UsageError if one run has so few items that most would be left out, or if a cluster is neither one of items
    nor one of runs.
    """
    rows = np.flatnonzero(table.task == table.tasks.index(task))
    keys, run = np.unique(table.group[rows] * len(table.runs) + table.run[rows], return_inverse=True)
    has_score = np.bincount(run, weights=np.isfinite(table.score[rows])) > 0.0
    scored_mask = has_score[run]
    lost_runs = [_lost_run(table, task, int(key)) for key in keys[~has_score]]
    cells = _cells(table, rows[scored_mask], (np.cumsum(has_score) - 1)[run[scored_mask]], keys[has_score])
    chosen_items, is_shared = _common(cells)
    _refuse_fragments(source, table, cells, chosen_items)
    item_clusters, run_clusters = _clusters(source, table, rows[scored_mask], run[scored_mask], keys)
    groups = {}
    common = _names(table, next(iter(chosen_items.values()))) if is_shared else None
    for number, group in enumerate(table.groups):
        if number in cells.group:
            names = common or _names(table, chosen_items[number])
            groups[group] = _group_items(table, cells, number, chosen_items[number], names, item_clusters)
    if is_shared and groups:
        used_mask = np.logical_and.reduce([block.used for block in groups.values()])
        groups = {group: replace(block, used=used_mask) for group, block in groups.items()}
    kept_count = distinct(np.concatenate([chosen_items[number] for number in np.unique(cells.group)])) if groups else 0
    return Aligned(
        groups=groups,
        shared=is_shared,
        left_out=distinct(cells.item) - kept_count,
        repeats=(int(cells.repeats.min()), int(cells.repeats.max())) if groups else (1, 1),
        lost=lost_runs,
        clusters_of_runs=run_clusters,
    )


def _lost_run(table: ItemTable, task: str, key: int) -> LostRun:
    group, run = divmod(key, len(table.runs))
    return LostRun(group=table.groups[group], run=table.runs[run], task=task)


def _cells(table: ItemTable, rows: Ints, run: Ints, keys: Ints) -> _Cells:
    """Average the repeats of each item of each run. `run`: of each row, its number among `keys`."""
    item_count = len(table.items)
    cells, cell, repeats = np.unique(run * item_count + table.item[rows], return_inverse=True, return_counts=True)
    sums = np.bincount(cell, weights=table.score[rows], minlength=cells.size)
    return _Cells(
        run=cells // item_count,
        item=cells % item_count,
        score=np.asarray(sums / repeats, dtype=np.float64),
        repeats=repeats,
        group=keys // len(table.runs),
        name=keys % len(table.runs),
    )


def _common(cells: _Cells) -> tuple[dict[int, Ints], bool]:
    """Return the items of each group: those that all runs have or, without any, that all runs of the group have."""
    numbers = [int(number) for number in np.unique(cells.group)]
    items, run_counts = np.unique(cells.item, return_counts=True)
    common_items = items[run_counts == cells.group.size]
    if common_items.size:
        return dict.fromkeys(numbers, common_items), True
    chosen_items = {}
    for number in numbers:
        group_cells = cells.group[cells.run] == number
        items, run_counts = np.unique(cells.item[group_cells], return_counts=True)
        chosen_items[number] = items[run_counts == np.sum(cells.group == number)]
    return chosen_items, False


def _refuse_fragments(source: str, table: ItemTable, cells: _Cells, chosen_items: dict[int, Ints]) -> None:
    """Raise UsageError if most items would be left out, which happens if one run has few of them."""
    if not cells.group.size:
        return
    scores_per_run = np.bincount(cells.run)
    kept_counts = np.array([chosen_items[int(group)].size for group in cells.group])
    if np.all(kept_counts >= _LEAST_COMMON * np.median(scores_per_run)):
        return
    fewest_index = int(np.argmin(scores_per_run))
    name = table.runs[cells.name[fewest_index]]
    run = f", run {name}," if name else ""
    raise UsageError(
        f"{source}: only {counted(int(kept_counts.min()), table.unit)} would be left that all runs have; group "
        f"{table.groups[cells.group[fewest_index]]}{run} has {counted(int(scores_per_run[fewest_index]), table.unit)} "
        "and others have up "
        f"to {int(scores_per_run.max())}; remove that run, or give it its missing {table.unit}s"
    )


def _clusters(
    source: str, table: ItemTable, rows: Ints, run: Ints, keys: Ints
) -> tuple[Ints, dict[tuple[str, str], str]]:
    """Return the cluster of each item of the table, and the cluster by run if clusters are those of runs.

    An item in no cluster has a number of its own.
    """
    row_clusters = table.cluster[rows]
    task = int(table.task[rows[0]]) if rows.size else 0
    own_clusters = np.arange(len(table.items)) + len(table.clusters) + task * len(table.items)
    if np.all(row_clusters < 0):
        return own_clusters, {}
    item_clusters = own_clusters.copy()
    named_mask = row_clusters >= 0
    item_clusters[table.item[rows][named_mask]] = row_clusters[named_mask]
    if np.array_equal(
        item_clusters[table.item[rows]], np.where(named_mask, row_clusters, own_clusters[table.item[rows]])
    ):
        return item_clusters, {}
    cluster_of_run = np.full(keys.size, -1)
    cluster_of_run[run] = row_clusters
    if not np.array_equal(cluster_of_run[run], row_clusters):
        raise UsageError(
            f"{source}: a cluster must be the same in all rows with the same {table.unit}, or in all rows of a run; "
            "here it is neither"
        )
    by_run = {}
    for key, cluster in zip(keys, cluster_of_run, strict=True):
        if cluster >= 0:
            group, name = divmod(int(key), len(table.runs))
            by_run[table.groups[group], table.runs[name]] = table.clusters[cluster]
    return own_clusters, by_run


def _names(table: ItemTable, items: Ints) -> tuple[str, ...]:
    return tuple(map(table.items.__getitem__, items.tolist()))


def _group_items(
    table: ItemTable, cells: _Cells, number: int, items: Ints, names: tuple[str, ...], clusters: Ints
) -> GroupItems:
    runs = np.flatnonzero(cells.group == number)
    wanted_mask = np.zeros(len(table.items), dtype=bool)
    wanted_mask[items] = True
    own_cells = (cells.group[cells.run] == number) & wanted_mask[cells.item]
    scores = cells.score[own_cells].reshape(runs.size, items.size)
    return GroupItems(
        runs=tuple(table.runs[name] for name in cells.name[runs]),
        names=names,
        scores=scores,
        clusters=clusters[items],
        used=np.isfinite(scores).all(axis=0),
    )

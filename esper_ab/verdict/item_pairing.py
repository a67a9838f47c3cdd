"""Find the scores on items of each comparison, beside its pairs or samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from esper_ab.design.design import Contrast
from esper_ab.stats.floats import Floats, Ints
from esper_ab.stats.pair import Pairs, Samples
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.compared_items import ComparedItems
from esper_ab.verdict.items_below import GroupItems, ItemsBelow, item_name
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import Lost
from esper_ab.verdict.scale import MEAN, Scale


def with_items(plan: AnalysisPlan, items: ItemsBelow | None, contrast: Contrast, pairing: Pairing) -> Pairing:
    """Return the pairing of a comparison with the scores below it; unchanged without scores, or if they are closed."""
    if items is None or items.closed:
        return pairing
    tasks = plan.tasks if contrast.task == MEAN else (contrast.task,)
    if any((group, task) not in items.groups for group in contrast.groups for task in tasks):
        return pairing
    if items.level == "trainings":
        return replace(pairing, items=items_of_runs(plan, items, contrast, tasks, pairing))
    if contrast.task == MEAN:
        return _mean_of_items(plan, items, contrast, paired=not isinstance(pairing.pairs, Samples))
    return replace(
        pairing, items=_items_of_checkpoints(plan, items, contrast, paired=not isinstance(pairing.pairs, Samples))
    )


def items_of_runs(
    plan: AnalysisPlan, items: ItemsBelow, contrast: Contrast, tasks: Sequence[str], pairing: Pairing
) -> ComparedItems:
    """Return the scores of the runs of both groups in `tasks`: by replicate, or in the order of unpaired samples."""
    sides = []
    for group in contrast.groups:
        blocks = [items.groups[group, task] for task in tasks]
        scores = _scores_by_replicate(blocks, _scales_of(plan, contrast), plan.replicates)
        if isinstance(pairing.pairs, Samples):
            scores = scores[np.isfinite(scores).all(axis=1)]
        for unit in pairing.clusters:
            replicate_places = [plan.replicates.index(name) for name in unit]
            scores[replicate_places[0]] = scores[replicate_places].mean(axis=0)
        sides.append(scores)
    a, b = contrast.groups
    return ComparedItems(
        level="trainings",
        shared=all(items.shared[task] for task in tasks),
        clusters=_clusters(items, a, tasks),
        clusters_b=_clusters(items, b, tasks),
        tasks=_tasks(items, a, tasks),
        tasks_b=_tasks(items, b, tasks),
        a=sides[0],
        b=sides[1],
    )


def _scales_of(plan: AnalysisPlan, contrast: Contrast) -> list[Scale | None]:
    """Return the scale of each task in the mean over tasks; None for a single task, whose scores keep their unit."""
    if contrast.task == MEAN:
        return list(plan.scales)
    return [None]


def _scaled(scores: Floats, scale: Scale | None) -> Floats:
    if scale is None:
        return scores
    return np.asarray(scale.outcome.sign * scores / scale.margin, dtype=np.float64)


def _scores_by_replicate(
    blocks: Sequence[GroupItems], scales: Sequence[Scale | None], replicates: Sequence[str]
) -> Floats:
    """Return the scores [replicates, items of all tasks]; NaN for a replicate that lacks a run in some task."""
    place = {name: number for number, name in enumerate(replicates)}
    tables = []
    for block, scale in zip(blocks, scales, strict=True):
        table = np.full((len(replicates), int(block.used.sum())), np.nan)
        known_runs = [number for number, run in enumerate(block.runs) if run in place]
        table[[place[block.runs[number]] for number in known_runs]] = _scaled(
            block.scores[known_runs][:, block.used], scale
        )
        tables.append(table)
    scores = np.concatenate(tables, axis=1)
    scores[~np.isfinite(scores).all(axis=1)] = np.nan
    return scores


def _clusters(items: ItemsBelow, group: str, tasks: Sequence[str]) -> Ints:
    blocks = [items.groups[group, task] for task in tasks]
    return np.concatenate([block.clusters[block.used] for block in blocks])


def _tasks(items: ItemsBelow, group: str, tasks: Sequence[str]) -> Ints | None:
    if len(tasks) == 1:
        return None
    sizes = [int(items.groups[group, task].used.sum()) for task in tasks]
    return np.repeat(np.arange(len(tasks)), sizes)


def _items_of_checkpoints(plan: AnalysisPlan, items: ItemsBelow, contrast: Contrast, *, paired: bool) -> ComparedItems:
    """Return the clusters of the items: by replicate if items form pairs, else in the order of the samples."""
    task = contrast.task
    block_a, block_b = (items.groups[group, task] for group in contrast.groups)
    items_a = _items_by_replicate(block_a, task, plan.replicates)
    items_b = items_a
    if block_b.names is not block_a.names:
        items_b = _items_by_replicate(block_b, task, plan.replicates)
    sides = []
    for block, item in ((block_a, items_a), (block_b, items_b)):
        if paired:
            sides.append(_clusters_by_place(block, item))
        else:
            scored_mask = np.asarray(np.isfinite(block.scores).all(axis=0), dtype=np.bool_)
            sides.append(block.clusters[item[(item >= 0) & scored_mask[item]]])
    return ComparedItems(
        level="checkpoints", shared=paired, clusters=sides[0], clusters_b=sides[1], tasks=None, tasks_b=None
    )


def _items_by_replicate(block: GroupItems, task: str, replicates: Sequence[str]) -> Ints:
    """Return which item of the block each replicate is; -1 for one that is no item of this task."""
    names = [item_name(task, name) for name in block.names] if task else block.names
    number = dict(zip(names, range(len(names)), strict=True))
    return np.fromiter(map(number.get, replicates, repeat(-1)), dtype=np.int64, count=len(replicates))


def _clusters_by_place(block: GroupItems, item: Ints) -> Ints:
    """Return the cluster of each replicate; a number below 0 of its own for one that is no item of this task."""
    return np.where(item >= 0, block.clusters[item], -1 - np.arange(item.size))


def _mean_of_items(plan: AnalysisPlan, items: ItemsBelow, contrast: Contrast, *, paired: bool) -> Pairing:
    """Return the items of all tasks, in units of the margins, weighted so that each task has the same share.

    The mean over all of these items is then the mean of the tasks' means. Items that a group lost are left out.
    """
    a, b = (_weighted(plan, items, group) for group in contrast.groups)
    if not paired:
        compared_items = ComparedItems(
            level="checkpoints",
            shared=False,
            clusters=a.clusters,
            clusters_b=b.clusters,
            tasks=a.tasks,
            tasks_b=b.tasks,
        )
        return Pairing(pairs=Samples(a=a.values, b=b.values), lost=Lost(paired=False), items=compared_items)
    place = {name: number for number, name in enumerate(plan.replicates)}
    item_places = np.array([place[name] for name in a.names], dtype=np.int64)
    tasks = np.zeros(len(plan.replicates), dtype=np.int64)
    tasks[item_places] = a.tasks
    clusters = -1 - np.arange(len(plan.replicates))
    clusters[item_places] = a.clusters
    pairs = Pairs(
        replicate=item_places,
        a=a.values,
        b=b.values,
        position_a=np.zeros_like(item_places),
        position_b=np.ones_like(item_places),
    )
    compared_items = ComparedItems(
        level="checkpoints", shared=True, clusters=clusters, clusters_b=clusters, tasks=tasks, tasks_b=tasks
    )
    return Pairing(pairs=pairs, lost=Lost(), items=compared_items)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighted:
    """The used items of one group in all tasks."""

    names: list[str]
    values: Floats  # [items]; their mean is the mean of the tasks' means
    clusters: Ints  # [items]
    tasks: Ints  # [items]


def _weighted(plan: AnalysisPlan, items: ItemsBelow, group: str) -> _Weighted:
    blocks = [items.groups[group, scale.task] for scale in plan.scales]
    used_counts = [int(block.used.sum()) for block in blocks]
    names = []
    values = []
    for block, scale, count in zip(blocks, plan.scales, used_counts, strict=True):
        names += [item_name(scale.task, name) for name, is_used in zip(block.names, block.used, strict=True) if is_used]
        weight = sum(used_counts) / (len(blocks) * max(1, count))
        values.append(weight * _scaled(block.scores[:, block.used].mean(axis=0), scale))
    return _Weighted(
        names=names,
        values=np.concatenate(values),
        clusters=np.concatenate([block.clusters[block.used] for block in blocks]),
        tasks=np.repeat(np.arange(len(blocks)), used_counts),
    )

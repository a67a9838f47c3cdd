"""Scores of runs on items (questions, prompts, scenes, episodes): the raw data below the outcomes of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, Ints, floats


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemScores:
    """The scores of one comparison. Every run of a group has a score on every item of its group.

    If `shared`, column i is the same item in both groups, and `clusters` and `tasks` hold for both; otherwise b has
    `clusters_b` and, with tasks, `tasks_b`. A number of a cluster stands for the same cluster wherever it occurs, so
    groups that share no cluster must not share a number.
    """

    a: Floats  # [runs_a, items_a]
    b: Floats  # [runs_b, items_b]
    shared: bool
    paired: bool  # row r is the same seed in both
    clusters: Ints  # [items_a]; items of one cluster vary together
    tasks: Ints | None = None  # [items_a]; an outcome is then the mean of its tasks' means; None: one task
    clusters_b: Ints | None = None  # [items_b]
    tasks_b: Ints | None = None  # [items_b]

    def __post_init__(self) -> None:
        """Raise ValueError if shapes do not fit, or a score is not finite."""
        for scores in (self.a, self.b):
            if scores.ndim != 2 or not scores.size:
                raise ValueError(f"scores must be runs x items, not of shape {scores.shape}")
            if not np.isfinite(scores).all():
                raise ValueError("scores must be finite")
        if self.paired and len(self.a) != len(self.b):
            raise ValueError(f"paired groups must have equally many runs, not {len(self.a)} and {len(self.b)}")
        if self.shared != (self.clusters_b is None) or (self.shared and self.tasks_b is not None):
            raise ValueError("groups that share no items, and only these, have clusters and tasks of their own")
        if (self.tasks is None) != (self.tasks_of_b is None):
            raise ValueError("both groups must have tasks, or neither")
        _check_columns(self.a, self.clusters, self.tasks)
        _check_columns(self.b, self.clusters_of_b, self.tasks_of_b)
        if self.tasks is not None and self.tasks_b is not None:
            _check_same(self.tasks, self.tasks_b)

    @property
    def clusters_of_b(self) -> Ints:
        """The cluster of each item of b."""
        return self.clusters if self.clusters_b is None else self.clusters_b

    @property
    def tasks_of_b(self) -> Ints | None:
        """The task of each item of b; None: one task."""
        return self.tasks if self.shared else self.tasks_b


def shared_items(
    a: ArrayLike, b: ArrayLike, *, paired: bool, clusters: ArrayLike | None = None, tasks: ArrayLike | None = None
) -> ItemScores:
    """Make the scores of a [runs_a, items], b [runs_b, items] on the same items; default: every item is a cluster."""
    x = floats(a)
    return ItemScores(
        a=x,
        b=floats(b),
        shared=True,
        paired=paired,
        clusters=_ints(np.arange(x.shape[-1]) if clusters is None else clusters),
        tasks=None if tasks is None else _ints(tasks),
    )


def own_items(
    a: ArrayLike,
    b: ArrayLike,
    *,
    paired: bool,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
    tasks: tuple[ArrayLike, ArrayLike] | None = None,
) -> ItemScores:
    """Make the scores of a [runs_a, items_a] and b [runs_b, items_b], which have no item in common."""
    x = floats(a)
    y = floats(b)
    if clusters is None:
        numbers = np.arange(x.shape[-1] + y.shape[-1])
        clusters = (numbers[: x.shape[-1]], numbers[x.shape[-1] :])
    return ItemScores(
        a=x,
        b=y,
        shared=False,
        paired=paired,
        clusters=_ints(clusters[0]),
        tasks=None if tasks is None else _ints(tasks[0]),
        clusters_b=_ints(clusters[1]),
        tasks_b=None if tasks is None else _ints(tasks[1]),
    )


def item_weights(scores: Floats, tasks: Ints | None) -> Floats:
    """Return the relative weight [items] of each item in the outcome of a run: 1 on average, and the same per task."""
    number = scores.shape[1]
    if tasks is None:
        return np.ones(number)
    _, task, items = np.unique(tasks, return_inverse=True, return_counts=True)
    return np.asarray(number / (items.size * items[task]), dtype=np.float64)


def _check_columns(scores: Floats, clusters: Ints | None, tasks: Ints | None) -> None:
    for numbers in (clusters, tasks):
        if numbers is not None and numbers.shape != scores.shape[1:]:
            raise ValueError(f"there must be one number per item, not {numbers.shape} for scores of {scores.shape}")


def _check_same(tasks_a: Ints, tasks_b: Ints) -> None:
    if not np.array_equal(np.unique(tasks_a), np.unique(tasks_b)):
        raise ValueError("both groups must have the same tasks")


def _ints(numbers: ArrayLike) -> Ints:
    return np.asarray(numbers, dtype=np.int64)

"""The variance of a difference from the choice of items, and from the noise of single scores.

The first is the delete-one-cluster jackknife (Efron & Stein 1981; "CR3", Bell & McCaffrey 2002): (K - 1) / K times the
sum over K clusters of the squared change of the difference without that cluster. For clusters of one size it equals
K / (K - 1) times the sum of the squared cluster sums of the deviations, divided by the squared number of items. That
formula does not account for the leverage of large clusters, so its tests err more often (docs/evidence/item-rates.md).

Tasks are strata: an outcome is the mean of its tasks' means, so the variances of tasks add up. Groups with different
items are strata, too. Strata that have a cluster in common are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esper_ab.stats.floats import Floats, Ints, floats
from esper_ab.stats.item_scores import ItemScores, item_weights


@dataclass(frozen=True, kw_only=True)
class ItemVariance:
    """The variance of the difference of two groups from the choice of clusters of items."""

    variance: float
    df: float  # of Satterthwaite; 0 if the variance is 0


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """The items of both groups, once if they are shared, numbered from 0 by stratum and by cluster."""

    deviations: Floats  # [columns] from the mean of the stratum, times the item's share of the difference
    weights: Floats  # [columns]; relative
    strata: Ints  # [columns]
    clusters: Ints  # [columns]


def item_variance(scores: ItemScores) -> ItemVariance | None:
    """Return the variance from the choice of clusters; None if a stratum has one cluster.

    None also if one cluster has so many of the items that less than one degree of freedom is left.
    """
    columns = _columns(scores)
    cells = columns.strata * (columns.clusters.max() + 1) + columns.clusters
    _, first_columns, cell = np.unique(cells, return_index=True, return_inverse=True)
    strata = columns.strata[first_columns]  # [cells], as are the following
    if np.bincount(strata).min() < 2:
        return None
    clusters = columns.clusters[first_columns]
    weights = np.bincount(cell, weights=columns.weights)
    sums = np.bincount(cell, weights=columns.deviations)
    other_weights = np.bincount(strata, weights=weights)[strata] - weights
    changes = np.bincount(clusters, weights=sums * (weights + other_weights) / other_weights)  # [clusters]
    joined_strata = _joined(strata, clusters)
    stratum_of_cluster = np.empty(changes.size, dtype=np.int64)
    stratum_of_cluster[clusters] = joined_strata[strata]
    number = np.bincount(stratum_of_cluster)
    squares = np.bincount(stratum_of_cluster, weights=changes**2)
    df = _effective(floats(np.bincount(clusters, weights=weights)), stratum_of_cluster) - 1.0
    variances = squares * (number - 1) / number
    total = float(variances.sum())
    if total == 0.0:
        return ItemVariance(variance=0.0, df=0.0)
    df_total = float(df[0])
    if df.size > 1:
        df_total = 1.0 / float(np.sum((variances / total) ** 2 / df))
    if df_total < 1.0:
        return None
    return ItemVariance(variance=total, df=df_total)


def residual_variance(scores: ItemScores) -> float | None:
    """Return the variance of the difference from the noise of single scores; None if a group has one run.

    It comes from the interaction of runs and items: of the differences within pairs, or else of each group.
    """
    if scores.paired and scores.shared:
        return _interaction(scores.a - scores.b, scores.tasks)
    variance_a = _interaction(scores.a, scores.tasks)
    variance_b = _interaction(scores.b, scores.tasks_of_b)
    if variance_a is None or variance_b is None:
        return None
    return variance_a + variance_b


def effective_clusters(clusters: Ints, weights: Floats) -> float:
    """Return how many clusters of equal weight would vary as much as the `clusters` [items] with these `weights`."""
    _, cluster = np.unique(clusters, return_inverse=True)
    cluster_weights = floats(np.bincount(cluster, weights=weights))
    return float(_effective(cluster_weights, np.zeros(cluster_weights.size, dtype=np.int64))[0])


def _effective(weights: Floats, groups: Ints) -> Floats:
    """Return the effective number of clusters [groups] with these `weights` [clusters], each in one of `groups`."""
    sums = np.bincount(groups, weights=weights)
    return np.asarray(sums**2 / np.bincount(groups, weights=weights**2), dtype=np.float64)


def _columns(scores: ItemScores) -> _Columns:
    weights_a = item_weights(scores.a, scores.tasks)
    mean_a = scores.a.mean(axis=0)
    mean_b = scores.b.mean(axis=0)
    tasks_a = _numbered(scores.tasks, mean_a.size)
    if scores.shared:
        deviations = weights_a * _centred(mean_a - mean_b, tasks_a) / mean_a.size
        return _Columns(
            deviations=deviations,
            weights=weights_a,
            strata=tasks_a,
            clusters=_numbered(scores.clusters, mean_a.size),
        )
    weights_b = item_weights(scores.b, scores.tasks_of_b)
    tasks_b = _numbered(scores.tasks_of_b, mean_b.size)
    all_clusters = np.concatenate([scores.clusters, scores.clusters_of_b])
    deviations_a = weights_a * _centred(mean_a, tasks_a) / mean_a.size
    deviations_b = -weights_b * _centred(mean_b, tasks_b) / mean_b.size
    return _Columns(
        deviations=np.concatenate([deviations_a, deviations_b]),
        weights=np.concatenate([weights_a * mean_b.size, weights_b * mean_a.size]),  # each group has half of all
        strata=np.concatenate([tasks_a, tasks_a.max() + 1 + tasks_b]),
        clusters=_numbered(all_clusters, all_clusters.size),
    )


def _numbered(numbers: Ints | None, items: int) -> Ints:
    """Return `numbers` [items] as numbers from 0 on, without gaps; zeros for None."""
    if numbers is None:
        return np.zeros(items, dtype=np.int64)
    return np.asarray(np.unique(numbers, return_inverse=True)[1], dtype=np.int64)


def _centred(values: Floats, tasks: Ints) -> Floats:
    """Return `values` [items] as deviations from the means of their `tasks`."""
    means = np.bincount(tasks, weights=values) / np.bincount(tasks)
    return np.asarray(values - means[tasks], dtype=np.float64)


def _joined(strata: Ints, clusters: Ints) -> Ints:
    """Return a number [strata] that is the same for strata with a cluster in common, directly or through others."""
    label = np.arange(strata.max() + 1)
    while True:
        label_of_cluster = np.full(clusters.max() + 1, label.size)
        np.minimum.at(label_of_cluster, clusters, label[strata])
        smaller_label = label.copy()
        np.minimum.at(smaller_label, strata, label_of_cluster[clusters])
        if np.array_equal(smaller_label, label):
            return _numbered(label, label.size)
        label = smaller_label


def _interaction(values: Floats, tasks: Ints | None) -> float | None:
    """Return the variance of the mean of `values` [runs, items] from the interaction of runs and items within tasks."""
    runs = len(values)
    if runs < 2:
        return None
    task = _numbered(tasks, values.shape[1])
    items = np.bincount(task)
    if items.min() < 2:
        return None
    item_effects = _centred(values.mean(axis=0), task)
    item_squares = np.zeros(values.shape[1])
    for run in values:
        item_squares += (_centred(run, task) - item_effects) ** 2
    squares = np.bincount(task, weights=item_squares)
    variance_per_score = squares / ((runs - 1) * (items - 1))
    return float(np.sum(variance_per_score / (runs * items)) / items.size**2)

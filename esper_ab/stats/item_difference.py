"""The difference of two groups on items like these, for these checkpoints or for new training runs.

For `checkpoints`, only the choice of items varies: t = D / sqrt(V_items). For `trainings`, runs vary, too. The variance
of the runs' means and that from the choice of items both contain the noise of single scores, so it is subtracted once:
V = max(V_runs + V_items - V_residual, V_runs, V_items), with the degrees of freedom of Satterthwaite (1946). With fewer
than six runs in a group these are too many, because V_runs may be small by chance; then they are averaged harmonically,
weighted by variance (docs/evidence/item-rates.md).
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.distributions import t_isf, t_sf
from esper_ab.stats.floats import Floats, Ints, distinct, exact_sum
from esper_ab.stats.item_scores import ItemScores, item_weights
from esper_ab.stats.item_variance import effective_clusters, item_variance, residual_variance
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.rounding import degenerate, resolution, rests_on_few, steady
from esper_ab.stats.welch import welch

ItemLevel = Literal["checkpoints", "trainings"]
LEAST_RUNS = 3  # with two runs in a group, no interval covers the difference often enough


class ItemDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two groups with its t-test. Fields are None if the data cannot show them."""

    level: ItemLevel
    name: str  # of the test
    mean: float
    se: float | None
    df: float  # 0 without a test
    t: float | None
    p: float | None  # two-sided
    items: int  # of the group with fewer, as are the clusters
    clusters: int
    effective_clusters: float  # of equal weight
    runs_a: int
    runs_b: int
    v_items: float | None  # variance of the mean from the choice of items; None: a task has one cluster only
    v_runs: float | None  # from the choice of runs, on these items; None: without a test of the runs' means
    v_residual: float | None  # from the noise of single scores, which is in both; None: a group has one run
    df_items: float
    df_runs: float

    @property
    def degenerate(self) -> bool:
        """True if there are several clusters and runs, but no t-test is possible because they vary too little."""
        enough = self.level == "checkpoints" or min(self.runs_a, self.runs_b) >= LEAST_RUNS
        return self.t is None and self.v_items is not None and enough

    def interval(self, p: float) -> tuple[float, float] | None:
        """Return the differences that the t-test does not reject at two-sided `p`; None if there is no t."""
        if self.se is None:
            return None
        half_width = float(t_isf(p / 2.0, self.df)) * self.se
        return self.mean - half_width, self.mean + half_width

    def log_evidence(self) -> None:
        """Return None: there is no anytime-valid test."""
        return

    def anytime_interval(self, evidence: float) -> None:
        """Return None: there is no anytime-valid interval."""
        return


def item_difference(scores: ItemScores, level: ItemLevel) -> ItemDifference:
    """Estimate and test the difference of two groups at `level`.

    There is no test if a task has one cluster only, and if clusters (checkpoints) or runs (trainings) vary too little
    or too few of them differ. Trainings need LEAST_RUNS runs in both groups.
    """
    weights_a = item_weights(scores.a, scores.tasks)
    weights_b = item_weights(scores.b, scores.tasks_of_b)
    outcomes_a = scores.a @ weights_a / weights_a.size
    outcomes_b = scores.b @ weights_b / weights_b.size
    by_items = item_variance(scores)
    by_runs = _compare_runs(outcomes_a, outcomes_b, paired=scores.paired)
    untested = ItemDifference(
        level=level,
        name=_name(scores, level),
        mean=exact_sum(outcomes_a) / outcomes_a.size - exact_sum(outcomes_b) / outcomes_b.size,
        se=None,
        df=0.0,
        t=None,
        p=None,
        items=min(weights_a.size, weights_b.size),
        clusters=min(distinct(scores.clusters), distinct(scores.clusters_of_b)),
        effective_clusters=min(
            effective_clusters(scores.clusters, weights_a), effective_clusters(scores.clusters_of_b, weights_b)
        ),
        runs_a=outcomes_a.size,
        runs_b=outcomes_b.size,
        v_items=None if by_items is None else by_items.variance,
        v_runs=None if by_runs is None or by_runs.se is None else by_runs.se**2,
        v_residual=residual_variance(scores),
        df_items=0.0 if by_items is None else by_items.df,
        df_runs=0.0 if by_runs is None or by_runs.se is None else by_runs.df,
    )
    if level == "trainings":
        return _test_trainings(untested)
    return _test_items(untested, scores)


def _compare_runs(a: Floats, b: Floats, *, paired: bool) -> AdjustedDifference | None:
    """Test the outcomes of runs as if the items were fixed."""
    if paired:
        return adjusted_difference(a, b, np.zeros((a.size, 2), dtype=np.int64), 1)
    return welch(a, b)


def _name(scores: ItemScores, level: ItemLevel) -> str:
    if level == "trainings":
        return "t over runs and items"
    each_alone = distinct(scores.clusters) == scores.clusters.size
    if scores.clusters_b is not None:
        each_alone = each_alone and distinct(scores.clusters_b) == scores.clusters_b.size
    return "t over items" if each_alone else "t over clusters of items"


def _test_trainings(untested: ItemDifference) -> ItemDifference:
    """Add the test about new runs and new items, if the components allow one."""
    v_items = untested.v_items
    v_runs = untested.v_runs
    fewest_runs = min(untested.runs_a, untested.runs_b)
    if v_items is None or v_runs is None or fewest_runs < LEAST_RUNS:
        return untested
    variance = max(v_runs + v_items - (untested.v_residual or 0.0), v_runs, v_items)
    parts = [(v_runs / variance, untested.df_runs)]
    if v_items > 0.0:
        parts.append((v_items / variance, untested.df_items))
    if fewest_runs < LEAST_PAIRS:
        inverse_df = math.fsum(share / df for share, df in parts)
    else:
        inverse_df = math.fsum(share**2 / df for share, df in parts)
    return _add_test(untested, variance, 1.0 / inverse_df)


def _test_items(untested: ItemDifference, scores: ItemScores) -> ItemDifference:
    """Add the test about these checkpoints on new items, if their clusters vary."""
    if untested.v_items is None or _has_no_spread(untested, scores):
        return untested
    return _add_test(untested, untested.v_items, untested.df_items)


def _add_test(untested: ItemDifference, variance: float, df: float) -> ItemDifference:
    se = math.sqrt(variance)
    t = untested.mean / se
    return msgspec.structs.replace(untested, se=se, df=df, t=t, p=float(2.0 * t_sf(abs(t), df)))


def _has_no_spread(untested: ItemDifference, scores: ItemScores) -> bool:
    """True if the clusters are one number but for rounding, or too few of them differ from the others."""
    # the second holds if each of several tasks has one difference
    if not untested.v_items or math.sqrt(untested.v_items) <= resolution(scores.a.mean(axis=0)):
        return True
    names_a, a = _cluster_means(scores.a, scores.clusters)
    names_b, b = _cluster_means(scores.b, scores.clusters_of_b)
    if np.array_equal(names_a, names_b):
        return degenerate(a, b)
    return rests_on_few([*a, *b]) or (steady(a, untested.mean) and steady(b, untested.mean))


def _cluster_means(values: Floats, clusters: Ints) -> tuple[Ints, Floats]:
    """Return the numbers of the clusters and the mean score [clusters] of each."""
    names, cluster, items = np.unique(clusters, return_inverse=True, return_counts=True)
    sums = np.bincount(cluster, weights=values.mean(axis=0))
    return names, np.asarray(sums / items, dtype=np.float64)

"""Several tasks with their mean under one alpha, and pairs in clusters: what outcomes of runs made elsewhere have.

Differences are in points, and every task has the margin of the other rules: in units of margins nothing else differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from esper_ab.design.design import Design
from esper_ab.readers.external_plan import scales_of
from esper_ab.verdict.analysis_plan import Rule, design_over
from esper_ab.verdict.vocabulary import MEAN
from simulation import laws, procedure
from simulation.laws import Array, Law, Size
from simulation.rules import MARGIN

LAWS = (laws.LAWS[0], laws.LAWS[1], laws.LAWS[2], *laws.SHAPES)
# True differences of the first group in each task, in margins
PATTERNS: dict[str, Callable[[int], float]] = {
    "one task up by one": lambda task: float(task == 0),
    "two up and two down in turn, equal in the mean": lambda task: (2.0, -2.0)[task % 2],
    "all up by one": lambda task: 1.0,
    "0, 1, 2 in turn": lambda task: float(task % 3),
}
WAYS = ("means", "pairs")
BESTS = ("fresh seeds", "the seeds that chose")
CELLS, CHOOSING, JUDGED = 8, 10, 10
_CLUSTER_SHARE = 2.0 / 3.0  # of the variance of differences that a cluster has in common


@dataclass(frozen=True)
class Family:
    """A plan of several tasks."""

    name: str
    tasks: int
    replicates: int
    groups: int = 2
    one_look: bool = False  # at the end, as a launch over several tasks or cells has it


@dataclass(frozen=True)
class Clustering:
    """Pairs per cluster."""

    name: str
    sizes: tuple[int, ...]


RULES = (
    Family("2 tasks, 10 seeds", 2, 10),
    Family("2 tasks, 20 seeds", 2, 20),
    Family("4 tasks, 20 seeds", 4, 20),
    Family("8 tasks, 20 seeds", 8, 20),
    Family("2 tasks, all pairs of 3, 20 seeds", 2, 20, groups=3),
    Family("2 tasks, 10 seeds, launched", 2, 10, one_look=True),
    Family("4 tasks, 20 seeds, launched", 4, 20, one_look=True),
)
CLUSTERINGS = (
    Clustering("8 clusters of 3 pairs", (3,) * 8),
    Clustering("8 clusters of 1 to 8 pairs", tuple(range(1, 9))),
    Clustering("20 clusters, 10 of 1 and 10 of 5 pairs", (1, 5) * 10),
)


@lru_cache
def _design(family: Family) -> Design:
    """What the planner makes of it; its margin is that of every task and of the mean, in points here."""
    names = tuple("abc"[: family.groups])
    scales = scales_of(tuple(f"task {task}" for task in range(family.tasks)), MARGIN)
    rule = Rule(looks=(family.replicates,)) if family.one_look else Rule()
    found = design_over(names, family.replicates, scales, rule)
    return _in_points(found)


def _in_points(design: Design) -> Design:
    fields = {name: getattr(design, name) for name in design.__struct_fields__}
    return Design(**fields | {"margin": MARGIN})


def _duels(family: Family) -> list[tuple[int, int]]:
    return [(a, b) for a in range(family.groups) for b in range(a + 1, family.groups)]


def differences(family: Family, law: Law, rho: float, count: int, common: float, rng: np.random.Generator) -> Array:
    """[N, m, R] without effects, in the order of the plan: duels by task, then of the mean. `common` to all tasks."""
    size = Size(count, family.replicates, family.groups * (family.tasks + 1))
    drawn = laws.outcomes(law, rho, size, rng).reshape(count, family.tasks + 1, family.groups, family.replicates)
    of_tasks = math.sqrt(1.0 - common) * drawn[:, 1:] + math.sqrt(common) * drawn[:, :1]
    by_task = np.stack([of_tasks[:, :, a] - of_tasks[:, :, b] for a, b in _duels(family)], axis=2)  # [N, T, duels, R]
    every = np.concatenate([by_task, by_task.mean(axis=1, keepdims=True)], axis=1)
    return np.asarray(every.reshape(count, -1, family.replicates))


def truths(family: Family, multiple: Callable[[int], float]) -> Array:
    """[m]: true differences, points, where the first group is up by `multiple` margins in each task."""
    first = [a == 0 for a, _ in _duels(family)]
    by_task = np.array([[MARGIN * multiple(task) * one for one in first] for task in range(family.tasks)])
    return np.concatenate([by_task.ravel(), by_task.mean(axis=0)])


def follow(family: Family, d: Array) -> procedure.Courses:
    """The courses of all comparisons."""
    design = _design(family)
    assert len(design.comparisons) == d.shape[1]
    assert [contrast.task == MEAN for contrast in design.comparisons] == [
        place >= len(_duels(family)) * family.tasks for place in range(d.shape[1])
    ]  # fmt: skip
    return procedure.follow(design, d, [[(0, 1)] * family.replicates] * d.shape[1], family.replicates)


def clustered(clustering: Clustering, law: Law, count: int, rng: np.random.Generator) -> dict[str, Array]:
    """[N, units] without a difference: the means of clusters, and all pairs."""
    clusters, pairs = len(clustering.sizes), sum(clustering.sizes)
    drawn = laws.outcomes(law, 0.0, Size(count, clusters + pairs, 2), rng)
    d = drawn[:, 0] - drawn[:, 1]
    home = np.repeat(np.arange(clusters), clustering.sizes)
    of_pairs = math.sqrt(_CLUSTER_SHARE) * d[:, :clusters][:, home]
    of_pairs = of_pairs + math.sqrt(1.0 - _CLUSTER_SHARE) * d[:, clusters:]
    weights = (home[:, None] == np.arange(clusters)) / np.array(clustering.sizes)
    return dict(zip(WAYS, (of_pairs @ weights, of_pairs), strict=True))


def own_best(law: Law, count: int, rng: np.random.Generator) -> dict[str, Array]:
    """[N, judged pairs]: differences of two groups, each at the best of CELLS cells by the mean of CHOOSING seeds.

    All cells of the first group are equal; all but one of the second are far worse. At their best the groups are equal.
    By fresh seeds, and by the seeds that chose.
    """
    drawn = laws.outcomes(law, 0.3, Size(count, CHOOSING + JUDGED, 2 * CELLS), rng)
    drawn[:, CELLS + 1 :] -= 20.0 * MARGIN  # never chosen
    found = {}
    for way, judged in zip(BESTS, (slice(CHOOSING, None), slice(0, CHOOSING)), strict=True):
        a, b = (
            np.take_along_axis(of_group, of_group[..., :CHOOSING].mean(axis=2).argmax(axis=1)[:, None, None], axis=1)
            for of_group in (drawn[:, :CELLS], drawn[:, CELLS:])
        )
        found[way] = (a - b)[:, 0, judged]
    return found


def t_claims(d: Array) -> NDArray[np.bool_]:
    """Whether a paired t over d [N, units] claims a difference at 5 %."""
    return np.asarray(stats.ttest_1samp(d, 0.0, axis=1).pvalue <= 0.05)

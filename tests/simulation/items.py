"""Scores of runs on items: laws with a known difference, and the tests at both levels, written anew.

A score has the logit (difficulty of the item) + (skill of the group in the item's cluster) + (skill of the run). The
chances of success are Beta(1.2, 1.2) over items, and half of the variance of their normal scores is that of clusters.
The package's code is not used. All arrays have the experiments on their first axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from simulation import counts
from simulation.laws import Bools, Floats

Ints = NDArray[np.int64]
_SLOPE = 1.2**2 / (2.4 * 3.4)  # mean change of a chance per logit: E p (1 - p) under Beta(1.2, 1.2)
_Z = np.linspace(-6.0, 6.0, 4001)
_NOISE = 0.8  # SD of a graded score, in logits
LEAST_RUNS, LEAST_RUNS_SATTERTHWAITE = 3, 6


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The items of an experiment: sizes of clusters, in the order of the items."""

    sizes: tuple[int, ...]
    tasks: int = 1  # consecutive clusters; as many in each
    shared: bool = True  # by the groups

    @property
    def items(self) -> int:
        return sum(self.sizes)

    @property
    def effective(self) -> float:
        """The effective number of clusters, if there is one task."""
        return float(self.items**2 / np.sum(np.square(self.sizes)))

    def strata(self) -> Iterator[tuple[slice, Ints]]:
        """Yield the items of each task, and the sizes of its clusters."""
        begin = 0
        for sizes in np.split(np.array(self.sizes), self.tasks):
            yield slice(begin, begin + int(sizes.sum())), sizes
            begin += int(sizes.sum())


@dataclass(frozen=True, kw_only=True)
class Law:
    """How scores vary. `points` is the SD of the runs' skill, and `interaction` that of a group's per cluster."""

    runs: int
    binary: bool
    points: float
    interaction: float  # logits
    paired: bool = False  # half of the variance of runs is common to a pair
    effect: float = 0.0  # points by which group a is better, about

    @property
    def run_sd(self) -> float:
        """The standard deviation of the runs' skill, in logits."""
        return self.points / 100.0 / _SLOPE

    @property
    def shift(self) -> float:
        """How much better group a is than group b, in logits."""
        return self.effect / 100.0 / _SLOPE


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Scores a and b [experiments, runs, items], and the true differences."""

    a: NDArray[np.floating]
    b: NDArray[np.floating]
    true: float  # of new runs on new items
    true_here: Floats  # [experiments] of these runs on new items


@cache
def _difficulties() -> Floats:
    """Logits of Beta(1.2, 1.2) at normal scores _Z."""
    chances = special.betaincinv(1.2, 1.2, special.ndtr(_Z))
    return np.asarray(special.logit(np.clip(chances, 1e-9, 1.0 - 1e-9)))


@cache
def _curve(sd: float) -> tuple[Floats, Floats]:
    """Skills, and the mean score of each over items if its logit also varies by `sd`."""
    skills = np.linspace(-4.0, 4.0, 401)
    weights = np.exp(-(_Z**2) / 2.0)
    weights /= weights.sum()
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(41)
    node_weights = node_weights / node_weights.sum()
    mean = np.zeros(skills.size)
    for node, weight in zip(nodes, node_weights, strict=True):
        mean += weight * (special.expit(_difficulties()[:, None] + skills + sd * node) * weights[:, None]).sum(0)
    return skills, mean


def mean_score(skill: Floats, law: Law, *, over_runs: bool) -> Floats:
    """Return the mean score of a skill on new items; if `over_runs`, of a group of runs around that skill."""
    noise = 0.0 if law.binary else _NOISE
    spread = law.run_sd if over_runs else 0.0
    skills, mean = _curve(float(np.sqrt(noise**2 + law.interaction**2 + spread**2)))
    return np.interp(skill, skills, mean)


def draw(rng: np.random.Generator, number: int, layout: Layout, law: Law) -> Sample:
    """Draw scores of `number` experiments."""
    skills = law.run_sd * _correlated(rng, number, law)  # [experiments, groups, runs]
    skills[:, 0] += law.shift
    cluster = np.repeat(np.arange(len(layout.sizes)), layout.sizes)
    scores = []
    base = _items(rng, number, cluster)
    for group in (0, 1):
        if group and not layout.shared:
            base = _items(rng, number, cluster)
        own_skills = law.interaction * rng.standard_normal((number, len(layout.sizes)), dtype=np.float32)
        logits = (base + own_skills[:, cluster])[:, None, :] + skills[:, group, :, None].astype(np.float32)
        scores.append(_scores(rng, logits, law))
    means_here = mean_score(skills, law, over_runs=False).mean(-1)
    true_means = mean_score(np.array([law.shift, 0.0]), law, over_runs=True)
    return Sample(
        a=scores[0],
        b=scores[1],
        true=float(true_means[0] - true_means[1]),
        true_here=means_here[:, 0] - means_here[:, 1],
    )


def _correlated(rng: np.random.Generator, number: int, law: Law) -> Floats:
    own_noise = rng.standard_normal((number, 2, law.runs))
    if not law.paired:
        return own_noise
    return np.sqrt(0.5) * (own_noise + rng.standard_normal((number, 1, law.runs)))


def _items(rng: np.random.Generator, number: int, cluster: Ints) -> NDArray[np.float32]:
    z = rng.standard_normal((number, cluster.size))
    if cluster[-1] + 1 < cluster.size:
        z = np.sqrt(0.5) * (z + rng.standard_normal((number, cluster[-1] + 1))[:, cluster])
    return np.interp(z, _Z, _difficulties()).astype(np.float32)


def _scores(rng: np.random.Generator, logits: NDArray[np.float32], law: Law) -> NDArray[np.floating]:
    if not law.binary:
        logits += np.float32(_NOISE) * rng.standard_normal(logits.shape, dtype=np.float32)
    chances = 1.0 / (1.0 + np.exp(-logits))
    if law.binary:
        return (rng.random(logits.shape, dtype=np.float32) < chances).astype(np.float32)
    return np.asarray(chances)


@dataclass(frozen=True, kw_only=True)
class Test:
    """A t-test: arrays [experiments]."""

    mean: Floats
    variance: Floats
    df: Floats

    def misses(self, true_difference: Floats | float) -> Bools:
        """Whether the 95 % interval does not contain the true difference."""
        half_width = stats.t.isf(0.025, np.maximum(self.df, 1e-3)) * np.sqrt(self.variance)
        return np.asarray(np.abs(self.mean - true_difference) > half_width)


def tests(a: NDArray[np.floating], b: NDArray[np.floating], layout: Layout, *, paired: bool) -> dict[str, Test]:
    """Return the tests at each level, of scores a, b [experiments, runs, items], equally many runs in both groups."""
    mean_a = a.mean(1, dtype=np.float64)
    mean_b = b.mean(1, dtype=np.float64)
    v_items, df_items = _of_items(mean_a, mean_b, layout)
    run_a = _run_means(a, layout)
    run_b = _run_means(b, layout)
    mean = run_a.mean(1) - run_b.mean(1)
    tests_by_level = {"checkpoints": Test(mean=mean, variance=v_items, df=df_items)}
    if layout.tasks == 1 and layout.shared:
        tests_by_level["cluster sums"] = Test(mean=mean, variance=_of_sums(mean_a - mean_b, layout), df=df_items)
    runs = a.shape[1]
    if runs < 2:
        return tests_by_level
    if paired:
        v_runs = (run_a - run_b).var(1, ddof=1) / runs
        df_runs = np.full(mean.size, runs - 1.0)
    else:
        v_a = run_a.var(1, ddof=1) / runs
        v_b = run_b.var(1, ddof=1) / runs
        v_runs = v_a + v_b
        df_runs = _ratio(v_runs**2, (v_a**2 + v_b**2) / (runs - 1.0))
    tests_by_level["these items"] = Test(mean=mean, variance=v_runs, df=df_runs)
    if runs < LEAST_RUNS:
        return tests_by_level
    if paired and layout.shared:
        noise = _residual(a - b, layout)
    else:
        noise = _residual(a, layout) + _residual(b, layout)
    variance = np.maximum(np.maximum(v_items + v_runs - noise, v_items), v_runs)
    for name, power in (("harmonic", 1.0), ("Satterthwaite", 2.0)):
        parts = _ratio((v_items / variance) ** power, df_items) + _ratio((v_runs / variance) ** power, df_runs)
        tests_by_level[name] = Test(mean=mean, variance=variance, df=1.0 / parts)
    tests_by_level["trainings"] = tests_by_level["harmonic" if runs < LEAST_RUNS_SATTERTHWAITE else "Satterthwaite"]
    return tests_by_level


def _ratio(x: Floats, y: Floats) -> Floats:
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0.0)


def _of_items(mean_a: Floats, mean_b: Floats, layout: Layout) -> tuple[Floats, Floats]:
    """Return the jackknife variance over clusters, and its degrees of freedom, from item means [experiments, items]."""
    total = np.zeros(len(mean_a))
    squares = np.zeros(len(mean_a))
    for values in (mean_a - mean_b,) if layout.shared else (mean_a, mean_b):
        for items, sizes in layout.strata():
            part = values[:, items]
            part = part - part.mean(1, keepdims=True)
            sums = np.add.reduceat(part, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1)
            number = sizes.sum()
            partial_means = -sums / (number - sizes)  # the mean without a cluster, less the mean
            variance = (sizes.size - 1) / sizes.size * (partial_means**2).sum(1) / layout.tasks**2
            total += variance
            squares += variance**2 / (number**2 / np.sum(sizes**2) - 1)
    return total, _ratio(total**2, squares)


def _of_sums(values: Floats, layout: Layout) -> Floats:
    """Return K / (K - 1) times the sum of squares [experiments] of K clusters' deviations, per squared item."""
    ((items, sizes),) = layout.strata()
    part = values[:, items] - values[:, items].mean(1, keepdims=True)
    sums = np.add.reduceat(part, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1)
    return np.asarray(sizes.size / (sizes.size - 1) * (sums**2).sum(1) / layout.items**2)


def _run_means(scores: NDArray[np.floating], layout: Layout) -> Floats:
    means = [scores[:, :, items].mean(2, dtype=np.float64) for items, _ in layout.strata()]
    return np.mean(means, axis=0)


def _residual(scores: NDArray[np.floating], layout: Layout) -> Floats:
    """Return the variance [experiments] of a group's mean by the interaction of runs and items."""
    variances = np.zeros(len(scores))
    runs = scores.shape[1]
    for items, sizes in layout.strata():
        part = scores[:, :, items]
        number = int(sizes.sum())
        item_means = part.mean(1, dtype=np.float64)
        run_means = part.mean(2, dtype=np.float64)
        squares = np.einsum("eri,eri->e", part, part, dtype=np.float64)
        squares += runs * number * item_means.mean(1) ** 2
        squares -= runs * (item_means**2).sum(1) + number * (run_means**2).sum(1)
        variances += squares / ((runs - 1) * (number - 1)) / (runs * number) / layout.tasks**2
    return variances


def exact(a: NDArray[np.floating], b: NDArray[np.floating], true_difference: Floats) -> tuple[Bools, Bools]:
    """Return what McNemar's exact test claims, and whether its interval misses, for one run each [experiments, items].

    The interval is the hull of two of Newcombe's: of all items, and of those alone on which the runs differ.
    """
    both_correct = (a * b).sum(1).astype(np.int64)
    first_correct = a.sum(1).astype(np.int64) - both_correct
    second_correct = b.sum(1).astype(np.int64) - both_correct
    none_correct = a.shape[1] - both_correct - first_correct - second_correct
    z = counts.z_of(np.array(0.05))
    low, high = counts.printed_interval(both_correct, first_correct, second_correct, none_correct, z)
    claimed = counts.claims(counts.mcnemar(first_correct, second_correct), low, high, 0.05) != 0
    return claimed, (true_difference < low) | (high < true_difference)

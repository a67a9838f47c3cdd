"""Estimate the chance variation of runs of one group, and the false-positive rate of each rule on these runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.distributions import f_isf, t_isf
from esper_ab.stats.floats import Bools, Floats, floats
from esper_ab.stats.pair import ROUNDING
from esper_ab.stats.variances import sd_limits

# --- calibration -----------------------------------------------------------------------------------------------------
# Estimates of chance from runs of one group: their spread, their curves, the effect of device and start order.
#
# All runs belong to one group and have their own randomness (A/A), so only chance and position can make them differ.


_LEVEL = 0.95


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The standard deviation between runs, with confidence limits that assume normality, in the unit of the values."""

    runs: int
    mean: float
    sd: float  # n - 1 in the denominator
    low: float
    high: float
    level: float  # confidence of [low, high]


class Intraclass(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the variance of episode outcomes that is between runs (intraclass correlation)."""

    r: float
    low: float
    high: float
    episodes: int  # per run


class LevelEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The mean at one level of a factor minus the mean at the factor's first level, with a 95 % interval."""

    level: str
    against: str
    mean: float
    low: float
    high: float


class FactorEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a factor's levels; if `aliased`, they may come from another factor confounded with this one."""

    factor: str
    aliased: bool
    levels: tuple[LevelEffect, ...]  # empty if there are too few runs to estimate an error


def spread(values: ArrayLike, level: float = _LEVEL) -> Spread:
    """Compute the spread of values [runs]; raises ValueError for fewer than two values or non-finite values."""
    x = floats(values)
    if x.ndim != 1 or x.size < 2 or not np.isfinite(x).all():
        raise ValueError(f"the spread of runs needs at least two finite values in one dimension, not {x.shape}")
    sd, df = float(np.std(x, ddof=1)), x.size - 1
    low, high = sd_limits(sd, df, level)
    return Spread(runs=int(x.size), mean=math.fsum(x) / x.size, sd=sd, low=low, high=high, level=level)


def autocorrelation(curves: ArrayLike) -> float | None:
    """Return the lag-1 autocorrelation within runs of curves [runs, episodes], after removing trend and run means.

    The mean curve over runs and each run's own mean are subtracted, and sums are pooled over runs. With few episodes
    the result is biased downwards by about 1 / episodes. Return None if there are fewer than four episodes or two runs,
    or if nothing varies.
    """
    x = _curves(curves)
    runs, episodes = x.shape
    if runs < 2 or episodes < 4:
        return None
    left = _double_centred(x)
    total = float(np.sum(left**2))
    if total <= _rounding(x):
        return None
    return float(np.sum(left[:, 1:] * left[:, :-1])) / total


def last_episodes(curves: ArrayLike) -> Floats:
    """Return the last tenth of the episodes of curves [runs, episodes], but at least two episodes if there are two."""
    x = _curves(curves)
    return x[:, -max(2, math.ceil(x.shape[1] / 10)) :]


def intraclass_correlation(curves: ArrayLike) -> Intraclass | None:
    """Compute ICC(C,1) of curves [runs, episodes] with negligible trend, and its F limits at 95 %.

    McGraw & Wong (1996), "Forming inferences about some intraclass correlation coefficients". The limits assume that
    the episodes of a run are independent given the run. Return None for fewer than two runs or episodes, or if nothing
    varies.
    """
    x = _curves(curves)
    runs, k = x.shape
    if runs < 2 or k < 2:
        return None
    df_between, df_within = runs - 1, (runs - 1) * (k - 1)
    between = k * float(np.sum((x.mean(axis=1) - x.mean()) ** 2)) / df_between
    within = float(np.sum(_double_centred(x) ** 2)) / df_within
    if between + within <= _rounding(x):
        return None
    if within <= _rounding(x):
        return Intraclass(r=1.0, low=1.0, high=1.0, episodes=k)
    f, tail = between / within, (1.0 - _LEVEL) / 2.0
    low = f / float(f_isf(tail, df_between, df_within))
    high = f * float(f_isf(tail, df_within, df_between))
    return Intraclass(
        r=(f - 1.0) / (f + k - 1.0), low=(low - 1.0) / (low + k - 1.0), high=(high - 1.0) / (high + k - 1.0), episodes=k
    )


def factor_effects(values: ArrayLike, factors: Mapping[str, Sequence[str]]) -> tuple[FactorEffect, ...]:
    """Fit values [runs] on the factors' levels (one label per run) by least squares; skip factors with one level.

    If the factors cannot all be identified together, each factor is fitted alone and marked as aliased.
    """
    y = floats(values)
    varied = {name: labels for name, labels in factors.items() if len(set(labels)) > 1}
    ones = np.ones((y.size, 1))
    columns = {name: _indicators(labels) for name, labels in varied.items()}
    together = np.hstack([ones, *columns.values()])
    aliased = int(np.linalg.matrix_rank(together)) < together.shape[1]
    found, start = [], 1
    for name, labels in varied.items():
        matrix = np.hstack([ones, columns[name]]) if aliased else together
        first = 1 if aliased else start
        start += columns[name].shape[1]
        levels = _level_effects(y, matrix, first, list(dict.fromkeys(labels)))
        found.append(FactorEffect(factor=name, aliased=aliased and len(varied) > 1, levels=levels))
    return tuple(found)


def _level_effects(
    y: Floats, matrix: Floats, first: int, levels: Sequence[str]
) -> tuple[LevelEffect, ...]:
    """Return the effects of the columns from `first` on: levels 1, 2, … minus level 0, with t intervals."""
    df = y.size - matrix.shape[1]
    if df < 1:
        return ()
    inverse = np.linalg.inv(matrix.T @ matrix)
    solution = inverse @ (matrix.T @ y)
    sd = math.sqrt(math.fsum((y - matrix @ solution) ** 2) / df)
    bound = float(t_isf((1.0 - _LEVEL) / 2.0, df))
    found = []
    for column, level in enumerate(levels[1:], start=first):
        half, mean = bound * sd * math.sqrt(float(inverse[column, column])), float(solution[column])
        found.append(LevelEffect(level=level, against=levels[0], mean=mean, low=mean - half, high=mean + half))
    return tuple(found)


def _indicators(labels: Sequence[str]) -> Floats:
    """Return indicator columns [runs, levels - 1]: one per level except the first, in order of appearance."""
    levels = list(dict.fromkeys(labels))
    return np.array([[float(label == level) for level in levels[1:]] for label in labels])


def _curves(curves: ArrayLike) -> Floats:
    x = floats(curves)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise ValueError(f"curves must be finite numbers [runs, episodes], not {x.shape}")
    return x


def _rounding(x: Floats) -> float:
    """Return the largest sum of squares of `x` that rounding alone can explain."""
    return float((ROUNDING * np.max(np.abs(x))) ** 2 * x.size)


def _double_centred(x: Floats) -> Floats:
    """Subtract the mean of each run and of each episode; the grand mean becomes 0."""
    centred: Floats = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
    return centred


# --- false claims ----------------------------------------------------------------------------------------------------
# How often each rule finds a difference between two groups of the same runs: its error rate on the user's own curves.
#
# The runs of one group are split at random into two pseudo-groups, many times. The two differ by chance only, so
# every claim is false. The rates describe these runs; the splits share runs and are not independent.


SPLITS = 10_000
_RESAMPLES = 1_000  # of the bootstrap
_CHUNK = 1_000  # splits at a time
_EPISODES_OF_ONE_RUN = 10  # episodes of one run that are tested as if they were independent
_LEAST_EPISODES = 4  # with fewer episodes, Mann-Whitney on two runs cannot reach 5 %


class FalseClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The share of random splits in which a rule claims a difference."""

    rule: str
    runs_per_group: int
    rate: float


def false_claims(
    curves: ArrayLike,
    outcomes: ArrayLike,
    per_group: int,
    bounds: Sequence[tuple[int, float]],
    rng: Generator,
    splits: int = SPLITS,
) -> tuple[FalseClaims, ...]:
    """Return each rule's share of false claims when runs are split at random into two groups of `per_group`.

    `curves` is [runs, episodes], and `outcomes` is [runs]. If there are no episodes, the rules on curves are skipped.
    `bounds` has (pairs, threshold for p) for each look of our rule, and is empty if our rule never claims anything. The
    other rules test at 5 %. Raises ValueError if there are too few runs for one split.
    """
    x, y = floats(curves), floats(outcomes)
    if x.ndim != 2 or y.shape != x.shape[:1] or y.size < 2 * per_group:
        raise ValueError(f"{x.shape} curves and {y.shape} outcomes cannot be split into two groups of {per_group}")
    tenth, few = max(1, math.ceil(x.shape[1] / 10)), min(_EPISODES_OF_ONE_RUN, x.shape[1])
    last = f"{tenth} episodes" if tenth > 1 else "episode"
    weights = (_resampled(per_group, rng), _resampled(per_group, rng))
    rules: list[tuple[str, int, Callable[[NDArray[np.int64], NDArray[np.int64]], Bools]]] = []
    if x.shape[1]:
        rules.append(("larger mean of the last episode wins", per_group, lambda a, b: _differ(x[a, -1], x[b, -1])))
    if few >= _LEAST_EPISODES:
        name = f"Mann-Whitney on the last {few} episodes, one run each"
        rules.append((name, 1, lambda a, b: _mann_whitney(x[a[:, :1], -few:], x[b[:, :1], -few:])))
    if x.shape[1]:
        name = f"Mann-Whitney on the last {last} of all runs, pooled"
        rules.append((name, per_group, lambda a, b: _mann_whitney(x[a, -tenth:], x[b, -tenth:])))
    rules += [
        ("percentile bootstrap of the difference", per_group, lambda a, b: _bootstrap(y[a], y[b], weights)),
        ("this tool: paired t at its looks", per_group, lambda a, b: _looks(y[a] - y[b], bounds)),
    ]  # fmt: skip
    claims = np.zeros(len(rules))
    for a, b in _deals(y.size, per_group, splits, rng):
        claims += [int(np.count_nonzero(claim(a, b))) for _, _, claim in rules]
    return tuple(
        FalseClaims(rule=name, runs_per_group=runs, rate=float(count) / splits)
        for (name, runs, _), count in zip(rules, claims, strict=True)
    )


def _deals(
    runs: int, per_group: int, splits: int, rng: Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the run indices of the two pseudo-groups, [splits, per_group] each; no run appears twice in a split."""
    for start in range(0, splits, _CHUNK):
        dealt = rng.permuted(np.tile(np.arange(runs), (min(_CHUNK, splits - start), 1)), axis=1)
        yield dealt[:, :per_group], dealt[:, per_group : 2 * per_group]


def _differ(a: Floats, b: Floats) -> Bools:
    """Return [splits]: whether the means of a and b [splits, runs] differ by more than rounding."""
    difference = np.abs(a.mean(axis=1) - b.mean(axis=1))
    return np.asarray(difference > ROUNDING * np.maximum(1.0, np.abs(a).max(axis=1)))


def _mann_whitney(a: Floats, b: Floats) -> Bools:
    """Test a and b [splits, runs, episodes] as if every episode were a run, by the normal approximation with ties."""
    flat_a, flat_b = a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)
    both = np.concatenate((flat_a, flat_b), axis=1)
    varied = both.max(axis=1) > both.min(axis=1)  # equal numbers have no p
    claims = np.zeros(a.shape[0], dtype=np.bool_)
    if varied.any():
        from scipy import stats  # slow to import, and only here

        found = stats.mannwhitneyu(flat_a[varied], flat_b[varied], axis=1, method="asymptotic")
        claims[varied] = found.pvalue <= 0.05
    return claims


def _resampled(runs: int, rng: Generator) -> Floats:
    """Return [resamples, runs]: the weight of each run in a resample; every row sums to 1."""
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), size=_RESAMPLES) / runs


def _bootstrap(a: Floats, b: Floats, weights: tuple[Floats, Floats]) -> Bools:
    """Return [splits]: whether the 95 % percentile interval of the difference of means excludes 0."""
    low, high = np.quantile(a @ weights[0].T - b @ weights[1].T, (0.025, 0.975), axis=1)
    return np.asarray((low > 0.0) | (high < 0.0))


def _looks(d: Floats, bounds: Sequence[tuple[int, float]]) -> Bools:
    """Return [splits]: whether the paired t of d [splits, pairs] reaches the nominal p at any look."""
    crossed = np.zeros(d.shape[0], dtype=np.bool_)
    for pairs, nominal_p in bounds:
        if nominal_p == 0.0:
            continue
        seen = d[:, :pairs]
        se = seen.std(axis=1, ddof=1) / math.sqrt(pairs)
        bound = float(t_isf(nominal_p / 2.0, pairs - 1))
        crossed |= (se > 0.0) & (np.abs(seen.mean(axis=1)) > bound * se)
    return crossed

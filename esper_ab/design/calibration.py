"""Estimates of chance from runs of one group: their spread, their curves, the effect of device and order.

Every run is of one group with its own randomness (A/A), so whatever differs between them is chance or place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import f_isf, t_isf
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.pair import ROUNDING
from esper_ab.stats.sd_limits import sd_limits

_LEVEL = 0.95


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Standard deviation of runs with its limits, in the unit of the values; chi-square limits assume normality."""

    runs: int
    mean: float
    sd: float  # n - 1 in the denominator
    low: float
    high: float
    level: float  # confidence of [low, high]


class Intraclass(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the variance of one episode's outcome that lies between runs."""

    r: float
    low: float
    high: float
    episodes: int  # per run


class LevelEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of one level of a factor minus that of its first level, 95 % interval."""

    level: str
    against: str
    mean: float
    low: float
    high: float


class FactorEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Effects of a factor's levels; `aliased`: confounded with another factor, whose effect this may be as well."""

    factor: str
    aliased: bool
    levels: tuple[LevelEffect, ...]  # empty when there are too few runs to estimate any deviation


def spread(values: ArrayLike, level: float = _LEVEL) -> Spread:
    """Compute the spread of values [runs], at least two."""
    x = floats(values)
    if x.ndim != 1 or x.size < 2 or not np.isfinite(x).all():
        raise ValueError(f"the spread of runs needs at least two finite values in one dimension, not {x.shape}")
    sd, df = float(np.std(x, ddof=1)), x.size - 1
    low, high = sd_limits(sd, df, level)
    return Spread(runs=int(x.size), mean=math.fsum(x) / x.size, sd=sd, low=low, high=high, level=level)


def autocorrelation(curves: ArrayLike) -> float | None:
    """Return the lag-1 autocorrelation within runs of curves [runs, episodes], after removing trend and run means.

    The mean curve over runs and each run's own mean are subtracted; sums are pooled over runs. Biased downwards with
    few episodes, by about 1 / episodes. None with fewer than four episodes or two runs, or when nothing varies.
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
    """Return the last tenth of the episodes of curves [runs, episodes], at least two if there are."""
    x = _curves(curves)
    return x[:, -max(2, math.ceil(x.shape[1] / 10)) :]


def intraclass_correlation(curves: ArrayLike) -> Intraclass | None:
    """Compute ICC(C,1) of curves [runs, episodes] with negligible trend, with its F limits at 95 %.

    McGraw & Wong (1996), "Forming inferences about some intraclass correlation coefficients". The limits take episodes
    of a run as independent given the run. None with fewer than two runs or episodes, or when nothing varies.
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
    """Fit values [runs] on the factors' levels (one label per run) by least squares; one-level factors are left out.

    Jointly when all are identifiable, else each factor alone and marked as aliased.
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
    """Return the effects of columns `first` … of the fit: level 1, 2, … against level 0, with t intervals."""
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
    """Return indicator columns [runs, levels - 1]: one per level but the first, in order of appearance."""
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

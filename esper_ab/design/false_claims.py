"""How often each rule finds a difference between two groups of the same runs: its error rate on the user's own curves.

The runs of one group are dealt at random into two pseudo-groups, many times. Nothing differs between them but luck,
so every claim is false. The rates describe these runs; the deals share them and are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.distributions import t_isf
from esper_ab.stats.floats import Bools, Floats, floats
from esper_ab.stats.pair import ROUNDING

SPLITS = 10_000
_RESAMPLES = 1_000  # of the bootstrap
_CHUNK = 1_000  # deals at a time
_EPISODES_OF_ONE_RUN = 10  # what has been tested as if episodes were independent
_LEAST_EPISODES = 4  # with fewer, Mann-Whitney on two runs cannot reach 5 %


class FalseClaims(msgspec.Struct, frozen=True, kw_only=True):
    """One rule: the share of deals in which it claims a difference."""

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
    """curves [runs, episodes] and outcomes [runs], dealt into two groups of `per_group` runs.

    Without episodes there are no rules of curves. `bounds`: (pairs, nominal p) of each look of our rule, none when it
    never claims; the other rules are at 5 %.
    ValueError when there are not runs enough for one deal.
    """
    x, y = floats(curves), floats(outcomes)
    if x.ndim != 2 or y.shape != x.shape[:1] or y.size < 2 * per_group:
        raise ValueError(f"{x.shape} curves and {y.shape} outcomes cannot be dealt into two groups of {per_group}")
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
    """Indices of the runs of both pseudo-groups, [deals, per_group] each: no run is in both or twice in one."""
    for start in range(0, splits, _CHUNK):
        dealt = rng.permuted(np.tile(np.arange(runs), (min(_CHUNK, splits - start), 1)), axis=1)
        yield dealt[:, :per_group], dealt[:, per_group : 2 * per_group]


def _differ(a: Floats, b: Floats) -> Bools:
    """[deals, runs]: whether the means differ at all; sums that differ by rounding only are a tie."""
    difference = np.abs(a.mean(axis=1) - b.mean(axis=1))
    return np.asarray(difference > ROUNDING * np.maximum(1.0, np.abs(a).max(axis=1)))


def _mann_whitney(a: Floats, b: Floats) -> Bools:
    """[deals, runs, episodes], every episode taken as if it were a run: normal approximation, ties corrected."""
    flat_a, flat_b = a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)
    both = np.concatenate((flat_a, flat_b), axis=1)
    varied = both.max(axis=1) > both.min(axis=1)  # of equal numbers there is no p
    claims = np.zeros(a.shape[0], dtype=np.bool_)
    if varied.any():
        from scipy import stats  # slow to import, and only here

        found = stats.mannwhitneyu(flat_a[varied], flat_b[varied], axis=1, method="asymptotic")
        claims[varied] = found.pvalue <= 0.05
    return claims


def _resampled(runs: int, rng: Generator) -> Floats:
    """[resamples, runs]: how much each run counts in a resample; every row sums to 1."""
    return rng.multinomial(runs, np.full(runs, 1.0 / runs), size=_RESAMPLES) / runs


def _bootstrap(a: Floats, b: Floats, weights: tuple[Floats, Floats]) -> Bools:
    """[deals, runs]: whether the 95 % percentile interval of the difference of means excludes 0."""
    low, high = np.quantile(a @ weights[0].T - b @ weights[1].T, (0.025, 0.975), axis=1)
    return np.asarray((low > 0.0) | (high < 0.0))


def _looks(d: Floats, bounds: Sequence[tuple[int, float]]) -> Bools:
    """d [deals, pairs]: whether the paired t is at or below the nominal p at any look."""
    crossed = np.zeros(d.shape[0], dtype=np.bool_)
    for pairs, nominal_p in bounds:
        if nominal_p == 0.0:
            continue
        seen = d[:, :pairs]
        se = seen.std(axis=1, ddof=1) / math.sqrt(pairs)
        bound = float(t_isf(nominal_p / 2.0, pairs - 1))
        crossed |= (se > 0.0) & (np.abs(seen.mean(axis=1)) > bound * se)
    return crossed

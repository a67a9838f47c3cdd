"""What p a comparison must reach at each look so that all looks together reject falsely with probability alpha.

Alpha is spent as Lan & DeMets (1983) do after O'Brien & Fleming, and so is beta where looks stop for futility. Their
boundary is for a normal statistic; with few pairs the t of an early look is far from it, so the nominal p of every look
is calibrated on the law of the t itself. Futility is non-binding: no bound on p knows of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from esper_ab.design.counterbalance import Sides
from esper_ab.design.t_process import TProcess, draw, t_process, t_values
from esper_ab.stats.distributions import norm_isf, norm_sf, t_isf, t_sf
from esper_ab.stats.floats import Floats

PATHS = 2_000_000
FUTILITY_PATHS = 500_000  # no claim depends on them
_CHUNK = 50_000  # paths at a time: fits the cache of a core


def obrien_fleming_spent(alpha: float, share: float) -> float:
    """Two-sided alpha spent when `share` (0..1] of the replicates is there: 4 (1 - Phi(z_{alpha/4} / sqrt(share)))."""
    return float(4.0 * norm_sf(norm_isf(alpha / 4.0) / math.sqrt(share)))


def beta_spent(beta: float, share: float) -> float:
    """Chance to have stopped a true difference of the margin for futility after this `share` (0..1] of replicates."""
    return obrien_fleming_spent(2.0 * beta, share) / 2.0


def nominal_p(
    sides: Sides,
    positions: int,
    looks: Sequence[int],
    alphas: Sequence[float],
    rng: Generator,
    paths: int = PATHS,
) -> tuple[tuple[float, ...], ...]:
    """[alphas][looks]: the two-sided p at or below which a look rejects; the first one is exact.

    `sides` are the positions (of a, of b) per replicate, `positions` 1 for no adjustment, `looks` ascending numbers of
    replicates, the last one all of them. 0.0 at a look that cannot tell tau from the position effects: it never
    rejects, and the next look spends its share. One look gets alpha itself.

    With s_k spent by look k, c_k solves P(p_k <= c_k and no earlier rejection) = s_k - s_k-1. As p_k is uniform, this
    is c_k = s_k - s_k-1 + P(p_k <= c_k and an earlier rejection); only the last term, the small one, is simulated.
    """
    if len(looks) == 1:
        return tuple((alpha,) for alpha in alphas)
    process = t_process(sides, positions, looks)
    spent = np.array([[obrien_fleming_spent(alpha, look / looks[-1]) for look in process.looks] for alpha in alphas])
    early = _paths_with_small_p(process, spent.max(axis=0), rng, paths)
    usable = [look in process.looks for look in looks]
    found = np.zeros((len(alphas), len(looks)))
    for row, shares in zip(found, spent, strict=True):
        row[usable] = _solve(early, shares, paths)
    return tuple(tuple(float(p) for p in row) for row in found)


def futility_p(
    sides: Sides,
    positions: int,
    looks: Sequence[int],
    spent: Sequence[float],
    rng: Generator,
    paths: int = FUTILITY_PATHS,
) -> tuple[float, ...]:
    """[looks]: the one-sided p at the margin at or below which an interim look stops for futility; 0.0: it never does.

    `spent`: chance to stop by each interim look. The t about the true difference has the law of the t of no difference,
    whatever the spread is, so a difference of the margin is stopped with that chance at most. The last look stops
    nothing. That a path crosses the efficacy boundary before it falls below this one is as good
    as impossible, and not taken off.
    """
    process = t_process(sides, positions, looks)
    usable = np.array([look in process.looks and look < looks[-1] for look in looks])
    shares, found = np.array(spent)[usable[:-1]], np.zeros(len(looks))
    if shares.size:
        found[usable] = _solve(_paths_with_small_p(process, shares, rng, paths, tails=1), shares, paths)
    return tuple(float(p) for p in found)


def _paths_with_small_p(
    process: TProcess, largest: Floats, rng: Generator, paths: int, tails: int = 2
) -> Floats:
    """p at the first looks, [looks, kept]: of the simulated paths that might be rejected before the last of them.

    `largest` [looks]: no nominal p exceeds it. (p_k <= c_k is part of a rejection by look k, which has probability
    s_k; so c_k <= s_k.)
    """
    looks, df = largest.size, np.asarray(process.df)[: largest.size, None]
    bounds = t_isf(largest[:, None] / tails, df)
    kept = []
    for start in range(0, paths, _CHUNK):
        t = t_values(process, draw(process, min(_CHUNK, paths - start), rng))[:looks]
        size = np.abs(t) if tails == 2 else t
        kept.append(size[:, (size >= bounds)[:-1].any(axis=0)])
    return np.asarray(tails * t_sf(np.concatenate(kept, axis=1), df))


def _solve(p: Floats, spent: Floats, paths: int) -> Floats:
    """Nominal p of every look for one alpha. p [looks, kept paths of `paths`]; `spent` [looks], cumulative."""
    rejected = np.zeros(p.shape[1], dtype=bool)
    nominal = np.empty(spent.size)
    for look, increment in enumerate(np.diff(spent, prepend=0.0)):
        earlier = np.sort(p[look, rejected])
        candidates = increment + np.arange(earlier.size + 1) / paths  # c if so many of `earlier` are at or below it
        holds = candidates < np.append(earlier, np.inf)
        nominal[look] = candidates[int(np.argmax(holds))]
        rejected |= p[look] <= nominal[look]
    return nominal

"""Bounds on p at each look, so that all looks together reject falsely with probability alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from esper_ab.design.t_process import TProcess, draw, t_values
from esper_ab.stats.distributions import norm_isf, norm_sf, t_isf, t_sf
from esper_ab.stats.floats import Floats

PATHS = 2_000_000
FUTILITY_PATHS = 500_000  # fewer, because no claim depends on them
_CHUNK = 50_000  # paths at a time, which fit into a core's cache


def obrien_fleming_spent(alpha: float, share: float) -> float:
    """Return the two-sided alpha spent at `share` (0..1] of the replicates: 4 (1 - Phi(z_{alpha/4} / sqrt(share)))."""
    return float(4.0 * norm_sf(norm_isf(alpha / 4.0) / math.sqrt(share)))


def beta_spent(beta: float, share: float) -> float:
    """Return the beta spent (the chance of having missed a true margin) at `share` (0..1] of the replicates."""
    return obrien_fleming_spent(2.0 * beta, share) / 2.0


def nominal_p(
    process: TProcess,
    looks: Sequence[int],
    alphas: Sequence[float],
    rng: Generator,
    paths: int = PATHS,
) -> tuple[tuple[float, ...], ...]:
    """Return the threshold for the two-sided p at each look, [alphas][looks]: at or below it, the look rejects.

    `looks` are ascending numbers of replicates, ending at the number of all replicates. A look that `process` lacks
    cannot test: its threshold is 0.0, so the look never rejects, and its share of alpha passes to the next look. A
    single look gets alpha itself. The threshold of the first look is always exact.

    With alpha s_k spent by look k, the threshold c_k solves P(p_k <= c_k and no earlier rejection) = s_k - s_{k-1}.
    Under the null hypothesis p_k is uniform, so c_k = s_k - s_{k-1} + P(p_k <= c_k and an earlier rejection). Only the
    last term, which is small, is simulated.
    """
    if len(looks) == 1:
        return tuple((alpha,) for alpha in alphas)
    shares = [look / looks[-1] for look in process.looks]
    spent_alpha = np.array([[obrien_fleming_spent(alpha, share) for share in shares] for alpha in alphas])
    early_p = _paths_with_small_p(process, spent_alpha.max(axis=0), rng, paths)
    usable_mask = np.isin(looks, process.looks)
    thresholds = np.zeros((len(alphas), len(looks)))
    for row, spent_by_look in zip(thresholds, spent_alpha, strict=True):
        row[usable_mask] = _solve(early_p, spent_by_look, paths)
    return tuple(_tuple(row) for row in thresholds)


def futility_p(
    process: TProcess,
    looks: Sequence[int],
    spent_alpha: Sequence[float],
    rng: Generator,
    paths: int = FUTILITY_PATHS,
) -> tuple[float, ...]:
    """Return the threshold for the one-sided p at the margin, [looks]: at or below it, the test stops for futility.

    The threshold is 0.0 at looks that cannot stop the test, such as the last. `spent_alpha` is the probability of
    having stopped by each interim look. Centred on the true difference, t has its null distribution, whatever the
    spread. So if the true difference equals the margin, the probability of having stopped is at most `spent_alpha`.
    Paths that cross the efficacy boundary before they reach the futility boundary are not subtracted, because there are
    practically none.
    """
    usable_mask = np.isin(looks, process.looks)
    usable_mask[-1] = False  # nothing can stop early at the last look
    spent_by_look = np.array(spent_alpha)[usable_mask[:-1]]
    thresholds = np.zeros(len(looks))
    if spent_by_look.size:
        early_p = _paths_with_small_p(process, spent_by_look, rng, paths, tails=1)
        thresholds[usable_mask] = _solve(early_p, spent_by_look, paths)
    return _tuple(thresholds)


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _paths_with_small_p(
    process: TProcess, largest_thresholds: Floats, rng: Generator, paths: int, tails: int = 2
) -> Floats:
    """Return p at the looks of `largest_thresholds`, [looks, kept], for simulated paths that may be rejected before the
    last look.

    `largest_thresholds` [looks] has upper bounds on the thresholds. (Since p_k <= c_k implies a rejection by look k,
    which has probability s_k, c_k <= s_k.)
    """
    looks = largest_thresholds.size
    df = np.asarray(process.df)[:looks, None]
    bounds = t_isf(largest_thresholds[:, None] / tails, df)
    kept_t = []
    for start in range(0, paths, _CHUNK):
        draws = draw(process, min(_CHUNK, paths - start), rng)
        t = t_values(process, draws)[:looks]
        if tails == 2:
            t = np.abs(t)
        early_crossings = (t >= bounds)[:-1]
        kept_t.append(t[:, early_crossings.any(axis=0)])
    return np.asarray(tails * t_sf(np.concatenate(kept_t, axis=1), df))


def _solve(p: Floats, spent_alpha: Floats, paths: int) -> Floats:
    """Return each look's threshold for one alpha. p is [looks, kept paths of `paths`]; `spent_alpha` [looks]
    accumulates.
    """
    rejected_mask = np.zeros(p.shape[1], dtype=bool)
    nominal_thresholds = np.empty(spent_alpha.size)
    for look, increment in enumerate(np.diff(spent_alpha, prepend=0.0)):
        earlier_p = np.sort(p[look, rejected_mask])
        candidates = (
            increment + np.arange(earlier_p.size + 1) / paths
        )  # [i]: threshold with i of `earlier_p` at or below
        holds = candidates < np.append(earlier_p, np.inf)
        first_candidate = int(np.argmax(holds))
        nominal_thresholds[look] = candidates[first_candidate]
        rejected_mask |= p[look] <= nominal_thresholds[look]
    return nominal_thresholds

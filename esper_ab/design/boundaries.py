"""Bounds on p at each look, so that all looks together reject falsely with probability alpha.

Alpha is spent as in Lan & DeMets (1983) with an O'Brien-Fleming spending function. If looks stop for futility, beta is
spent in the same way. The boundary of Lan & DeMets assumes a normal statistic, but with few pairs the t of an early
look is far from normal. So each nominal p is calibrated on the distribution of t. Futility is non-binding: no
bound on p depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.design.counterbalance import Sides
from esper_ab.stats.adjusted_difference import design_matrix, estimable
from esper_ab.stats.distributions import norm_isf, norm_sf, t_isf, t_sf
from esper_ab.stats.floats import Floats

# --- t process -------------------------------------------------------------------------------------------------------
# Joint distribution of the adjusted paired t over successive interim looks, from the design alone, and its simulation.
#
# Let V_k be the differences of the first n_k pairs with position effects projected out. V_k is a subspace of V_{k+1},
# and the least squares of `adjusted_difference` is the one-sample t in V_k. After a rotation within each step from look
# to look, a step adds one normal coordinate along tau's column and a chi-square for the other columns. So the
# distribution depends on only two numbers per look: the information on tau and the degrees of freedom.


_NO_GAIN = 1e-9  # a gain of information below this is rounding


class TProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The looks that can test tau, with their replicates, information (in pairs of a balanced plan) and df of t."""

    looks: tuple[int, ...]
    information: tuple[float, ...]
    df: tuple[int, ...]


class Draws(msgspec.Struct, frozen=True, kw_only=True):
    """Standard draws, [looks, paths]: the normal coordinate and the chi-square that each look adds."""

    normal: Floats
    rest: Floats


def t_process(sides: Sides, positions: int, looks: Sequence[int]) -> TProcess:
    """Compute the information and the df at each look.

    `sides` has the positions (of a, of b) in each replicate. `positions` is the number of possible positions (1: no
    adjustment). `looks` are ascending numbers of replicates. A look is left out if no degree of freedom remains or tau
    is aliased with position effects.
    """
    kept, information, df = [], [], []
    for look in looks:
        matrix = design_matrix(sides[:look], positions)
        left = look - int(np.linalg.matrix_rank(matrix))
        if estimable(matrix) and left >= 1:
            kept.append(look)
            information.append(1.0 / float(np.linalg.pinv(matrix.T @ matrix)[0, 0]))
            df.append(left)
    return TProcess(looks=tuple(kept), information=tuple(information), df=tuple(df))


def draw(process: TProcess, paths: int, rng: Generator) -> Draws:
    """Draw the random numbers of `paths` experiments, before an effect and a scale are applied."""
    gains = _gains(process)
    dimensions = np.diff(np.asarray(process.df) + 1, prepend=0) - (gains > 0.0)
    normal = rng.standard_normal((len(process.looks), paths))
    rest = np.zeros_like(normal)
    for look, dimension in enumerate(dimensions):
        if dimension > 0:
            rest[look] = rng.chisquare(dimension, paths)
    return Draws(normal=normal, rest=rest)


def t_values(process: TProcess, draws: Draws, effect: float = 0.0) -> Floats:
    """Return t for every look and path, [looks, paths], assuming that tau is `effect` standard deviations of a pair."""
    t = np.empty_like(draws.normal)
    along, square = np.zeros(draws.normal.shape[1]), np.zeros(draws.normal.shape[1])
    steps = zip(_gains(process), process.information, process.df, strict=True)
    for look, (gain, information, df) in enumerate(steps):
        square += draws.rest[look]
        if gain > 0.0:
            value = draws.normal[look] + effect * np.sqrt(gain)
            along += np.sqrt(gain) * value
            square += value * value
        residual = square - along * along / information
        t[look] = along * np.sqrt(df / information / residual)
    return t


def _gains(process: TProcess) -> Floats:
    """Return the information that each look adds to the information at the previous look."""
    gains = np.diff(np.asarray(process.information), prepend=0.0)
    gains[gains < _NO_GAIN] = 0.0
    return gains


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
    sides: Sides,
    positions: int,
    looks: Sequence[int],
    alphas: Sequence[float],
    rng: Generator,
    paths: int = PATHS,
) -> tuple[tuple[float, ...], ...]:
    """Return the threshold for the two-sided p at each look, [alphas][looks]: at or below it, the look rejects.

    `sides` has the positions (of a, of b) in each replicate; `positions` is the number of possible positions (1: no
    adjustment). `looks` are ascending numbers of replicates, ending at the number of all replicates. If tau cannot be
    separated from position effects at a look, that look's threshold is 0.0, so the look never rejects, and its share of
    alpha passes to the next look. A single look gets alpha itself. The threshold of the first look is always exact.

    With alpha s_k spent by look k, the threshold c_k solves P(p_k <= c_k and no earlier rejection) = s_k - s_{k-1}.
    Under the null hypothesis p_k is uniform, so c_k = s_k - s_{k-1} + P(p_k <= c_k and an earlier rejection). Only the
    last term, which is small, is simulated.
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
    """Return the threshold for the one-sided p at the margin, [looks]: at or below it, the test stops for futility.

    The threshold is 0.0 at looks that cannot stop the test, such as the last. `spent` is the probability of having
    stopped by each interim look. Centred on the true difference, t has its null distribution, whatever the spread. So
    if the true difference equals the margin, the probability of having stopped is at most `spent`. Paths that cross the
    efficacy boundary before they reach the futility boundary are not subtracted, because there are practically none.
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
    """Return p at the looks of `largest`, [looks, kept], for simulated paths that may be rejected before the last look.

    `largest` [looks] has upper bounds on the thresholds. (Since p_k <= c_k implies a rejection by look k, which has
    probability s_k, c_k <= s_k.)
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
    """Return each look's threshold for one alpha. p is [looks, kept paths of `paths`]; `spent` [looks] accumulates."""
    rejected = np.zeros(p.shape[1], dtype=bool)
    nominal = np.empty(spent.size)
    for look, increment in enumerate(np.diff(spent, prepend=0.0)):
        earlier = np.sort(p[look, rejected])
        candidates = increment + np.arange(earlier.size + 1) / paths  # [i]: threshold with i of `earlier` at or below
        holds = candidates < np.append(earlier, np.inf)
        nominal[look] = candidates[int(np.argmax(holds))]
        rejected |= p[look] <= nominal[look]
    return nominal

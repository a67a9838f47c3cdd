"""Mean difference of pairs, adjusted for the effects of positions by least squares.

The model is d_r = tau + (effect of a's position - effect of b's position). A position is a lane together with a place
in the start order. With two groups the model is d_r = tau + gamma s_r, where s_r = +1 or -1 depends on which position a
has. With one position, this is the plain paired t-test.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import ArrayLike

from esper_ab.stats.anytime_t import anytime_interval, log_evidence
from esper_ab.stats.design_matrix import design_matrix, estimable, rank
from esper_ab.stats.distributions import t_isf, t_sf
from esper_ab.stats.floats import Floats, exact_sum, norm, two
from esper_ab.stats.rounding import alike, rests_on_others, rounding


class PositionEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between a run at `position` and a run at position 0, with its 95 % t interval."""

    position: int
    mean: float
    low: float
    high: float


class PriorVariance(msgspec.Struct, frozen=True, kw_only=True):
    """The common variance of several comparisons, towards which `moderated_variance` shrinks that of each."""

    variance: float
    df: int  # as which it counts


class AdjustedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate of tau with its t-test. Fields that need a standard deviation are None if it is 0 or unknown."""

    pairs: int  # for Welch's t, the runs of the smaller group
    mean: float  # tau
    sd: float | None  # of the residuals, per pair; 0.0 if nothing varies; if there is an sd but no t, see `degenerate`
    se: float | None  # of tau
    t: float | None
    df: float  # pairs - columns of the design; 0 with too few pairs; for Welch's t, Satterthwaite's; more with `prior`
    p: float | None  # two-sided
    information: float  # sd^2 / se^2: the number of pairs of a balanced plan with the same se
    positions: tuple[PositionEffect, ...]  # empty when not adjusted, or nothing varies
    name: str = ""  # "Welch's t"; "": a paired t
    # With it, se, t, df and p are those of the moderated t, but sd is not; UNSET: they are the comparison's own.
    prior: PriorVariance | UnsetType = UNSET

    @property
    def degenerate(self) -> bool:
        """True if there are several pairs (or runs), but no t-test is possible; see `pair.degenerate` (or `welch`)."""
        return (self.sd is not None or self.name != "") and self.t is None

    def interval(self, p: float) -> tuple[float, float] | None:
        """Return the interval of values of tau that the t-test does not reject at two-sided `p`.

        None if there is no t.
        """
        if self.se is None:
            return None
        half_width = float(t_isf(p / 2.0, self.df)) * self.se
        return self.mean - half_width, self.mean + half_width

    def log_evidence(self) -> float | None:
        """Return the natural log of the e-value of the anytime-valid t-test; None if there is no t."""
        if self.t is None:
            return None
        return log_evidence(self.t, self.df, self.information)

    def anytime_interval(self, evidence: float) -> tuple[float, float] | None:
        """Return the interval of differences whose e-value is below `evidence`; None if the interval is unbounded."""
        se = self.se
        if se is None:
            return None
        return anytime_interval(self.mean, se, self.df, self.information, evidence)


def adjusted_difference(a: ArrayLike, b: ArrayLike, sides: ArrayLike, positions: int) -> AdjustedDifference | None:
    """Estimate tau from a, b [pairs] with `sides` [pairs, 2]; if `positions` is 1, nothing is adjusted for.

    Return None if there are no pairs, or if tau is aliased with position effects.
    """
    x, y = two(a, b)
    matrix = design_matrix(sides, positions)
    if len(matrix) != x.size:
        raise ValueError(f"there must be one side per pair, not {len(matrix)} sides and {x.size} pairs")
    d = x - y
    pairs = int(d.size)
    if not estimable(matrix):
        return None
    # [q, q]; positions that never occur get zero
    inverse = np.asarray(np.linalg.pinv(matrix.T @ matrix), dtype=np.float64)
    solution = inverse @ (matrix.T @ d)
    if positions == 1:
        mean = exact_sum(d) / pairs
    else:
        mean = float(solution[0])
    df = pairs - rank(matrix)
    information = 1.0 / float(inverse[0, 0])
    untested = AdjustedDifference(
        pairs=pairs, mean=mean, sd=None, se=None, t=None, df=df, p=None, information=information, positions=()
    )
    if df < 1:
        return untested
    residuals = d - matrix @ solution
    without_spread = bool(np.all(np.abs(residuals) <= rounding(x, y)))  # beside the positions
    most_alike = alike(x, y)
    if without_spread or most_alike == pairs:
        return msgspec.structs.replace(untested, sd=0.0)
    sd = norm(residuals) / math.sqrt(df)
    if rests_on_others(most_alike, pairs):
        return msgspec.structs.replace(untested, sd=sd)
    se = sd / math.sqrt(information)
    t = mean / se
    p = float(2.0 * t_sf(abs(t), df))
    effects = _position_effects(matrix, inverse, solution, sd, df)
    return msgspec.structs.replace(untested, sd=sd, se=se, t=t, p=p, positions=effects)


def _position_effects(
    matrix: Floats, inverse: Floats, solution: Floats, sd: float, df: int
) -> tuple[PositionEffect, ...]:
    """Return the position effects, with intervals, for the columns whose effect can be estimated."""
    effects = []
    bound = float(t_isf(0.025, df))
    full_rank = rank(matrix)
    for column in range(1, matrix.shape[1]):
        other_columns = np.delete(matrix, column, axis=1)
        if rank(other_columns) == full_rank:
            continue
        half_width = bound * sd * math.sqrt(float(inverse[column, column]))
        value = float(solution[column])
        effects.append(PositionEffect(position=column, mean=value, low=value - half_width, high=value + half_width))
    return tuple(effects)

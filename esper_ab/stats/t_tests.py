"""t-tests: for paired differences, for unpaired runs, and two one-sided tests for equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.distributions import t_cdf, t_sf
from esper_ab.stats.floats import Floats, floats, norm, two
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import commonest, resolution, steady

# --- paired difference -----------------------------------------------------------------------------------------------
# Mean of the paired differences with Student's t: the main estimate and its interval.
#
# The unit is one pair of runs (one replicate), never an episode.


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of d = a - b over pairs. Fields that need a standard deviation are None if it is 0 or unknown."""

    pairs: int
    mean: float
    sd: float | None  # of the differences, n - 1 in the denominator; None with one pair; 0.0 if nothing varies
    se: float | None  # of the mean
    low: float | None
    high: float | None
    level: float  # confidence of [low, high]
    t: float | None
    df: int  # pairs - 1
    p: float | None  # two-sided

    @property
    def degenerate(self) -> bool:
        """True if there are several pairs, but no t-test is possible; see `pair.degenerate`."""
        return self.sd is not None and self.t is None


def differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return a - b [pairs]; ValueError if a, b are not finite, one-dimensional, of equal length and non-empty."""
    x, y = two(a, b)
    if not x.size:
        raise ValueError("there must be at least one pair")
    return x - y


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> PairedDifference:
    """Compute Student's paired t-test of a, b [pairs]: mean, interval at `level`, two-sided p with pairs - 1 df."""
    n = int(differences(a, b).size)
    found = adjusted_difference(a, b, [(0, 0)] * n, 1)
    assert found is not None  # there are pairs, and one position only
    low, high = found.interval(1.0 - level) or (None, None)
    return PairedDifference(
        pairs=n, mean=found.mean, sd=found.sd, se=found.se, low=low, high=high, level=level, t=found.t, df=n - 1,
        p=found.p,
    )  # fmt: skip


# --- equivalence -----------------------------------------------------------------------------------------------------
# Two one-sided t-tests (Schuirmann 1987): is the difference shown to be smaller than the margin?
#
# Not finding a difference shows nothing. Equivalence is shown when both "a is worse by the margin or more" and "a is
# better by the margin or more" are rejected; at bound p that is the (1 - 2p) interval inside -margin .. +margin.


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """The one-sided p-values against differences of -margin or less and of +margin or more; `p` is the larger one."""

    margin: float
    p_lower: float
    p_upper: float
    p: float
    p_bound: float
    reached: bool  # p <= p_bound; a claim also needs enough pairs, and no difference shown


def equivalence(difference: AdjustedDifference, margin: float, p_bound: float) -> Equivalence | None:
    """Test `difference` against `margin` > 0 with two one-sided t-tests, each at `p_bound`; None if there is no t."""
    if difference.se is None:
        return None
    p_lower = float(t_sf((difference.mean + margin) / difference.se, difference.df))
    p_upper = float(t_cdf((difference.mean - margin) / difference.se, difference.df))
    p = max(p_lower, p_upper)
    return Equivalence(margin=margin, p_lower=p_lower, p_upper=p_upper, p=p, p_bound=p_bound, reached=p <= p_bound)


# --- welch -----------------------------------------------------------------------------------------------------------
# Runs of two groups that share nothing: Welch's t, with the degrees of freedom of Satterthwaite.
#
# Welch (1947); Satterthwaite (1946). Groups may differ in spread and in number. Among few runs of a skewed law none may
# be in its tail, so that they seem to vary little. If either group shows that a law is skewed, the spread of all runs
# gives a larger standard error, which is used. A small group may hide its tail entirely, so even without that its
# spread counts as at least two thirds of that of the larger group (docs/internals/verdict-rules.md).


_SKEWED = 0.5  # larger |skewness| of a group: its law may have a tail
_LEAST_SPREAD = 2.0 / 3.0  # of the smaller group, in SDs of the larger one


def welch(a: Sequence[float], b: Sequence[float]) -> AdjustedDifference | None:
    """Compare the means of a [n], b [m] with Welch's t-test; None if a group has no run.

    The standard error is Welch's. If n != m, it is at least that of a common standard deviation if the skewness of a
    group is above 0.5 or below -0.5. Otherwise it is at least the smaller of that and the one of a smaller group whose
    standard deviation is two thirds of the larger group's.
    The result has no test if neither group varies. It also has no test if more than half of all runs have the same
    outcome and fewer than LEAST_PAIRS runs have a different one, because a claim would depend on these few.
    """
    if not a or not b:
        return None
    none = AdjustedDifference(
        name="Welch's t", pairs=min(len(a), len(b)), mean=math.fsum(a) / len(a) - math.fsum(b) / len(b), sd=None,
        se=None, t=None, df=0, p=None, information=0.0, positions=(),
    )  # fmt: skip
    everything = [*a, *b]
    most, _ = commonest(everything, resolution(everything))
    few = none.pairs < 2 or (2 * most > len(everything) and len(everything) - most < LEAST_PAIRS)
    if few or all(steady(side, none.mean) for side in (a, b)):
        return none
    runs = len(a), len(b)
    spreads = [norm(floats(side) - np.mean(side)) for side in (a, b)]
    each = [spread / math.sqrt(n * (n - 1)) for spread, n in zip(spreads, runs, strict=True)]  # se of the mean
    own, n_all = math.hypot(*each), sum(runs)
    df = 1.0 / math.fsum((one / own) ** 4 / (n - 1) for one, n in zip(each, runs, strict=True))
    common = math.hypot(*spreads) * math.sqrt(n_all / math.prod(runs) / (n_all - 2))
    skewed = any(abs(skewness(side) or 0.0) > _SKEWED for side in (a, b))
    se = max(own, common if skewed else min(common, _least_se(runs, each)))
    t = none.mean / se
    return msgspec.structs.replace(none, se=se, t=t, df=df, p=float(2.0 * t_sf(abs(t), df)))


def _least_se(runs: tuple[int, int], each: list[float]) -> float:
    """Return the standard error if the smaller group's SD is two thirds of the larger's; `each`: those of the means."""
    (few, _), (many, se) = sorted(zip(runs, each, strict=True))
    return math.hypot(_LEAST_SPREAD * se * math.sqrt(many / few), se)


def skewness(values: ArrayLike) -> float | None:
    """Return the third central moment / SD^3 of `values` [n > 0], denominators n; None if they do not vary."""
    x = floats(values)
    sd = norm(x - x.mean()) / math.sqrt(x.size)
    return float(np.mean(((x - x.mean()) / sd) ** 3)) if sd > 0.0 else None

"""Runs of two groups that share nothing: Welch's t, with the degrees of freedom of Satterthwaite.

Welch (1947); Satterthwaite (1946). Groups may differ in spread and in number. Among few runs of a skewed law none may
be in its tail, so that they seem to vary little. If either group shows that a law is skewed, the spread of all runs
gives a larger standard error, which is used. A small group may hide its tail entirely, so even without that its
spread counts as at least two thirds of that of the larger group (docs/internals/verdict-rules.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.floats import floats, norm
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import commonest, resolution, steady

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
        name="Welch's t",
        pairs=min(len(a), len(b)),
        mean=math.fsum(a) / len(a) - math.fsum(b) / len(b),
        sd=None,
        se=None,
        t=None,
        df=0,
        p=None,
        information=0.0,
        positions=(),
    )
    everything = [*a, *b]
    most, _ = commonest(everything, resolution(everything))
    few = none.pairs < 2 or (2 * most > len(everything) and len(everything) - most < LEAST_PAIRS)
    if few or all(steady(side, none.mean) for side in (a, b)):
        return none
    runs = len(a), len(b)
    spreads = [norm(floats(side) - np.mean(side)) for side in (a, b)]
    each = [spread / math.sqrt(n * (n - 1)) for spread, n in zip(spreads, runs, strict=True)]  # se of the mean
    own = math.hypot(*each)
    n_all = sum(runs)
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

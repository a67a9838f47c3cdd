"""Two one-sided t-tests (Schuirmann 1987): is the difference shown to be smaller than the margin?

Not finding a difference shows nothing. Equivalence is shown when both "a is worse by the margin or more" and "a is
better by the margin or more" are rejected; at bound p that is the (1 - 2p) interval inside -margin .. +margin.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from esper_ab.stats.distributions import t_cdf, t_sf


class TestedDifference(Protocol):
    """A difference with its t-test."""

    @property
    def mean(self) -> float:
        """The estimate."""

    @property
    def se(self) -> float | None:
        """Its standard error; None: there is no t."""

    @property
    def df(self) -> float:
        """Degrees of freedom of the t."""


class Equivalence(msgspec.Struct, frozen=True, kw_only=True):
    """The one-sided p-values against differences of -margin or less and of +margin or more; `p` is the larger one."""

    margin: float
    p_lower: float
    p_upper: float
    p: float
    p_bound: float
    reached: bool  # p <= p_bound; a claim also needs enough pairs, and no difference shown


def equivalence(difference: TestedDifference, margin: float, p_bound: float) -> Equivalence | None:
    """Test `difference` against `margin` > 0 with two one-sided t-tests, each at `p_bound`; None if there is no t."""
    if difference.se is None:
        return None
    p_lower = float(t_sf((difference.mean + margin) / difference.se, difference.df))
    p_upper = float(t_cdf((difference.mean - margin) / difference.se, difference.df))
    p = max(p_lower, p_upper)
    return Equivalence(margin=margin, p_lower=p_lower, p_upper=p_upper, p=p, p_bound=p_bound, reached=p <= p_bound)

"""The claim of one look that the first group is not worse by the margin or more (non-inferiority). Pure."""

from __future__ import annotations

import msgspec

from esper_ab.stats.distributions import t_sf
from esper_ab.stats.equivalence import TestedDifference


class NotWorse(msgspec.Struct, frozen=True, kw_only=True):
    """The one-sided test at the margin, as the limits of the differences that it does not reject."""

    p: float | None  # one-sided, at the margin; None without a t
    bound_p: float | None  # required of it; None under the anytime-valid rule
    low: float | None  # lower limit of the difference, at bound_p; None: there is none
    high: float | None
    shown: bool  # enough pairs, and the worse limit does not reach the margin

    def worse_limit(self, sign: float) -> float | None:
        """Return how much better the first group is at least, in the outcome's unit; below 0: at most how much worse.

        `sign`: 1.0 if higher outcomes are better, else -1.0.
        """
        if self.low is None or self.high is None:
            return None
        return self.low if sign > 0.0 else -self.high

    def excludes_margin(self, sign: float, margin: float) -> bool:
        """True if the first group is not worse by `margin` or more, whatever the number of pairs."""
        limit = self.worse_limit(sign)
        return limit is not None and limit > -margin


def not_worse_at(
    interval: tuple[float, float] | None,
    p: float | None,
    bound_p: float | None,
    *,
    sign: float,
    margin: float,
    enough: bool,
) -> NotWorse:
    """Return the claim that a look allows.

    `interval` has both one-sided limits, `p` is that of the test at the margin, and `enough` says whether there are
    enough pairs for a claim.
    """
    low, high = interval or (None, None)
    limits = NotWorse(p=p, bound_p=bound_p, low=low, high=high, shown=False)
    return msgspec.structs.replace(limits, shown=enough and limits.excludes_margin(sign, margin))


def one_sided_p(difference: TestedDifference, sign: float, margin: float) -> float | None:
    """Return the p of the t-test against "worse by `margin` or more"; `sign` is -1.0 if lower outcomes are better."""
    if difference.se is None:
        return None
    return float(t_sf((sign * difference.mean + margin) / difference.se, difference.df))

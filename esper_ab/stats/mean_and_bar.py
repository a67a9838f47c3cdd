"""Whether the mean of outcomes lies above or below a bar, decided after any number of outcomes, as often as one likes.

Each of the two claims is false with a chance of at most alpha. The t rule holds for outcomes with a normal distribution
(`anytime_t`): with the mean at the bar, the e-value ever reaches 1 / (2 alpha) with a chance of at most 2 alpha, and by
symmetry half of that on each side; a mean further away makes it rarer. The rule for any shape needs the range of
possible outcomes (`bounded_mean`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from esper_ab.stats.anytime_t import anytime_interval, least_t
from esper_ab.stats.bounded_mean import interval
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.rounding import commonest, resolution, rests_on_others

_MOST_SEEDS = 10_000  # above which no number is named


@dataclass(frozen=True, kw_only=True)
class MeanAndBar:
    """The mean of outcomes beside a bar."""

    count: int
    mean: float
    sd: float  # 0.0 for one outcome
    low: float  # ends of the interval of means that are not denied; infinite if the outcomes rule nothing out
    high: float
    side: int  # 1: the mean is claimed to be above the bar, -1: below, 0: no claim
    alike: int  # the largest number of equal outcomes, up to rounding
    lacks_spread: bool  # whether so many are equal that the t rule claims nothing


def mean_and_bar(
    outcomes: Sequence[float], bar: float, alpha: float, possible: tuple[float, float] | None = None
) -> MeanAndBar:
    """Judge the outcomes so far, at least one; `possible`: the lowest and highest outcome, for the rule of any shape.

    The t rule claims nothing from fewer than LEAST_PAIRS outcomes, nor where fewer than that differ from the
    commonest one.
    """
    values = floats(outcomes)
    mean = float(values.mean())
    sd = float(values.std(ddof=1)) if values.size > 1 else 0.0
    alike_count, _ = commonest(values, resolution(values))
    lacks_spread = rests_on_others(alike_count, values.size)
    if possible is not None:
        low, high = _interval_of_any_shape(values, possible, alpha)
    else:
        low, high = (None if lacks_spread else _t_interval(values.size, mean, sd, alpha)) or (-math.inf, math.inf)
    return MeanAndBar(
        count=values.size,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        side=1 if low > bar else -1 if high < bar else 0,
        alike=alike_count,
        lacks_spread=lacks_spread,
    )


def _t_interval(count: int, mean: float, sd: float, alpha: float) -> tuple[float, float] | None:
    """Return the interval of the t rule; None if the outcomes are too few to rule anything out."""
    if count < LEAST_PAIRS:
        return None
    return anytime_interval(mean, sd / math.sqrt(count), count - 1, count, 1.0 / (2.0 * alpha))


def _interval_of_any_shape(values: Floats, possible: tuple[float, float], alpha: float) -> tuple[float, float]:
    """Return the interval of the rule for any shape."""
    low, high = possible
    middle = 0.5 * (low + high)
    below, above = interval(values - middle, 0.5 * (high - low), 1.0 / alpha)
    return middle + below, middle + above


def seeds_needed(difference: float, sd: float, alpha: float) -> int | None:
    """Return the number of outcomes at which the t rule claims a `difference` of the mean from the bar, at this SD.

    None if 10,000 do not suffice, or if there is no difference or no spread.
    """
    if not difference or not sd:
        return None
    effect = abs(difference) / sd
    counts = range(LEAST_PAIRS, _MOST_SEEDS + 1)
    evidence = 1.0 / (2.0 * alpha)
    return next((n for n in counts if effect * math.sqrt(n) >= least_t(n - 1, n, evidence)), None)
